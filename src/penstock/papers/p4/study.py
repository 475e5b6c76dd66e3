# SPDX-License-Identifier: MIT
"""The machine and the applications of the figures of burst-buffer coordination.

The testbed of the paper has 8 storage servers. Two of its measurements are inputs of
our model, because a fluid model cannot predict them: two applications that interfere
are each 2.3 times slower (Figure 4), and an application on half of the servers is 0.75
times as fast (Figure 9). I/O phases take 30 s. Where the paper gives bandwidths, an
application alone draws 170 MB/s (Figure 15).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import log2
from typing import Any, Final

import polars as pl

from penstock.errors import InternalError
from penstock.experiments.claims import NoRowsError
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
#: I/O time of an application alone, without delays (s).
ALONE_S: Final = 30.0
#: Pauses d between the requests of an application (s).
DELAYS: Final = (0.0, 0.25, 0.5, 0.75)
#: Starts D of application B after that of A (s).
OFFSETS: Final = {
    Scale.SMOKE: (0.0, 5.0, 10.0, 20.0, 30.0, 40.0, 60.0),
    Scale.PAPER: tuple(2.5 * k for k in range(25)),
}
#: Slowdown of two equal applications that interfere.
_SLOWDOWN: Final = 2.3
#: Bandwidth on half of the servers over that on all servers.
_HALF: Final = 0.75
#: Bandwidth of the buffers (SSDs and memory of all nodes) over that of the storage.
_BUFFER_SPEED: Final = 100.0


def storage(bandwidth: float) -> Storage:
    """Return 8 servers on which an application alone draws `bandwidth` (bytes/s).

    b(n) = b(8) (n / 8)^a with b(4) = 0.75 b(8).
    """
    power = -log2(_HALF)
    profile = (bandwidth * (n / SERVERS) ** power for n in range(1, SERVERS + 1))
    return Storage(bandwidth, SERVERS, tuple(profile), efficiency=2 / _SLOWDOWN)


def buffer_for(bandwidth: float) -> Buffer:
    """Return buffers without a limit of size; applications flush them (as in BBIO)."""
    return Buffer(_BUFFER_SPEED * bandwidth, inline=True)


def group(name: str, delay: float = 0.0, start: float = 0.0, **rest: Any) -> Writer:
    """Return an application of the microbenchmark; `rest` are its other parameters."""
    benchmark = Microbenchmark(**rest)
    size = benchmark.processes * benchmark.size
    return Writer.of_requests(
        name,
        benchmark.requests,
        size,
        delay,
        start=start,
        processes=benchmark.processes,
    )


@lru_cache(maxsize=64)
def alone_time(machine: Storage, writer: Writer) -> float:
    """Return the I/O time of a writer that is alone on the storage (s)."""
    return simulate_buffers(machine, [writer]).io_times[0]


def run_rows(
    machine: Storage, writers: Sequence[Writer], strategy: str, **facts: Any
) -> list[dict[str, Any]]:
    """Simulate the writers together; return a row per writer.

    ``io_time`` is its I/O time (s), ``alone`` that without the others (s), ``factor``
    the first over the second, ``rate`` its bytes over its I/O time (MB/s) and ``end``
    the time at which all are done (s). `facts` are further columns.
    """
    together = simulate_buffers(
        machine, writers, strategy, buffer_for(machine.bandwidth)
    )
    rows = []
    for number, writer in enumerate(writers):
        alone = alone_time(machine, replace(writer, name="", start=0.0))
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
    """Return the rows of delta-graphs of two equal applications A and B.

    There is a row per strategy, d, D and application.
    """
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
    """Return the value of a column in the only row that matches `where`.

    Raises
    ------
    NoRowsError
        If no row matches: a claim then does not hold.
    InternalError
        If several rows match.
    """
    matching = rows.filter(*(pl.col(key) == value for key, value in where.items()))
    if matching.is_empty():
        raise NoRowsError
    if matching.height != 1:
        raise InternalError(f"{matching.height} rows match {where}")
    return float(matching[column][0])
