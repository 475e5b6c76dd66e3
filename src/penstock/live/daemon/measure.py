# SPDX-License-Identifier: MIT
"""A short measurement of the write bandwidth of a folder.

It writes a temporary file for a given time and forces it to the storage; both count.
The result is a first estimate. For a shared file system, give the bandwidth that its
operators know instead.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = ["measure_bandwidth"]

_BLOCK: Final = bytes(1 << 20)
_MOST_BLOCKS: Final = 256


def measure_bandwidth(folder: Path, duration_s: float = 0.5) -> float:
    """Return the bandwidth at which a folder can be written (bytes/s)."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as stream:
            began = time.monotonic()
            blocks = 0
            while blocks < _MOST_BLOCKS and time.monotonic() - began < duration_s:
                stream.write(_BLOCK)
                blocks += 1
            os.fsync(stream.fileno())
            elapsed = time.monotonic() - began
    except OSError as error:
        raise InputError(
            f"cannot measure the bandwidth: {error.strerror or error}",
            where=str(folder),
            remedy="give --bandwidth",
        ) from None
    return blocks * len(_BLOCK) / max(elapsed, 1e-6)
