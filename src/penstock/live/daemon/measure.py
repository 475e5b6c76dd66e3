# SPDX-License-Identifier: MIT
"""A short measurement of the write bandwidth of a folder.

It writes a temporary file for a given time and forces it to the storage; both count.
It does so twice: while somebody else uses the storage the two differ, and then nothing
is known. The result is a first estimate, which the controller corrects later
(`penstock.live.control.storage.bandwidth`).
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = ["measure_bandwidth", "write_bandwidth"]

_BLOCK: Final = bytes(1 << 20)
_MOST_BLOCKS: Final = 256
#: Two measurements that differ by more than this part were taken under contention.
_AGREEMENT: Final = 0.25
#: More I/O of others on the device in `_LOOK_S` than this is contention (bytes).
_LOOK_S: Final = 0.05
_OTHERS_BYTES: Final = 1 << 20
_SECTOR_BYTES: Final = 512
_DISKSTATS: Final = Path("/proc/diskstats")


def measure_bandwidth(folder: Path, duration_s: float = 0.5) -> float | None:
    """Return the bandwidth at which a folder can be written (bytes/s).

    None if somebody else uses the storage: nothing can be said then.
    """
    try:
        if _others_use(folder):
            return None
        first, second = (write_bandwidth(folder, duration_s / 2) for _ in range(2))
    except OSError as error:
        raise InputError(
            f"cannot measure the bandwidth: {error.strerror or error}",
            where=str(folder),
            remedy="give --bandwidth",
        ) from None
    low, high = sorted((first, second))
    return high if low >= (1.0 - _AGREEMENT) * high else None


def write_bandwidth(folder: Path, duration_s: float = 0.5) -> float:
    """Return the bandwidth at which a file is written now, whoever else does I/O."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
        began = time.monotonic()
        blocks = 0
        while blocks < _MOST_BLOCKS and time.monotonic() - began < duration_s:
            stream.write(_BLOCK)
            blocks += 1
        os.fsync(stream.fileno())
        elapsed = time.monotonic() - began
    return blocks * len(_BLOCK) / max(elapsed, 1e-6)


def _others_use(folder: Path, diskstats: Path = _DISKSTATS) -> bool:
    """Return True if the block device of a folder is in use, as far as it is known."""
    device = folder.stat().st_dev
    before = _sectors(device, diskstats)
    if before is None:
        return False
    time.sleep(_LOOK_S)
    moved = (_sectors(device, diskstats) or before) - before
    return moved * _SECTOR_BYTES > _OTHERS_BYTES


def _sectors(device: int, diskstats: Path) -> int | None:
    """Return the sectors read and written by a block device; None if it is none."""
    numbers = [str(os.major(device)), str(os.minor(device))]
    try:
        lines = diskstats.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        if fields[:2] == numbers and len(fields) >= 10:
            return int(fields[5]) + int(fields[9])
    return None
