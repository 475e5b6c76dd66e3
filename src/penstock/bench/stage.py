# SPDX-License-Identifier: MIT
"""What a benchmark on real parts stands on: programs, a daemon, a limited mount.

Everything lies below one folder, ends with its context, and is an ordinary command of
penstock, started as a user would start it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError, UnavailableError
from penstock.live.settings import Settings
from penstock.live.wire.frames import Client
from penstock.model import Platform

__all__ = [
    "LIMIT_S",
    "BenchStage",
    "Daemon",
    "LimitedMount",
    "compiled",
    "free_environment",
    "mounted",
    "serving",
    "staged",
    "workspace",
]

#: Longest wait for anything (s).
LIMIT_S: Final = 300.0
_START_S: Final = 120.0
_LOOK_S: Final = 0.02
#: Niceness of what must be on time; only root may ask for it.
_URGENT: Final = -15
_SOURCES: Final = Path(__file__).parent


@contextmanager
def workspace(folder: Path) -> Iterator[Path]:
    """Make a folder in `folder`, and remove it afterwards."""
    try:
        made = tempfile.TemporaryDirectory(dir=folder, prefix="penstock-")
    except OSError as error:
        raise InputError(
            f"no benchmark here: {error.strerror}",
            where=str(folder),
            remedy="name a folder with 200 MB of room, in memory if you can: --folder",
        ) from None
    with made as name:
        yield Path(name)


def compiled(name: str, folder: Path) -> Path:
    """Return the program of the source ``name.c`` beside this file."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise InputError("no C compiler for the benchmark", remedy="install gcc")
    target = folder / name
    source = _SOURCES / f"{name}.c"
    done = subprocess.run(  # noqa: S603 - our own command
        [compiler, "-O2", "-o", str(target), str(source), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if done.returncode != 0:
        raise InputError(
            "the benchmark cannot be compiled", remedy="install the headers (libc6-dev)"
        )
    return target


def free_environment() -> dict[str, str]:
    """Return this process's environment without any setting of penstock."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}


# --- The daemon -------------------------------------------------------------------


@dataclass(frozen=True)
class Daemon:
    """A ``penstock serve`` that has been started."""

    folder: Path
    process: subprocess.Popen[bytes]

    def await_ready(self) -> None:
        """Return when it answers."""
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
            time.sleep(_LOOK_S)


@contextmanager
def serving(folder: Path, **settings: object) -> Iterator[Daemon]:
    """Start ``penstock serve`` in `folder` with these settings, and end it."""
    words = [f"--{name.replace('_', '-')}={text}" for name, text in settings.items()]
    command = [sys.executable, "-m", "penstock", "serve", f"--folder={folder}", *words]
    with _log_of(folder).open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - ourselves
            command,
            env=free_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield Daemon(folder, process)
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def _log_of(folder: Path) -> Path:
    return folder.with_name("serve.log")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").split("\n")
    said = next((line for line in reversed(lines) if line), "it said nothing")
    return f"penstock serve has ended: {said.removeprefix('penstock: ')}"


# --- The mount --------------------------------------------------------------------


@dataclass(frozen=True)
class LimitedMount:
    """A limited mount."""

    point: Path
    folder: Path
    """Where its socket lies."""

    def written_bytes(self) -> int:
        """Return what has been written through it so far."""
        found: dict[str, Any] = json.loads(self.ask("--status", "--json=-"))
        return int(found["write"]["bytes"])

    def set_limit(self, limit: float) -> None:
        """Let it move so much from now on (bytes/s)."""
        self.ask(f"--set-limit={limit} B/s")

    def ask(self, *words: str) -> str:
        """Return what ``penstock mount`` says about it."""
        return _mount(self.folder, *words, str(self.point))


@contextmanager
def mounted(root: Path, limit: float) -> Iterator[LimitedMount]:
    """Mount a new folder below `root` through a limit (bytes/s)."""
    backing, point = root / "backing", root / "mount"
    backing.mkdir()
    point.mkdir()
    mount = LimitedMount(point, root / "mounts")
    _mount(
        mount.folder, f"--limit={limit} B/s", "--background", str(backing), str(point)
    )
    try:
        yield mount
    finally:
        mount.ask("--unmount", "--force")


def _mount(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "penstock", "mount", f"--folder={folder}", *words]
    done = subprocess.run(  # noqa: S603 - ourselves
        command,
        env=free_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().removeprefix("penstock: ")
        raise InputError(f"no mount for the benchmark: {reason}")
    return done.stdout


# --- Both, for applications -------------------------------------------------------


@dataclass(frozen=True)
class BenchStage:
    """A limited mount, and the program that plays applications on it."""

    root: Path
    program: Path
    mount: LimitedMount
    bandwidth: float
    """Limit of the mount at first (bytes/s)."""

    @contextmanager
    def served(self, policy: str, platform: Platform) -> Iterator[Daemon]:
        """Start a new daemon, which knows no job, to control the mount."""
        # Short: the path of a socket may have about a hundred characters.
        with tempfile.TemporaryDirectory(dir=self.root, prefix="s") as name:
            settings = {
                "policy": policy,
                "bandwidth": f"{platform.bandwidth} B/s",
                "node_bandwidth": f"{platform.node_bandwidth} B/s",
                "prefixes": self.mount.point,
            }
            with serving(Path(name), **settings) as daemon:
                yield daemon


@contextmanager
def staged(folder: Path, bandwidth: float) -> Iterator[BenchStage]:
    """Set a stage up in `folder`, with a mount of this limit (bytes/s)."""
    with workspace(folder) as root, _urgent():
        program = compiled("application", root)
        with mounted(root, bandwidth) as mount:
            yield BenchStage(root, program, mount, bandwidth)


@contextmanager
def _urgent() -> Iterator[None]:
    """Let what is started meanwhile go before other processes, if that is allowed.

    Else a process that is to wake now may have to wait for whatever else this machine
    does, and the benchmark would measure that.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _URGENT)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
