# SPDX-License-Identifier: MIT
"""Bandwidth achieved over bandwidth granted: 4 KiB to 64 MiB, 1 to 64 processes.

All processes of a line share one grant and begin together. Volumes are such that a run
lasts two seconds or a little more; a figure is the median of its rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Final

from penstock.bench import Figure, Setting
from penstock.bench.writers import LARGEST_BYTES, Writers, writers
from penstock.units import format_volume

__all__ = ["measure"]

_SIZES: Final = (4 << 10, 64 << 10, 1 << 20, 4 << 20, LARGEST_BYTES)
_PROCESSES: Final = (1, 4, 16, 64)
_RATE: Final = 100e6
_RUN_S: Final = 2.0
#: A run takes no longer than this: many large calls are granted more (s).
_RUN_MAX_S: Final = 8.0
#: All writers are ready for the start by then (ns).
_READY_NS: Final = 300_000_000
_ERROR: Final = 0.02


def measure(setting: Setting) -> Iterator[Figure]:
    """Yield a ratio for every size and number of processes."""
    with writers(setting.folder) as made:
        for size in _SIZES:
            _ratio(made, size, 1, 0.1)  # The file's pages are there from now on.
            for processes in _PROCESSES:
                yield _figure(made, size, processes, max(1, setting.rounds // 5))


def _figure(made: Writers, size: int, processes: int, rounds: int) -> Figure:
    ratios = [_ratio(made, size, processes, _RUN_S) for _ in range(rounds)]
    name = f"calls of {format_volume(size)} by {processes}: achieved / granted"
    return Figure(name, statistics.median(ratios), "", 1.0 - _ERROR, 1.0 + _ERROR)


def _ratio(made: Writers, size: int, processes: int, run_s: float) -> float:
    calls = max(1, round(_RATE * run_s / (size * processes)))
    volume = calls * size * processes
    rate = max(_RATE, volume / _RUN_MAX_S)
    started = [made.start(size, calls) for _ in range(processes)]
    start_ns = time.monotonic_ns() + _READY_NS
    made.page.grant(rate)
    made.renew()
    for writer in started:
        writer.begin_at(start_ns)
    ends = [writer.finish()[1] for writer in started]
    return volume / ((max(ends) - start_ns) * 1e-9) / rate
