# SPDX-License-Identifier: MIT
"""What the figures of papers/4 are simulated with.

The testbed of the paper is 8 storage servers. Two of its measurements are taken as they
are, for no fluid model has them: two applications that interfere are each 2.3 times
slower (Figure 4), and an application on half of the servers is 0.75 times as fast
(Figure 9). The rest follows. Its I/O phases take 30 s; where it gives bandwidths, 170
MB/s are what an application draws alone (Figure 15).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import log2
from typing import Any, Final

import polars as pl

from penstock.errors import InputError
from penstock.experiments.reproduction import Scale
from penstock.sim.buffers import simulate_buffers
from penstock.sim.buffers_model import Buffer, Storage, Writer
from penstock.workloads.microbenchmark import Microbenchmark

__all__ = [
    "ALONE_S",
    "DELAYS",
    "OFFSETS",
    "SERVERS",
    "alone_time",
    "buffer_for",
    "delta_rows",
    "group",
    "one_of",
    "run_rows",
    "storage",
]

SERVERS: Final = 8
#: Time that a group needs alone, without delays (s).
ALONE_S: Final = 30.0
#: d (s).
DELAYS: Final = (0.0, 0.25, 0.5, 0.75)
#: D (s).
OFFSETS: Final = {
    Scale.SMOKE: (0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 60.0),
    Scale.PAPER: tuple(2.5 * k for k in range(25)),
}
#: Slowdown of two equal applications that interfere.
_SLOWDOWN: Final = 2.3
#: Speed on half of the servers, over that on all.
_HALF: Final = 0.75
#: Buffers (SSDs and memory of all nodes) over the storage.
_BUFFER_SPEED: Final = 100.0


def storage(bandwidth: float) -> Storage:
    """Return 8 servers on which an application alone draws `bandwidth` (bytes/s).

    b(n) = b(8) (n / 8)^a with b(4) = 0.75 b(8).
    """
    power = -log2(_HALF)
    profile = (bandwidth * (n / SERVERS) ** power for n in range(1, SERVERS + 1))
    return Storage(bandwidth, SERVERS, tuple(profile), efficiency=2 / _SLOWDOWN)


def buffer_for(bandwidth: float) -> Buffer:
    """Return buffers that hold all, flushed by the applications as with BBIO."""
    return Buffer(_BUFFER_SPEED * bandwidth, inline=True)


def group(name: str, delay: float = 0.0, start: float = 0.0, **rest: Any) -> Writer:
    """Return a group of the microbenchmark; `rest` are other parameters of it."""
    own = Microbenchmark(**rest)
    size = own.processes * own.size
    return Writer.of_requests(
        name, own.requests, size, delay, start=start, processes=own.processes
    )


@lru_cache(maxsize=64)
def alone_time(here: Storage, writer: Writer) -> float:
    """Return the I/O time of a writer without others (s)."""
    return simulate_buffers(here, [writer]).io_times[0]


def run_rows(
    here: Storage, writers: Sequence[Writer], strategy: str, **facts: Any
) -> list[dict[str, Any]]:
    """Simulate; return a row per writer.

    ``alone``: I/O time without the others (s); ``factor``: the interference factor;
    ``rate``: its bytes over its I/O time (MB/s); ``end``: when all were done (s).
    """
    together = simulate_buffers(here, writers, strategy, buffer_for(here.bandwidth))
    rows = []
    for number, writer in enumerate(writers):
        alone = alone_time(here, replace(writer, name="", start=0.0))
        io_time = together.io_times[number]
        volume = together.through[number] + together.drained[number]
        rows.append(
            {
                "strategy": strategy,
                **facts,
                "application": writer.name,
                "io_time": io_time,
                "alone": alone,
                "factor": io_time / alone,
                "rate": volume / io_time / 1e6,
                "end": together.end,
            }
        )
    return rows


def delta_rows(
    scale: Scale,
    strategies: Sequence[str],
    delays: Sequence[float] = DELAYS,
    processes: int = 256,
) -> pl.DataFrame:
    """Return the delta-graphs of two equal groups: a row per d, D and group."""
    bandwidth = 32e6 * processes / ALONE_S
    rows = []
    for strategy in strategies:
        for delay in delays:
            for offset in OFFSETS[scale]:
                writers = [
                    group("A", delay, processes=processes),
                    group("B", delay, offset, processes=processes),
                ]
                facts = {"delay": delay, "offset": offset}
                rows += run_rows(storage(bandwidth), writers, strategy, **facts)
    return pl.DataFrame(rows)


def one_of(rows: pl.DataFrame, column: str, **where: Any) -> float:
    """Return the value of a column in the only row that matches `where`."""
    found = rows.filter(*(pl.col(key) == value for key, value in where.items()))
    if found.height != 1:
        raise InputError(f"{found.height} rows match {where}")
    return float(found[column][0])
