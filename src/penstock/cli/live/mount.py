# SPDX-License-Identifier: MIT
"""Mount a folder through a limit: one mount is one storage target.

``penstock mount BACKING MNT --limit RATE --slo FILE``; the rest is asked of a mount
that runs: ``penstock mount --status MNT``, ``--set-limit RATE MNT``,
``--unmount MNT``.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from penstock.cli.live.options import WHERE, add_live_options, live_settings
from penstock.cli.options import add_json_option, exclude, write_json
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.mount.control import (
        ApplicationState,
        MountStatus,
        Question,
        SchedulerStatus,
    )
    from penstock.mount.daemon import MountSpec
    from penstock.mount.limiter import Limits
    from penstock.mount.objectives import Objectives
    from penstock.mount.points import Mounted

__all__ = [
    "APPLICATION_COLUMNS",
    "SUMMARY",
    "application_cells",
    "main",
    "order_text",
    "setup_parser",
]

SUMMARY = "mount a folder through a bandwidth limit"

_LIMITS = {
    "limit": "all reads and writes together",
    "read_limit": "all reads",
    "write_limit": "all writes",
}
#: What is shown of an application.
APPLICATION_COLUMNS: tuple[str, ...] = (
    *("application", "promised", "within", "has", "p95", "queued", "kept"),
)


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock mount``."""
    parser.usage = (
        "penstock mount [options] BACKING MNT\n"
        "       penstock mount --status | --set-limit RATE | --unmount  MNT"
    )
    parser.add_argument("folders", nargs="+", metavar="BACKING MNT", help="two folders")
    for name, meaning in _LIMITS.items():
        flag = name.replace("_", "-")
        parser.add_argument(
            f"--{flag}", metavar="RATE", help=f'what {meaning} may move: "100 MB/s"'
        )
        parser.add_argument(
            f"--set-{flag}",
            metavar="RATE",
            help=f'change what {meaning} may move at MNT; "none" ends the limit',
        )
    parser.add_argument(
        "--slo",
        metavar="FILE",
        help="throughput and latency for applications, and who schedules them (TOML)",
    )
    parser.add_argument(
        "--metrics", metavar="HOST:PORT", help="answer Prometheus there"
    )
    parser.add_argument(
        "--background", action="store_true", help="return when the mount is ready"
    )
    parser.add_argument(
        "--status", action="store_true", help="tell limits and what has passed at MNT"
    )
    parser.add_argument("--unmount", action="store_true", help="unmount MNT")
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --unmount: also if programs use it; they get errors",
    )
    add_json_option(parser)
    add_live_options(parser, WHERE)


def main(arguments: argparse.Namespace) -> int:
    """Mount, or ask something of a mount."""
    changes = {
        name: rate
        for name in _LIMITS
        if (rate := getattr(arguments, f"set_{name}")) is not None
    }
    asked = [arguments.status, bool(changes), arguments.unmount]
    if sum(asked) > 1:
        raise InputError(
            "--status, --set-limit and --unmount exclude one another",
            remedy="give one of them",
        )
    _check_together(arguments, asks=any(asked))
    folder = live_settings(arguments).home / "mounts"
    if not any(asked):
        return _mount(arguments, folder)
    point = _only(arguments.folders, "MNT")[0]
    if arguments.unmount:
        return _unmount(point, folder, force=arguments.force)
    return _ask(arguments, folder, point, changes)


def _check_together(arguments: argparse.Namespace, *, asks: bool) -> None:
    """Refuse options that would have no effect."""
    if not asks:
        exclude(arguments, ("force", "json"), "BACKING MNT", "leave it out")
        return
    of_mounting = (*_LIMITS, "slo", "metrics", "background")
    exclude(arguments, of_mounting, "a mount that runs", "leave it out")
    if arguments.unmount:
        exclude(arguments, ("json",), "--unmount", "leave it out")
    else:
        others = "--status and --set-limit"
        exclude(arguments, ("force",), others, "it goes with --unmount")


def _only(folders: list[str], *names: str) -> list[str]:
    if len(folders) != len(names):
        raise InputError(
            f"{len(folders)} folders given, {' and '.join(names)} wanted",
            remedy="see penstock mount --help",
        )
    return folders


# --- Mounting ---------------------------------------------------------------------


def _mount(arguments: argparse.Namespace, folder: Path) -> int:
    from penstock.mount.points import check_folders

    limits = _limits(arguments)
    objectives = _objectives(arguments.slo)
    backing, point = check_folders(*_only(arguments.folders, "BACKING", "MNT"))
    _check_library()
    from penstock.mount.daemon import MountSpec
    from penstock.mount.service import why_unmet

    if unmet := why_unmet(objectives, limits):
        sys.stderr.write(f"penstock: {arguments.slo}: {unmet}\n")
    mount = MountSpec(backing, point, limits, folder, objectives)
    if not arguments.background:
        _log_to(sys.stderr)
        return _serve(mount, arguments.metrics, lambda: None)
    return _in_background(lambda ready: _serve(mount, arguments.metrics, ready), folder)


def _serve(mount: MountSpec, metrics: str | None, ready: Callable[[], None]) -> int:
    from penstock.mount.daemon import serve

    def say_ready() -> None:
        ready()
        log = logging.getLogger("penstock.mount")
        log.info("%s is mounted at %s", mount.backing, mount.point)

    serve(mount, say_ready, lambda state: _published(metrics, state))
    return 0


def _published(
    address: str | None, state: Callable[[], MountStatus]
) -> AbstractContextManager[None]:
    """Answer Prometheus at an address, if there is one."""
    if address is None:
        return nullcontext()
    import msgspec

    from penstock.live.daemon.metrics import MountCollector, answering

    return answering(address, MountCollector(lambda: msgspec.to_builtins(state())))


def _objectives(path: str | None) -> Objectives | None:
    from penstock.mount.objectives import objectives_from, read_document

    if path is None:
        return None
    try:
        return objectives_from(read_document(path))
    except InputError as error:
        raise error if error.where == path else error.at(f"{path}: ") from None


def _limits(arguments: argparse.Namespace) -> Limits:
    from math import inf

    from penstock.mount.limiter import Limits

    rates = [_rate(getattr(arguments, name), name) for name in _LIMITS]
    return Limits(*(inf if rate is None else rate for rate in rates))


def _rate(text: str | None, name: str) -> float | None:
    """Return a limit (bytes/s); None: there is none."""
    from penstock.units import parse_bandwidth

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
    from importlib.util import find_spec

    if find_spec("pyfuse3") is None:
        raise InputError(
            "penstock mount needs pyfuse3",
            remedy="install fuse3, libfuse3-dev and pkg-config, then penstock[mount] "
            "(in a checkout: pip install -e '.[mount]')",
        )
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise InputError(
            "cannot be opened for reading and writing",
            where="/dev/fuse",
            remedy="FUSE is needed: modprobe fuse, or ask who runs this machine",
        )


def _in_background(serve: Callable[[Callable[[], None]], int], folder: Path) -> int:
    """Serve in a process of its own; return when it is ready or has failed."""
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
        _leave_terminal(folder)
        os.write(send, b"ready")
        os.close(send)

    return serve(ready)


def _leave_terminal(folder: Path) -> None:
    """Let go of whatever the caller reads or closes; log to a file."""
    null = os.open(os.devnull, os.O_RDWR)
    log = folder / "mounts.log"
    log.touch(mode=0o600)
    _log_to(log.open("a", buffering=1))
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.chdir("/")


def _log_to(stream: TextIO) -> None:
    logging.basicConfig(
        stream=stream,
        level=logging.INFO,
        format="%(asctime)s %(name)s[%(process)d]: %(message)s",
    )


# --- Asking -----------------------------------------------------------------------


def _ask(
    arguments: argparse.Namespace, folder: Path, point: str, changes: dict[str, str]
) -> int:
    from penstock.mount.control import GetMountStatus, ask
    from penstock.mount.points import own_mount

    question: Question = _change(changes) if changes else GetMountStatus()
    state = ask(folder, own_mount(point), question)
    if arguments.json:
        import msgspec

        write_json({"penstock": 1, **msgspec.to_builtins(state)}, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(f"{_text(state)}\n")
    return 0


def _change(changes: dict[str, str]) -> Question:
    from penstock.mount.control import SetLimits

    rates = {
        name.removesuffix("limit").rstrip("_") or "total": _rate(text, f"set_{name}")
        for name, text in changes.items()
    }
    return SetLimits(**rates)


def _text(state: MountStatus) -> str:
    """Return the state of a mount as lines of text."""
    from penstock.units import format_bandwidth, format_time, format_volume

    shown = [
        f"{name} {format_bandwidth(rate)}"
        for name, rate in state.limits.items()
        if rate is not None
    ]
    lines = [
        f"{state.backing} at {state.point}, process {state.pid}",
        f"limits: {', '.join(shown) or 'none'}; {state.waiting} requests wait",
    ]
    lines += [
        f"{name}: {format_volume(moved.bytes)} in {moved.requests} requests, "
        f"waited {format_time(moved.waited_s)}"
        for name, moved in (("read", state.read), ("written", state.write))
    ]
    lines.append(f"other requests: {sum(state.metadata.values())}")
    if state.order is not None:
        lines += order_text(state.order)
    return "\n".join(lines)


def order_text(order: SchedulerStatus) -> list[str]:
    """Return in lines of text who schedules, and how applications are served."""
    depth = "any number" if order.depth is None else f"{order.depth:g}"
    lines = [f"{order.scheduler}: {order.outstanding} under way, depth {depth}"]
    rows = [APPLICATION_COLUMNS, *map(application_cells, order.applications)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*lines, *filter(None, [order.unmet])]


def application_cells(line: ApplicationState) -> tuple[str, ...]:
    """Return how an application is served, in the columns of a table."""
    from penstock.units import format_bandwidth, format_time

    return (
        line.name,
        format_bandwidth(line.throughput),
        format_time(line.latency),
        format_bandwidth(line.bytes_per_s),
        "-" if line.p95_s is None else format_time(line.p95_s),
        str(line.queued),
        f"{line.kept / line.windows:.0%}" if line.windows else "-",
    )


# --- Unmounting -------------------------------------------------------------------


def _unmount(point: str, folder: Path, *, force: bool) -> int:
    from penstock.mount.points import own_mount, unmount

    mounted = own_mount(point)
    try:
        unmount(mounted.point)
    except OSError as error:
        if error.errno != errno.EBUSY or not force:
            raise InputError(
                f"cannot be unmounted: {error.strerror}",
                where=point,
                remedy="end the programs that use it (fuser -vm), or give --force",
            ) from None
        _force(mounted, folder)
    return 0


def _force(mounted: Mounted, folder: Path) -> None:
    from penstock.mount.control import Stop, ask
    from penstock.mount.points import unmount

    unmount(mounted.point, lazy=True)
    ask(folder, mounted, Stop())
