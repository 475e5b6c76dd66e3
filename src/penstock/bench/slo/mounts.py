# SPDX-License-Identifier: MIT
"""Mounts for the benchmark of schedulers: one that schedules, one that does not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError

__all__ = ["Promise", "Watch", "plain_mount", "scheduled_mount"]

_LIMIT_S: Final = 60.0
_LOOK_S: Final = 0.02
#: Application -> throughput (bytes/s) and latency (s).
Promise = Mapping[str, tuple[float, float]]


@contextmanager
def scheduled_mount(
    root: Path, scheduler: str, promises: Promise, limit: float | None = None
) -> Iterator[Path]:
    """Mount a new folder with a folder in it for each application; yield the point."""
    backing, point = _folders(root, *promises)
    (root / "slo.toml").write_text(_objectives(scheduler, promises))
    limits = [] if limit is None else [f"--limit={limit} B/s"]
    options = [f"--slo={root / 'slo.toml'}", "--background", *limits]
    _penstock(root, *options, str(backing), str(point))
    try:
        yield point
    finally:
        _penstock(root, "--unmount", "--force", str(point))


@contextmanager
def plain_mount(root: Path) -> Iterator[Path]:
    """Mount a new folder without any scheduling; yield the point."""
    backing, point = _folders(root)
    words = ["-m", "penstock.bench.slo.plain", str(backing), str(point)]
    process = subprocess.Popen([sys.executable, *words])  # noqa: S603 - ourselves
    try:
        _await(lambda: os.path.ismount(point) or process.poll() is not None)
        if process.poll() is not None:
            raise InputError("no mount for the benchmark", remedy="see above")
        yield point
    finally:
        _run(["fusermount3", "-u", "-z", str(point)])
        process.wait(_LIMIT_S)


def _folders(root: Path, *names: str) -> tuple[Path, Path]:
    backing, point = root / "backing", root / "mount"
    point.mkdir(parents=True)
    for name in ("", *names):
        (backing / name).mkdir(parents=True)
    return backing, point


def _objectives(scheduler: str, promises: Promise) -> str:
    lines = [f'scheduler = "{scheduler}"']
    for name, (throughput, latency) in promises.items():
        lines.append(f"[applications.{name}]")
        lines.append(f"throughput = {throughput}\nlatency = {latency}")
    lines += [f'[[rules]]\napplication = "{n}"\npath = "{n}"' for n in promises]
    return "\n".join(lines) + "\n"


def _penstock(root: Path, *words: str) -> None:
    command = [sys.executable, "-m", "penstock", "mount", f"--folder={root / 'run'}"]
    done = _run([*command, *words])
    if done.returncode != 0:
        reason = done.stderr.strip().removeprefix("penstock: ")
        raise InputError(f"no mount for the benchmark: {reason}")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - ourselves
        command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
    )


def _await(condition: Any) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(_LOOK_S)


@dataclass
class Watch:
    """Looks at the depth of a mount's scheduler in every window.

    A look is a line to the mount's socket, not a command: it costs next to nothing.
    """

    point: Path
    begin: float
    """When windows begin (s, monotonic clock)."""
    window_s: float
    depths: list[float | None] = field(default_factory=list)
    """Depth in each window; None: any number."""

    def __enter__(self) -> Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_LIMIT_S)

    def _look_on(self) -> None:
        while not self._over.wait(self._until_next()):
            self.depths.append(self._look())

    def _until_next(self) -> float:
        middle = self.begin + (len(self.depths) + 0.5) * self.window_s
        return max(0.0, middle - time.monotonic())

    def _look(self) -> float | None:
        (path,) = (self.point.parent / "run" / "mounts").glob("*.sock")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_LIMIT_S)
            connection.connect(str(path))
            connection.sendall(b'{"type":"status"}\n')
            with connection.makefile("rb") as stream:
                depth: float | None = json.loads(stream.readline())["order"]["depth"]
        return depth
