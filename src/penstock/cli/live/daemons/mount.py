# SPDX-License-Identifier: MIT
"""Mount a folder through a bandwidth limit: one mount is one storage target.

``penstock mount BACKING MNT --limit RATE --slo FILE`` mounts. ``--status MNT``,
``--set-limit RATE MNT`` and ``--unmount MNT`` concern a running mount.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import pwd
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.live.daemons.logs import start_logging
from penstock.cli.live.options import LOG, WHERE, add_live_options, live_settings
from penstock.cli.options import add_json_option, exclude, write_json
from penstock.cli.tables import format_table
from penstock.errors import InputError
from penstock.units import (
    counted,
    format_bandwidth,
    format_time,
    format_volume,
    parse_bandwidth,
)

if TYPE_CHECKING:
    from penstock.live.settings import Settings
    from penstock.mount.control import (
        ApplicationState,
        MountCommand,
        MountStatus,
        SchedulerStatus,
    )
    from penstock.mount.daemon import MountSpec
    from penstock.mount.limits import Limits
    from penstock.mount.points import MountTableEntry
    from penstock.mount.slo_settings import SloSettings

__all__ = [
    "APPLICATION_COLUMNS",
    "SUMMARY",
    "application_cells",
    "main",
    "scheduler_lines",
    "setup_parser",
    "waiting_words",
]

SUMMARY = "mount a folder through a bandwidth limit"

_LIMITS = {
    "limit": "reads and writes together",
    "read_limit": "reads",
    "write_limit": "writes",
}
#: Columns of the table of applications.
APPLICATION_COLUMNS: tuple[str, ...] = (
    *("application", "promised", "within", "has", "p95", "queued", "kept"),
    "operations",
)


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock mount``."""
    parser.usage = (
        "penstock mount [options] BACKING MNT\n"
        "       penstock mount --status | --set-limit RATE | --unmount  MNT"
    )
    parser.add_argument(
        "folders",
        nargs="+",
        metavar="BACKING MNT",
        help="the folder to mount, and the mount point",
    )
    for name, meaning in _LIMITS.items():
        flag = name.replace("_", "-")
        parser.add_argument(
            f"--{flag}", metavar="RATE", help=f'limit of {meaning}, e.g. "100 MB/s"'
        )
        parser.add_argument(
            f"--set-{flag}",
            metavar="RATE",
            help=f'change the limit of {meaning} at MNT; "none" removes it',
        )
    parser.add_argument(
        "--slo",
        metavar="FILE",
        help="SLOs of applications and their scheduler (TOML)",
    )
    parser.add_argument(
        "--metrics",
        metavar="[USER@]HOST:PORT",
        help="serve Prometheus metrics at this address, to operators and one other "
        "user (default: prometheus)",
    )
    parser.add_argument(
        "--background", action="store_true", help="return when the mount is ready"
    )
    parser.add_argument(
        "--status", action="store_true", help="show limits and traffic of MNT"
    )
    parser.add_argument("--unmount", action="store_true", help="unmount MNT")
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --unmount: detach MNT although programs use it; they get errors",
    )
    add_json_option(parser)
    add_live_options(parser, (*WHERE, *LOG))


def main(arguments: argparse.Namespace) -> int:
    """Mount a folder, or send a command to a running mount."""
    changes = {
        name: rate
        for name in _LIMITS
        if (rate := getattr(arguments, f"set_{name}")) is not None
    }
    actions = [arguments.status, bool(changes), arguments.unmount]
    if sum(actions) > 1:
        raise InputError(
            "--status, --set-limit and --unmount exclude one another",
            remedy="give one of them",
        )
    _check_combination(arguments, is_mounted=any(actions))
    settings = live_settings(arguments)
    folder = settings.home / "mounts"
    if not any(actions):
        return _mount(arguments, folder, settings)
    point = _folders(arguments.folders, "MNT")[0]
    if arguments.unmount:
        return _unmount(point, folder, force=arguments.force)
    return _send(arguments, folder, point, changes)


def _check_combination(arguments: argparse.Namespace, *, is_mounted: bool) -> None:
    """Refuse options that would have no effect."""
    if not is_mounted:
        exclude(arguments, ("force", "json"), "BACKING MNT", "leave it out")
        return
    for_mounting = (*_LIMITS, "slo", "metrics", "background")
    exclude(arguments, for_mounting, "a running mount", "leave it out")
    if arguments.unmount:
        exclude(arguments, ("json",), "--unmount", "leave it out")
    else:
        others = "--status and --set-limit"
        exclude(arguments, ("force",), others, "use it with --unmount")


def waiting_words(number: int) -> str:
    """Return ``1 request waits``, ``2 requests wait``."""
    return f"{counted(number, 'request')} {'waits' if number == 1 else 'wait'}"


def _folders(folders: list[str], *names: str) -> list[str]:
    """Return the folders; raise `InputError` if there are too few or too many."""
    if len(folders) != len(names):
        raise InputError(
            f"{' and '.join(names)} expected, {counted(len(folders), 'folder')} given",
            remedy="see penstock mount --help",
        )
    return folders


# --- Mounting ---------------------------------------------------------------------


def _mount(arguments: argparse.Namespace, folder: Path, settings: Settings) -> int:
    from penstock.live.wire.folder import own_folder
    from penstock.mount.control import remove_dead_socket
    from penstock.mount.points import check_folders, detach_stale, folder_id

    limits = _limits(arguments)
    folders = _folders(arguments.folders, "BACKING", "MNT")
    if stale := detach_stale(folders[1]):
        remove_dead_socket(folder, stale)
    backing, point = check_folders(*folders)
    slo_settings = _slo_settings(arguments.slo, backing)
    _check_library()
    own_folder(settings.home)
    from penstock.mount.daemon import MountSpec
    from penstock.mount.service import why_unmet

    _compile_scheduler(slo_settings)
    if unmet := why_unmet(slo_settings, limits):
        sys.stderr.write(f"penstock: {arguments.slo}: {unmet}\n")
    backing_id = folder_id(Path(backing).stat())
    mount = MountSpec(backing, point, limits, folder, slo_settings, backing_id)
    if not arguments.background:
        start_logging(settings, sys.stderr)
        return _serve(mount, arguments.metrics, lambda: None)

    def serve(ready: Callable[[], None]) -> int:
        return _serve(mount, arguments.metrics, ready)

    return _in_background(serve, lambda: _leave_terminal(folder, settings))


def _compile_scheduler(slo_settings: SloSettings | None) -> None:
    """Compile the scheduler before the mount needs it: the first time takes seconds."""
    if slo_settings is None:
        return
    from penstock.cli.progress import said_if_slow, work_bar
    from penstock.mount.service import compile_scheduler

    doing = "compiling the scheduler, first time only"
    with said_if_slow(f"{doing}; this takes up to half a minute"), work_bar(doing):
        compile_scheduler(slo_settings)


def _serve(mount: MountSpec, metrics: str | None, ready: Callable[[], None]) -> int:
    from penstock.mount.daemon import serve

    def report_ready() -> None:
        ready()
        log = logging.getLogger("penstock.mount")
        log.info("%s is mounted at %s", mount.backing, mount.point)

    serve(mount, report_ready, lambda status: _metrics_server(metrics, status))
    return 0


def _metrics_server(
    address: str | None, status: Callable[[], MountStatus]
) -> AbstractContextManager[None]:
    """Return a server of Prometheus metrics, or nothing without an address."""
    if address is None:
        return nullcontext()
    import msgspec

    from penstock.live.daemon.metrics import MountCollector, answering

    return answering(address, MountCollector(lambda: msgspec.to_builtins(status())))


def _slo_settings(path: str | None, backing: str) -> SloSettings | None:
    from penstock.mount.slo_settings import read_document, slo_settings_from

    if path is None:
        return None
    try:
        return slo_settings_from(read_document(path), backing)
    except InputError as error:
        raise error if error.where == path else error.at(f"{path}: ") from None


def _limits(arguments: argparse.Namespace) -> Limits:
    from math import inf

    from penstock.mount.limits import Limits

    rates = [_rate(getattr(arguments, name), name) for name in _LIMITS]
    return Limits(*(inf if rate is None else rate for rate in rates))


def _rate(text: str | None, name: str) -> float | None:
    """Return a limit (bytes/s); None: no limit."""
    if text is None or text == "none":
        return None
    place = f"--{name.replace('_', '-')}: "
    try:
        rate = parse_bandwidth(text)
    except InputError as error:
        raise error.at(place) from None
    if rate < 1.0:
        raise InputError(
            f"{text!r} is not a limit",
            where=place.removesuffix(": "),
            remedy='give at least 1 B/s, or "none"',
        )
    return rate


def _check_library() -> None:
    """Check that there is a library of mounts and that FUSE can be used."""
    from penstock.native.files import mount_library_path

    mount_library_path()
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise InputError(
            "cannot be opened for reading and writing",
            where="/dev/fuse",
            remedy="load FUSE (modprobe fuse), or ask the administrator",
        )


def _in_background(
    serve: Callable[[Callable[[], None]], int], leave_terminal: Callable[[], None]
) -> int:
    """Serve in a child process; return when it is ready or has failed."""
    receive, send = os.pipe()
    child = os.fork()
    if child:
        os.close(send)
        with os.fdopen(receive, "rb") as stream:
            if stream.read():
                return 0
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(receive)
    os.setsid()

    def ready() -> None:
        leave_terminal()
        os.write(send, b"ready")
        os.close(send)

    return serve(ready)


def _leave_terminal(folder: Path, settings: Settings) -> None:
    """Close the standard streams, and log to a file."""
    null = os.open(os.devnull, os.O_RDWR)
    log = folder / "mounts.log"
    log.touch(mode=0o600)
    start_logging(settings, log.open("a", buffering=1))
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.chdir("/")


# --- A running mount --------------------------------------------------------------


def _send(
    arguments: argparse.Namespace, folder: Path, point: str, changes: dict[str, str]
) -> int:
    """Set limits, if any are given, and print the status."""
    from penstock.mount.control import GetMountStatus, send_command
    from penstock.mount.points import penstock_mount_at

    command: MountCommand = _set_limits(changes) if changes else GetMountStatus()
    status = send_command(folder, penstock_mount_at(point), command)
    if arguments.json:
        import msgspec

        write_json({"penstock": 1, **msgspec.to_builtins(status)}, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(f"{_text(status)}\n")
    return 0


def _set_limits(changes: dict[str, str]) -> MountCommand:
    from penstock.mount.control import SetLimits

    rates = {
        name.removesuffix("limit").rstrip("_") or "total": _rate(text, f"set_{name}")
        for name, text in changes.items()
    }
    return SetLimits(**rates)


def _text(status: MountStatus) -> str:
    """Return the status of a mount as lines of text."""
    # What was moved is shown in the units of the first limit; without one, decimal.
    limit = next((rate for rate in status.limits.values() if rate is not None), 0.0)
    shown = [
        f"{name} {format_bandwidth(rate)}"
        for name, rate in status.limits.items()
        if rate is not None
    ]
    lines = [
        f"{status.backing} at {status.point}, process {status.pid}",
        *_backing_lines(status),
        f"limits: {', '.join(shown) or 'none'}; {waiting_words(status.waiting)}",
    ]
    lines += [
        f"{name}: {format_volume(moved.moved_bytes, limit)} in {moved.requests} "
        f"requests, "
        f"waited {format_time(moved.held_up_s)}"
        for name, moved in (("read", status.read), ("written", status.write))
    ]
    others = f"other requests: {sum(status.metadata.values())}"
    if status.scheduling is not None:
        others += f"; {waiting_words(status.waiting_metadata)}"
    lines.append(others)
    if status.scheduling is not None:
        lines += scheduler_lines(status.scheduling)
    return "\n".join(lines)


def _backing_lines(status: MountStatus) -> list[str]:
    """Return a warning if another folder than the mounted one is at its path."""
    from penstock.mount.points import why_replaced

    why = why_replaced(status.backing, status.backing_id)
    if not why:
        return []
    return [
        f"warning: {status.backing} {why}; the mount serves the folder that was there "
        "before (unmount, and mount again)"
    ]


def scheduler_lines(status: SchedulerStatus) -> list[str]:
    """Return the scheduler and the service of applications as lines of text."""
    depth = "any number" if status.depth is None else f"{status.depth:g}"
    lines = [f"{status.scheduler}: {status.outstanding} under way, depth {depth}"]
    rows = [APPLICATION_COLUMNS, *map(application_cells, status.applications)]
    lines += format_table(rows).splitlines()
    lines.append(
        f"metadata: {status.metadata_outstanding} under way, "
        f"depth {status.metadata_depth}"
    )
    if status.credit:
        lines.append(f"credit: {status.credit}")
    return [*lines, *filter(None, [status.unmet])]


def application_cells(application: ApplicationState) -> tuple[str, ...]:
    """Return the cells of an application for `APPLICATION_COLUMNS`."""
    windows = application.windows
    kept = f"{application.kept_windows / windows:.0%}" if windows else "-"
    return (
        application.name,
        format_bandwidth(application.throughput_bytes_per_s),
        format_time(application.latency_s),
        format_bandwidth(application.bytes_per_s, application.throughput_bytes_per_s),
        "-" if application.p95_s is None else format_time(application.p95_s),
        str(application.queued),
        kept,
        _operations_cell(application),
    )


def _operations_cell(application: ApplicationState) -> str:
    """Return the metadata operations in total, and how many wait now if any do."""
    waiting = application.queued_operations
    return f"{application.operations}" + (f" ({waiting} queued)" if waiting else "")


# --- Unmounting -------------------------------------------------------------------


def _unmount(point: str, folder: Path, *, force: bool) -> int:
    from penstock.mount.control import remove_dead_socket
    from penstock.mount.points import penstock_mount_at, unmount

    entry = penstock_mount_at(point)
    _check_owner(entry, point)
    try:
        unmount(entry.point)
    except OSError as error:
        if error.errno != errno.EBUSY or not force:
            raise InputError(
                f"cannot be unmounted: {error.strerror}",
                where=point,
                remedy="end the programs that use it (see fuser -vm), or give --force",
            ) from None
        _force(entry, folder)
    remove_dead_socket(folder, entry)
    return 0


def _check_owner(entry: MountTableEntry, point: str) -> None:
    """Refuse to unmount what another user has mounted, unless as root."""
    owner = entry.user_id
    if os.geteuid() == 0 or owner is None or owner == os.getuid():
        return
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = str(owner)
    raise InputError(
        f"cannot be unmounted: user {name} has mounted it",
        where=point,
        remedy=f"run as {name}" if owner == 0 else f"run as {name}, or as root",
    )


def _force(entry: MountTableEntry, folder: Path) -> None:
    """Detach the mount, and stop its process."""
    from penstock.mount.control import Stop, send_command
    from penstock.mount.points import has_ended, unmount

    is_running = not has_ended(entry.point)
    unmount(entry.point, lazy=True)
    if is_running:
        send_command(folder, entry, Stop())
