# SPDX-License-Identifier: MIT
"""The experiment of two-level scheduling (section 4), simulated: two IORs.

App1 (SLO: 40 MB/s, 100 ms) is on and off in turn for 50 s each and issues 50 MB/s while
it is on. The rate of App2 (SLO: 20 MB/s, 300 ms) grows from 20 to 50 MB/s. Each has 32
processes with requests of 1 MB; a process waits for the answer to its last request.

Assumptions that the paper does not state: the storage serves one request after the
other at 50 MB/s, however many requests it has. Processes issue requests evenly, with a
jitter of half a period. The SLOs together ask for more than the capacity.

Memory. The paper's server has 32 GB of memory, and does not say how much of it takes
writes. So the experiment is run with none, with 32 GB, and with 2 GB, about what
exceeds 50 MB/s until 250 s. A memory takes 110 MB/s, what a gigabit network carries. A
run without a memory is overloaded whenever App1 is on, one with 32 GB never.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from penstock.experiments.reproduction import Scale
from penstock.qos import Slo
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import RequestRun, simulate_requests
from penstock.workloads.clients import MB, on_off, ramp

__all__ = [
    "APPLICATIONS",
    "CAPACITY",
    "COLOURS",
    "DURATION_S",
    "HOLDING",
    "MEMORIES_GB",
    "PERIOD_S",
    "SENDING",
    "SLOS",
    "WINDOW_S",
    "ExperimentRun",
    "by_second",
    "depths",
    "runs",
]

#: The two-level scheduler of the paper, which sends all requests to the storage under
#: overload, and our default, which holds them back.
SENDING: Final = "two-level:credit=1,overload=send"
HOLDING: Final = "two-level"
#: Sizes of the server's memory (GB).
MEMORIES_GB: Final = (0, 2, 32)

#: Bandwidth of the storage (bytes/s).
CAPACITY: Final = 50.0 * MB
#: Length of the experiment, of App1 being on or off, and of a time window (s).
DURATION_S: Final = 600.0
PERIOD_S: Final = 50.0
WINDOW_S: Final = 0.5
SLOS: Final = {"App1": Slo(40.0 * MB, 0.1), "App2": Slo(20.0 * MB, 0.3)}
APPLICATIONS: Final = tuple(SLOS)
#: Paul Tol's "bright" scheme, for readers who are colour-blind.
COLOURS: Final = {"App1": "#4477AA", "App2": "#EE6677"}

_JITTER: Final = 0.5
#: Throughput into the memory (bytes/s).
_ABSORB: Final = 110.0 * MB
_SEEDS: Final = {Scale.SMOKE: 1, Scale.PAPER: 10}


class ExperimentRun(NamedTuple):
    """One simulation of the experiment."""

    memory_gb: int
    instance: int
    """Number of the seed."""
    run: RequestRun


def runs(
    scale: Scale,
    schedulers: tuple[str, ...],
    memories_gb: tuple[int, ...] = MEMORIES_GB,
) -> list[ExperimentRun]:
    """Simulate all schedulers with every memory and every seed."""
    return [
        ExperimentRun(memory_gb, seed, _run(scheduler, memory_gb, seed))
        for scheduler in schedulers
        for memory_gb in memories_gb
        for seed in range(1, _SEEDS[scale] + 1)
    ]


def _run(scheduler: str, memory_gb: int, seed: int) -> RequestRun:
    clients = (
        replace(on_off("App1", 50.0 * MB, PERIOD_S, DURATION_S), jitter=_JITTER),
        replace(ramp("App2", 20.0 * MB, 50.0 * MB, DURATION_S), jitter=_JITTER),
    )
    server = ServerSpec(
        CAPACITY, memory_bytes=memory_gb * 1e9, absorb_bytes_per_s=_ABSORB
    )
    return simulate_requests(scheduler, SLOS, clients, [server], DURATION_S, seed=seed)


def by_second(done: ExperimentRun) -> pl.DataFrame:
    """Return a row per application and second.

    ``p95`` is the 95th percentile of the response times at the clients (s), ``issued``
    and ``moved`` are the rates of requests and answers (bytes/s), and ``on`` is true
    while App1 is on.
    """
    return pl.concat([_seconds(done, name) for name in APPLICATIONS])


def _seconds(done: ExperimentRun, application: str) -> pl.DataFrame:
    run = done.run
    own = run.requests_of(application)
    issued_s, answered_s = run.issued_s[own], run.answered_s[own]
    response_times_s = answered_s - issued_s
    seconds = np.arange(int(DURATION_S))
    issued = np.bincount(issued_s.astype(int), minlength=len(seconds))
    answered_in = answered_s.astype(int)
    answered = np.bincount(answered_in, minlength=len(seconds))[: len(seconds)]
    p95 = [
        _p95(response_times_s[answered_in == k]) if answered[k] else None
        for k in seconds
    ]
    return pl.DataFrame(
        {
            "scheduler": run.scheduler,
            "memory_gb": done.memory_gb,
            "instance": done.instance,
            "application": application,
            "second": seconds,
            "on": seconds % int(2 * PERIOD_S) < PERIOD_S,
            "p95": pl.Series(p95, dtype=pl.Float64),
            "issued": issued[: len(seconds)] * float(MB),
            "moved": answered * float(MB),
        }
    )


def _p95(times: NDArray[np.float64]) -> float:
    return float(np.sort(times)[ceil(0.95 * len(times)) - 1])


def depths(done: ExperimentRun) -> pl.DataFrame:
    """Return the queue depth in every time window of 0.5 s; null means infinite."""
    run = done.run
    starts = np.arange(0.0, DURATION_S, WINDOW_S)
    changes: Any = run.depths[0]
    # The depth of a window is set just after the window begins.
    where = np.searchsorted(changes[:, 0], starts + WINDOW_S / 2, side="right") - 1
    in_windows = changes[where, 1]
    return pl.DataFrame(
        {
            "scheduler": run.scheduler,
            "memory_gb": done.memory_gb,
            "instance": done.instance,
            "window": np.arange(len(starts)),
            "time": starts,
            "on": starts % (2 * PERIOD_S) < PERIOD_S,
            "depth": pl.Series(
                [float(d) if np.isfinite(d) else None for d in in_windows]
            ),
        }
    )
