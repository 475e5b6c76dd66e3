# SPDX-License-Identifier: MIT
"""Processor time that the preload library adds to a write call.

Four kinds of calls are measured in interleaved rounds, and the minimum of each is
taken: without the library; with the library on an uncontrolled descriptor; counted
without a limit; paced with a grant that is never reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from penstock.bench import BenchSettings, Measurement
from penstock.bench.writers import Writers, writers

__all__ = ["measure"]

_SIZES: Final = (64, 4096)
_CALLS: Final = 50_000
_FREE: Final = "without the library"
#: Kind -> goal: most nanoseconds that it adds to a call.
_KINDS: Final = {
    _FREE: math.inf,
    "uncontrolled": 20.0,
    "counted": math.inf,
    "paced": 80.0,
}
#: A grant that is never reached (bytes/s).
_ABUNDANT: Final = 1e15


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield the cost of a call without the library and what the other kinds add."""
    with writers(settings.folder) as processes:
        for size in _SIZES:
            yield from _measure_size(processes, size, settings.rounds)


def _measure_size(processes: Writers, size: int, rounds: int) -> Iterator[Measurement]:
    costs: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    kinds = list(_KINDS)
    for turn in range(rounds):
        for kind in kinds[turn % 4 :] + kinds[: turn % 4]:
            costs[kind].append(_cost_ns(processes, kind, size))
    free = min(costs.pop(_FREE))
    yield Measurement(f"write of {size} bytes {_FREE}", free, "ns")
    for kind, costs_ns in costs.items():
        # The goals concern calls of one page (4096 bytes) only.
        most = _KINDS[kind] if size == 4096 else math.inf
        name = f"write of {size} bytes, {kind}: added cost"
        yield Measurement(name, min(costs_ns) - free, "ns", most=most)


def _cost_ns(processes: Writers, kind: str, size: int) -> float:
    """Return the processor time per call of one run."""
    processes.page.grant(_ABUNDANT if kind == "paced" else math.inf)
    processes.renew()
    writer = processes.start(
        size, _CALLS, controlled=kind != "uncontrolled", free=kind == _FREE
    )
    writer.begin_at(0)
    return writer.finish()[0]
