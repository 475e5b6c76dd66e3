# SPDX-License-Identifier: MIT
"""Bandwidth achieved divided by bandwidth granted: 4 KiB to 64 MiB, 1 to 64 processes.

The processes of a run share one grant and start together. Volumes are chosen so that a
run takes about two seconds. A measurement is the median of its rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Final

from penstock.bench import BenchSettings, Measurement
from penstock.bench.writers import LARGEST_BYTES, Writers, writers
from penstock.units import format_volume

__all__ = ["measure"]

_SIZES: Final = (4 << 10, 64 << 10, 1 << 20, 4 << 20, LARGEST_BYTES)
_PROCESSES: Final = (1, 4, 16, 64)
_RATE: Final = 100e6
_RUN_S: Final = 2.0
#: Longest run; many large calls get a higher grant.
_RUN_MAX_S: Final = 8.0
#: Time from now to the common start.
_READY_NS: Final = 300_000_000
_ERROR: Final = 0.02


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield the ratio for every call size and number of processes."""
    with writers(settings.folder) as starter:
        for size in _SIZES:
            _ratio(starter, size, 1, 0.1)  # Allocates the pages of the file.
            for processes in _PROCESSES:
                yield _measurement(
                    starter, size, processes, max(1, settings.rounds // 5)
                )


def _measurement(
    starter: Writers, size: int, processes: int, rounds: int
) -> Measurement:
    ratios = [_ratio(starter, size, processes, _RUN_S) for _ in range(rounds)]
    name = f"calls of {format_volume(size)} by {processes}: achieved / granted"
    return Measurement(name, statistics.median(ratios), "", 1.0 - _ERROR, 1.0 + _ERROR)


def _ratio(starter: Writers, size: int, processes: int, run_s: float) -> float:
    """Return achieved divided by granted bandwidth of one run."""
    calls = max(1, round(_RATE * run_s / (size * processes)))
    volume = calls * size * processes
    rate = max(_RATE, volume / _RUN_MAX_S)
    started = [starter.start(size, calls) for _ in range(processes)]
    start_ns = time.monotonic_ns() + _READY_NS
    starter.page.grant(rate)
    starter.renew()
    for writer in started:
        writer.begin_at(start_ns)
    ends = [writer.finish()[1] for writer in started]
    return volume / ((max(ends) - start_ns) * 1e-9) / rate
