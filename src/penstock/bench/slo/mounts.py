# SPDX-License-Identifier: MIT
"""Mounts for the benchmark of schedulers: one with a scheduler, one without."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.bench.testbed import run_mount_command
from penstock.errors import InputError
from penstock.mount.control import all_statuses
from penstock.mount.points import unmount
from penstock.native.files import program_path

__all__ = ["DepthRecorder", "Slos", "plain_mount", "scheduled_mount", "slo_file"]

_TIMEOUT_S: Final = 60.0
_POLL_S: Final = 0.02
#: Application -> throughput (bytes/s) and latency (s).
Slos = Mapping[str, tuple[float, float]]


@contextmanager
def scheduled_mount(
    root: Path, scheduler: str, slos: Slos, limit: float | None = None
) -> Iterator[Path]:
    """Mount a new folder with a subfolder per application; yield the mount point.

    `limit` is in bytes/s; None: no limit.
    """
    backing, point = _make_folders(root, *slos)
    (root / "slo.toml").write_text(slo_file(scheduler, slos))
    limits = [] if limit is None else [f"--limit={limit} B/s"]
    options = [f"--slo={root / 'slo.toml'}", "--background", *limits]
    run_mount_command(root / "run", *options, str(backing), str(point))
    try:
        yield point
    finally:
        run_mount_command(root / "run", "--unmount", "--force", str(point))


@contextmanager
def plain_mount(root: Path) -> Iterator[Path]:
    """Mount a new folder with ``plain.c``; yield the mount point."""
    backing, point = _make_folders(root)
    program = program_path("plain")
    process = subprocess.Popen([program, backing, point])  # noqa: S603 - our own
    try:
        _await(lambda: os.path.ismount(point) or process.poll() is not None)
        if process.poll() is not None:
            raise InputError(
                "the benchmark cannot mount a folder",
                remedy="see the error message above",
            )
        yield point
    finally:
        # If the process has failed, nothing is mounted.
        with suppress(OSError):
            unmount(str(point), lazy=True)
        process.wait(_TIMEOUT_S)


def _make_folders(root: Path, *names: str) -> tuple[Path, Path]:
    backing, point = root / "backing", root / "mount"
    point.mkdir(parents=True)
    for name in ("", *names):
        (backing / name).mkdir(parents=True)
    return backing, point


def slo_file(scheduler: str, slos: Slos) -> str:
    """Return the content of a file for ``--slo``."""
    lines = [f'scheduler = "{scheduler}"']
    for name, (throughput, latency) in slos.items():
        lines.append(f"[applications.{name}]")
        lines.append(f"throughput = {throughput}\nlatency = {latency}")
    lines += [f'[[rules]]\napplication = "{n}"\npath = "{n}"' for n in slos]
    return "\n".join(lines) + "\n"


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(_POLL_S)


@dataclass
class DepthRecorder:
    """Records the depth of a mount's scheduler in the middle of every window."""

    point: Path
    begin: float
    """Start of the first window (s, monotonic clock)."""
    window_s: float
    depths: list[float | None] = field(default_factory=list)
    """Depth in each window; None: no maximum."""

    def __enter__(self) -> DepthRecorder:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._record, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(_TIMEOUT_S)

    def _record(self) -> None:
        while not self._stopped.wait(self._wait_s()):
            self.depths.append(self._depth())

    def _wait_s(self) -> float:
        middle = self.begin + (len(self.depths) + 0.5) * self.window_s
        return max(0.0, middle - time.monotonic())

    def _depth(self) -> float | None:
        (status,) = all_statuses(self.point.parent / "run" / "mounts")
        return None if status.scheduling is None else status.scheduling.depth
