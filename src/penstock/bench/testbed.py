# SPDX-License-Identifier: MIT
"""The testbed of a live benchmark: folders, a daemon, a mount with a limit.

All files are below one temporary folder, and all processes end with their context
manager. Daemon and mount are ordinary penstock commands, started as by a user.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError, UnavailableError
from penstock.live.settings import Settings
from penstock.live.wire.frames import Client
from penstock.model import Platform
from penstock.native.files import program_path

__all__ = [
    "TIMEOUT_S",
    "BenchDaemon",
    "LimitedMount",
    "LiveTestbed",
    "clean_environment",
    "high_priority",
    "limited_mount",
    "open_testbed",
    "run_mount_command",
    "running_daemon",
    "temporary_folder",
]

#: Longest wait for any command.
TIMEOUT_S: Final = 300.0
#: Longest wait for the daemon.
_START_S: Final = 120.0
_POLL_S: Final = 0.02
#: Priority of processes that must be on time; only root may set it.
_NICENESS: Final = -15
#: Priority of the session of this process among all sessions, if there are autogroups.
_AUTOGROUP: Final = Path("/proc/self/autogroup")


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Create a folder inside `folder`, and remove it afterwards."""
    try:
        temporary = tempfile.TemporaryDirectory(dir=folder, prefix="penstock-")
    except OSError as error:
        raise InputError(
            f"no temporary folder can be created: {error.strerror}",
            where=str(folder),
            remedy="choose a folder with 200 MB of free space with --folder",
        ) from None
    with temporary as name:
        yield Path(name)


def clean_environment() -> dict[str, str]:
    """Return the environment of this process without settings of penstock."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}


# --- The daemon -------------------------------------------------------------------


@dataclass(frozen=True)
class BenchDaemon:
    """A running ``penstock serve``."""

    folder: Path
    process: subprocess.Popen[bytes]

    def await_ready(self) -> None:
        """Wait until the daemon answers; raise `InputError` if it has ended."""
        deadline = time.monotonic() + _START_S
        while True:
            try:
                Client(Settings(folder=str(self.folder)).socket).close()
            except UnavailableError:
                if self.process.poll() is not None:
                    raise InputError(_last_line(_log_of(self.folder))) from None
                if time.monotonic() > deadline:
                    raise
            else:
                return
            time.sleep(_POLL_S)


@contextmanager
def running_daemon(folder: Path, **settings: object) -> Iterator[BenchDaemon]:
    """Run ``penstock serve`` with `folder` and these settings during the block."""
    words = [f"--{name.replace('_', '-')}={text}" for name, text in settings.items()]
    command = [sys.executable, "-m", "penstock", "serve", f"--folder={folder}", *words]
    with _log_of(folder).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own program
            command,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield BenchDaemon(folder, process)
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def _log_of(folder: Path) -> Path:
    return folder.with_name("serve.log")


def _last_line(log: Path) -> str:
    """Return the last message of a daemon that has ended."""
    lines = log.read_text(errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line), "it printed no message")
    return f"penstock serve has ended: {last.removeprefix('penstock: ')}"


# --- The mount --------------------------------------------------------------------


@dataclass(frozen=True)
class LimitedMount:
    """A mounted folder with a bandwidth limit."""

    point: Path
    folder: Path
    """Folder of its control socket."""

    def written_bytes(self) -> int:
        """Return the bytes written through the mount."""
        status: dict[str, Any] = json.loads(self.command("--status", "--json=-"))
        return int(status["write"]["bytes"])

    def set_limit(self, bytes_per_s: float) -> None:
        """Change the limit."""
        self.command(f"--set-limit={bytes_per_s} B/s")

    def command(self, *words: str) -> str:
        """Run ``penstock mount`` for this mount; return its output."""
        return run_mount_command(self.folder, *words, str(self.point))


@contextmanager
def limited_mount(root: Path, bytes_per_s: float) -> Iterator[LimitedMount]:
    """Mount a new folder below `root` with a limit during the block."""
    backing, point = root / "backing", root / "mount"
    backing.mkdir()
    point.mkdir()
    mount = LimitedMount(point, root / "mounts")
    options = [f"--limit={bytes_per_s} B/s", "--background"]
    run_mount_command(mount.folder, *options, str(backing), str(point))
    try:
        yield mount
    finally:
        mount.command("--unmount", "--force")


def run_mount_command(folder: Path, *words: str, before: Sequence[str] = ()) -> str:
    """Run ``penstock mount`` with its sockets in `folder`; return its output.

    `before` is a command that starts commands, for example in another namespace.
    """
    command = [sys.executable, "-m", "penstock", "mount", f"--folder={folder}", *words]
    done = subprocess.run(  # noqa: S603 - our own program
        [*before, *command],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().removeprefix("penstock: ")
        raise InputError(f"the benchmark cannot use a mount: {reason}")
    return done.stdout


# --- Daemon and mount -------------------------------------------------------------


@dataclass(frozen=True)
class LiveTestbed:
    """A mount with a limit, and the program of ``application.c``."""

    root: Path
    program: Path
    mount: LimitedMount
    bandwidth_bytes_per_s: float
    """First limit of the mount."""

    @contextmanager
    def daemon(
        self, policy: str, platform: Platform, archive: Path | str = "none"
    ) -> Iterator[BenchDaemon]:
        """Run a new daemon that controls the mount during the block.

        `archive` is the folder in which it records what jobs do; "none": nowhere.
        """
        # A short name, because the path of a socket is limited to about 100 characters.
        with tempfile.TemporaryDirectory(dir=self.root, prefix="s") as name:
            settings = {
                "policy": policy,
                "bandwidth": f"{platform.bandwidth} B/s",
                "node_bandwidth": f"{platform.node_bandwidth} B/s",
                "prefixes": self.mount.point,
                "archive": archive,
            }
            with running_daemon(Path(name), **settings) as daemon:
                yield daemon


@contextmanager
def open_testbed(folder: Path, bandwidth_bytes_per_s: float) -> Iterator[LiveTestbed]:
    """Set up a testbed in `folder` whose mount has this limit."""
    with temporary_folder(folder) as root, high_priority():
        program = program_path("application")
        with limited_mount(root, bandwidth_bytes_per_s) as mount:
            yield LiveTestbed(root, program, mount, bandwidth_bytes_per_s)


@contextmanager
def high_priority() -> Iterator[None]:
    """Raise the priority of this process and its children, if that is allowed.

    Otherwise a process that should wake up may have to wait for other programs of this
    machine, and the benchmark would measure that.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    with suppress(OSError):
        # With autogroups, priorities count only within a session; so does this one's.
        _AUTOGROUP.write_text(str(_NICENESS))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
        with suppress(OSError):
            _AUTOGROUP.write_text("0")
