# SPDX-License-Identifier: MIT
"""Processor time that the preload library adds to a write.

Four kinds of call in interleaved rounds, the least of each: without the library; with
it on a descriptor that is not controlled; counted without a limit; and paced, with a
grant that nobody can exceed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from penstock.bench import Figure, Setting
from penstock.bench.writers import Writers, writers

__all__ = ["measure"]

_SIZES: Final = (64, 4096)
_CALLS: Final = 50_000
_FREE: Final = "without the library"
#: Kind -> most nanoseconds that it should add to a call.
_KINDS: Final = {
    _FREE: math.inf,
    "uncontrolled": 20.0,
    "counted": math.inf,
    "paced": 80.0,
}
#: A grant that is never reached (bytes/s).
_ABUNDANT: Final = 1e15


def measure(setting: Setting) -> Iterator[Figure]:
    """Yield the cost of a plain call, and what the other kinds add, for each size."""
    with writers(setting.folder) as made:
        for size in _SIZES:
            yield from _of_size(made, size, setting.rounds)


def _of_size(made: Writers, size: int, rounds: int) -> Iterator[Figure]:
    costs: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    kinds = list(_KINDS)
    for turn in range(rounds):
        for kind in kinds[turn % 4 :] + kinds[: turn % 4]:
            costs[kind].append(_cost_ns(made, kind, size))
    free = min(costs.pop(_FREE))
    yield Figure(f"write of {size} bytes {_FREE}", free, "ns")
    for kind, found in costs.items():
        # The goals are for calls of one page; smaller ones are shown beside them.
        most = _KINDS[kind] if size == 4096 else math.inf
        name = f"write of {size} bytes, {kind}: more"
        yield Figure(name, min(found) - free, "ns", most=most)


def _cost_ns(made: Writers, kind: str, size: int) -> float:
    made.page.grant(_ABUNDANT if kind == "paced" else math.inf)
    made.renew()
    writer = made.start(
        size, _CALLS, controlled=kind != "uncontrolled", free=kind == _FREE
    )
    writer.begin_at(0)
    return writer.finish()[0]
