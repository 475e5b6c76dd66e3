# SPDX-License-Identifier: MIT
"""The machine and the applications of the figures of burst-buffer coordination.

One model for all figures (`penstock.sim.buffers`): the processes of an application
issue requests one after the other, with pauses d; those of one node run in step; 8
servers share their time among all requests that wait. Nothing of the paper's file
system is modelled beyond that. Five numbers of the paper are put in, once:

=============  ======  ===========================================================
name           value   fitted to
=============  ======  ===========================================================
`LOSS`         0.13    Figure 15: two applications without delays have 75 MB/s
                       each, one alone 170 MB/s: 170 / 75 = 2 (1 + loss)
`EXPONENT`     8       Figure 15: 256 waiting requests cost nothing (170 MB/s), so
                       the loss sets in late, between 256 and 512 of them
`GAIN`         1.3     Figure 15: A waits for B and then flushes, 96 MB/s in all:
                       170 / 96 = 1 + 1 / gain
`JITTER`       0.15    Figure 15: alone, delays of 750 ms cost 5 % (162 MB/s): the
                       processes begin in step, and then drift apart
`HALF`         0.75    Figure 9: bandwidth on half of the servers
=============  ======  ===========================================================

Claims that repeat these numbers say so. All others are predictions.

The paper's numbers do not fit each other: 8 GB at 170 MB/s take 48 s, while Figures 4
to 8 and 10 speak of 30 s. Here a phase alone takes, without delays,

- 30 s in Figures 4 to 8 (273 MB/s);
- 30 s in Figures 9 and 10 (20 requests at 170 MB/s; 15 and 45 s in the tests 75-25%);
- 47 to 49 s in Figures 11 and 12 (50 or 52 requests at 273 MB/s);
- 9 to 15 s in Figures 13 and 14 (80 processes at 273 MB/s);
- 48 s in Figures 15 and 16 (170 MB/s).

The loss is fitted between 256 and 512 waiting requests. Beyond that the formula means
nothing, and `check_range` refuses more processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from math import log2
from typing import Any, Final
from zlib import crc32

import polars as pl

from penstock.errors import InternalError
from penstock.experiments.claims import NoRowsError
from penstock.experiments.reproduction import Scale
from penstock.sim.buffers.model import Buffer, Congestion, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.workloads.microbenchmark import Microbenchmark, WritePattern

__all__ = [
    "ALONE_S",
    "BANDWIDTH",
    "DELAYS",
    "EXPONENT",
    "GAIN",
    "HALF",
    "JITTER",
    "LOSS",
    "OFFSETS",
    "PROCESSES",
    "REPETITIONS",
    "SERVERS",
    "SLOW_BANDWIDTH",
    "alone_time",
    "buffer_for",
    "check_range",
    "delta_rows",
    "mean_rows",
    "pattern_writer",
    "run_rows",
    "single_value",
    "storage",
]

SERVERS: Final = 8
#: Processes of an application, and on one node (two processors with four cores each).
PROCESSES: Final = 256
_PROCESSES_PER_NODE: Final = 8
#: Requests of the microbenchmark; each has 1 MB.
_REQUESTS: Final = 32
_SIZE: Final = 1e6
#: I/O time of an application alone, without delays (s).
ALONE_S: Final = 30.0
#: Bandwidth with which 256 processes write 32 MB each in 30 s (bytes/s).
BANDWIDTH: Final = Microbenchmark().bandwidth
#: Bandwidth of an application alone in Figures 10 and 15 (bytes/s).
SLOW_BANDWIDTH: Final = 170e6
#: Pauses d between the requests of an application (s).
DELAYS: Final = (0.0, 0.25, 0.5, 0.75)
#: Starts D of application B after that of A (s).
OFFSETS: Final = {
    Scale.SMOKE: (0.0, 5.0, 10.0, 20.0, 30.0, 40.0),
    Scale.PAPER: tuple(2.5 * k for k in range(19)),
}
#: Runs with different pauses; the paper reports means of five.
REPETITIONS: Final = {Scale.SMOKE: 1, Scale.PAPER: 5}

#: Most requests that may wait: up to here the loss is fitted.
_MOST_WAITING: Final = 2 * PROCESSES
#: Part of the bandwidth that the requests of a second application cost.
LOSS: Final = 170 / (2 * 75) - 1
#: How late that loss sets in.
EXPONENT: Final = 8.0
#: Bandwidth of a flush over that of the requests that it combines.
GAIN: Final = 1 / (170 / 96 - 1)
#: Relative variation of the pauses of different nodes.
JITTER: Final = 0.15
#: Bandwidth on half of the servers over that on all servers.
HALF: Final = 0.75
#: Bandwidth of the buffers (SSDs and memory of all nodes) over that of the storage.
_BUFFER_SPEED: Final = 100.0


def storage(bandwidth: float) -> Storage:
    """Return 8 servers on which an application alone draws `bandwidth` (bytes/s).

    b(n) = b(8) (n / 8)^a with b(4) = 0.75 b(8).
    """
    power = -log2(HALF)
    profile = (bandwidth * (n / SERVERS) ** power for n in range(1, SERVERS + 1))
    congestion = Congestion(LOSS, _MOST_WAITING, EXPONENT)
    return Storage(bandwidth, SERVERS, tuple(profile), congestion)


def buffer_for(bandwidth: float) -> Buffer:
    """Return buffers without a limit of size; applications flush them (as in BBIO)."""
    return Buffer(_BUFFER_SPEED * bandwidth, inline=True, gain=GAIN)


def pattern_writer(
    name: str,
    instance: int = 0,
    pattern: WritePattern | None = None,
    **rest: Any,
) -> Writer:
    """Return an application that writes a pattern.

    Default of `pattern`: the microbenchmark without delays. `rest` are further fields
    of the writer. Repetitions (`instance`) differ in the pauses of the nodes only.
    """
    own = pattern or WritePattern(PROCESSES, _REQUESTS, _SIZE)
    nodes = -(-own.processes // _PROCESSES_PER_NODE)
    return Writer.of_requests(
        name,
        own.requests,
        own.processes * own.size_bytes,
        own.delay_s,
        nodes=nodes,
        processes=own.processes,
        jitter=JITTER if own.delay_s > 0 else 0.0,
        seed=crc32(f"{name} {instance}".encode()),
        **rest,
    )


@lru_cache(maxsize=256)
def alone_time(machine: Storage, writer: Writer) -> float:
    """Return the I/O time of a writer that is alone on the storage (s)."""
    return simulate_buffers(machine, [writer]).io_times[0]


def check_range(writers: Sequence[Writer]) -> None:
    """Raise `InternalError` if more requests may wait than the loss is fitted for."""
    waiting = sum(writer.processes for writer in writers)
    if waiting > _MOST_WAITING:
        raise InternalError(
            f"{waiting} requests may wait; the loss is fitted up to {_MOST_WAITING}"
        )


def run_rows(
    machine: Storage, writers: Sequence[Writer], strategy: str, **facts: Any
) -> list[dict[str, Any]]:
    """Simulate the writers together; return a row per writer.

    ``io_time`` is its I/O time (s), ``alone`` that without the others (s), ``factor``
    the first over the second, ``rate`` its bytes over its I/O time (MB/s) and ``end``
    the time at which all are done (s). `facts` are further columns.
    """
    check_range(writers)
    together = simulate_buffers(
        machine, writers, strategy, buffer_for(machine.bandwidth)
    )
    rows = []
    for number, writer in enumerate(writers):
        alone = alone_time(
            machine, replace(writer, name="", start_s=0.0, opened_s=None)
        )
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
                "end": together.end_s,
            }
        )
    return rows


def delta_rows(
    scale: Scale,
    strategies: Sequence[str],
    delays: Sequence[float] = DELAYS,
    *,
    bandwidth: float = BANDWIDTH,
    requests: int = _REQUESTS,
) -> pl.DataFrame:
    """Return the rows of delta-graphs of two equal applications A and B.

    There is a row per strategy, d, D, repetition and application.
    """
    return pl.DataFrame(
        [
            row
            for strategy in strategies
            for delay in delays
            for offset in OFFSETS[scale]
            for instance in range(REPETITIONS[scale])
            for row in _pair_rows(
                strategy,
                WritePattern(PROCESSES, requests, _SIZE, delay),
                offset,
                instance,
                bandwidth,
            )
        ]
    )


@cache
def _pair_rows(
    strategy: str,
    pattern: WritePattern,
    offset: float,
    instance: int,
    bandwidth: float,
) -> list[dict[str, Any]]:
    """Simulate A, and B that begins D later; figures share these runs.

    As in section V-B.3, B opens its files when the benchmark begins, and does not
    redirect its writes; A does.
    """
    writers = [
        pattern_writer("A", instance, pattern),
        pattern_writer(
            "B", instance, pattern, start_s=offset, redirects=False, opened_s=0.0
        ),
    ]
    facts = {"delay": pattern.delay_s, "offset": offset, "instance": instance}
    return run_rows(storage(bandwidth), writers, strategy, **facts)


def mean_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the means over the repetitions: a row per case."""
    results = {"io_time", "alone", "factor", "rate", "end", "duration", "instance"}
    cases = [column for column in rows.columns if column not in results]
    values = [c for c in rows.columns if c in results - {"instance"}]
    return rows.group_by(cases, maintain_order=True).agg(pl.mean(*values))


def single_value(rows: pl.DataFrame, column: str, **where: Any) -> float:
    """Return the mean over repetitions of a column in the only case that matches.

    Raises
    ------
    NoRowsError
        If no row matches: a claim then does not hold.
    InternalError
        If several cases match.
    """
    matching = rows.filter(*(pl.col(key) == value for key, value in where.items()))
    if matching.is_empty():
        raise NoRowsError
    mean = mean_rows(matching)
    if mean.height != 1:
        raise InternalError(f"{mean.height} cases match {where}")
    return float(mean[column][0])
