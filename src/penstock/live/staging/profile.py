# SPDX-License-Identifier: MIT
"""Measure b(n): the bandwidth of a program that is alone on 1, 2, ... storage targets.

For every n, a driver assigns a folder of its own to the first n targets; several
threads write a file each into it and sync it. The time from the first write to the last
sync counts. All n are measured in turn, several times, and the median counts, so that
other work on the storage disturbs all n alike.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from penstock.errors import InputError
from penstock.live.staging.drivers import Driver
from penstock.live.staging.drivers.directories import Directories

__all__ = ["ProfileTask", "measure_profile"]

_BLOCK: Final = bytes(1 << 20)


@dataclass(frozen=True)
class ProfileTask:
    """How much is written, and how often."""

    volume_bytes: int = 256 << 20
    """What all streams together write for one measurement."""
    streams: int = 8
    """Number of files that are written at the same time."""
    repeats: int = 3
    """Number of measurements on each number of targets."""


def measure_profile(
    driver: Driver, root: Path, names: Sequence[str], task: ProfileTask
) -> list[float]:
    """Return b(1), ..., b(N) for the N targets `names` (bytes/s).

    Raises
    ------
    InputError
        If the targets cannot be assigned or written.
    UnavailableError
        If the file system does not answer.
    """
    measured: list[list[float]] = [[] for _ in names]
    with _own_folder(driver, root) as folder:
        for _ in range(task.repeats):
            for number, rates in enumerate(measured, 1):
                driver.assign(folder, names[:number])
                rates.append(_write_rate(folder, number, task))
    return [median(rates) for rates in measured]


@contextmanager
def _own_folder(driver: Driver, root: Path) -> Iterator[Path]:
    """Make a folder to be assigned, and remove it.

    Plain directories are reached through links, which must not lie among the targets.
    """
    parent = None if isinstance(driver, Directories) else root
    try:
        folder = Path(tempfile.mkdtemp(prefix=".penstock-profile-", dir=parent))
    except OSError as error:
        raise InputError(
            f"cannot make a folder: {error.strerror}",
            where=str(root),
            remedy="give a file system that you can write to",
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_rate(folder: Path, targets: int, task: ProfileTask) -> float:
    """Write files in all streams; return their rate together (bytes/s)."""
    paths = [_path(folder, stream, targets) for stream in range(task.streams)]
    blocks = max(round(task.volume_bytes / len(_BLOCK) / task.streams), 1)
    try:
        with ThreadPoolExecutor(task.streams) as threads:
            began_s = time.monotonic()
            list(threads.map(lambda path: _write(path, blocks), paths))
            elapsed_s = time.monotonic() - began_s
    except OSError as error:
        raise InputError(
            f"cannot write: {error.strerror}",
            where=str(error.filename or folder),
            remedy="check space and permissions",
        ) from None
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    return blocks * len(_BLOCK) * task.streams / max(elapsed_s, 1e-6)


def _path(folder: Path, stream: int, targets: int) -> Path:
    """Return the file of a stream; plain directories have a link for each target."""
    slot = folder / str(stream % targets)
    return (slot if slot.is_dir() else folder) / f"{folder.name}-{stream}"


def _write(path: Path, blocks: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(blocks):
            rest = memoryview(_BLOCK)
            while rest:
                rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
    finally:
        os.close(fd)
