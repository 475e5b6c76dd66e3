# SPDX-License-Identifier: MIT
"""Processor time that the preload library adds to a call.

Kinds of calls are measured in interleaved rounds, and the minimum of each is taken.
Writes: without the library; with the library on an uncontrolled descriptor; counted
without a limit; paced with a grant that is never reached. Reads, which memory serves:
without the library; free of charge. What calls cost does not depend on the number of
jobs; what an agent takes does (`many_users`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from penstock.bench import BenchSettings, Measurement
from penstock.bench.cost.many_users import measure_idle_jobs
from penstock.bench.writers import Writers, writers

__all__ = ["measure"]

_WRITE_SIZES: Final = (64, 4096)
_READ_SIZES: Final = (4096, 1 << 20)
_CALLS: Final = 50_000
#: All calls of a process move at most so many bytes.
_MOST_BYTES: Final = 4 << 30
_FREE: Final = "without the library"
#: Call -> kind -> goal: most nanoseconds that it adds to a call of 4096 bytes.
_KINDS: Final = {
    "write": {
        _FREE: math.inf,
        "uncontrolled": 20.0,
        "counted": math.inf,
        "paced": 80.0,
    },
    "read": {_FREE: math.inf, "cached": 100.0},
}
#: Goal for larger calls: most that they take, relative to the call itself.
_MOST_RATIO: Final = 1.02
#: A grant that is never reached (bytes/s).
_ABUNDANT: Final = 1e15


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield the cost of a call without the library and what the other kinds add."""
    with writers(settings.folder) as processes:
        processes.page.free_memory(cached_reads=True, absorbed_writes=False)
        for size in _WRITE_SIZES:
            yield from _measure_size(processes, "write", size, settings.rounds)
        for size in _READ_SIZES:
            yield from _measure_size(processes, "read", size, settings.rounds)
    yield from measure_idle_jobs(settings.folder, max(1, settings.rounds // 3))


def _measure_size(
    processes: Writers, call: str, size: int, rounds: int
) -> Iterator[Measurement]:
    kinds = list(_KINDS[call])
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(rounds):
        first = turn % len(kinds)
        for kind in kinds[first:] + kinds[:first]:
            costs[kind].append(_cost_ns(processes, call, kind, size))
    free = min(costs.pop(_FREE))
    yield Measurement(f"{call} of {size} bytes {_FREE}", free, "ns")
    for kind, costs_ns in costs.items():
        # The goals in nanoseconds concern calls of one page (4096 bytes) only.
        most = _KINDS[call][kind] if size == 4096 else math.inf
        name = f"{call} of {size} bytes, {kind}"
        if size > 4096:
            ratio = min(costs_ns) / free
            yield Measurement(f"{name}: relative cost", ratio, "", most=_MOST_RATIO)
        else:
            added = min(costs_ns) - free
            yield Measurement(f"{name}: added cost", added, "ns", most=most)


def _cost_ns(processes: Writers, call: str, kind: str, size: int) -> float:
    """Return the processor time per call of one run."""
    processes.page.grant(math.inf if kind == "counted" else _ABUNDANT)
    processes.renew()
    writer = processes.start(
        size,
        min(_CALLS, _MOST_BYTES // size),
        controlled=kind != "uncontrolled",
        free=kind == _FREE,
        call=call,
    )
    writer.begin_at(0)
    return writer.finish()[0]
