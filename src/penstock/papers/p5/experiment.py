# SPDX-License-Identifier: MIT
"""The experiment of papers/5 section 4, simulated: two IORs on a storage of 50 MB/s.

App1 (40 MB/s, 100 ms) is on and off every 50 s, at 50 MB/s; App2 (20 MB/s, 300 ms) goes
from 20 to 50 MB/s. 32 processes each, requests of 1 MB, each process waiting for its
last answer.

What the paper does not say and we take: the storage serves one request after the other,
at 50 MB/s however many there are, and keeps nothing in memory; processes issue evenly,
but for a jitter of half a period. Together the SLOs ask for more than there is, so that
the storage is overloaded whenever App1 is on.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from penstock.experiments.reproduction import Scale
from penstock.qos import Slo
from penstock.sim.requests import RequestRun, simulate_requests
from penstock.sim.requests_server import ServerSpec
from penstock.workloads.clients import MB, on_off, ramp

__all__ = [
    "APPLICATIONS",
    "CAPACITY",
    "COLOURS",
    "LASTS",
    "OURS",
    "PAPERS",
    "PERIOD",
    "SLOS",
    "WINDOW",
    "by_second",
    "depths",
    "runs",
]

#: The two-level scheduler as the paper has it, and as we do.
PAPERS: Final = "two-level:credit=1,overload=send"
OURS: Final = "two-level"

CAPACITY: Final = 50.0 * MB
LASTS: Final = 600.0
PERIOD: Final = 50.0
WINDOW: Final = 0.5
SLOS: Final = {"App1": Slo(40.0 * MB, 0.1), "App2": Slo(20.0 * MB, 0.3)}
APPLICATIONS: Final = tuple(SLOS)
#: Paul Tol's "bright" scheme: told apart by the colour-blind.
COLOURS: Final = {"App1": "#4477AA", "App2": "#EE6677"}

_JITTER: Final = 0.5
_SEEDS: Final = {Scale.SMOKE: 1, Scale.PAPER: 10}


def runs(scale: Scale, schedulers: tuple[str, ...]) -> list[tuple[int, RequestRun]]:
    """Simulate all schedulers with every seed; return the seeds with the runs."""
    return [
        (seed, _run(scheduler, seed))
        for scheduler in schedulers
        for seed in range(1, _SEEDS[scale] + 1)
    ]


def _run(scheduler: str, seed: int) -> RequestRun:
    clients = (
        replace(on_off("App1", 50.0 * MB, PERIOD, LASTS), jitter=_JITTER),
        replace(ramp("App2", 20.0 * MB, 50.0 * MB, LASTS), jitter=_JITTER),
    )
    server = ServerSpec(CAPACITY)
    return simulate_requests(scheduler, SLOS, clients, [server], LASTS, seed=seed)


def by_second(seed: int, run: RequestRun) -> pl.DataFrame:
    """Return a row per application and second in which it was answered.

    ``p95``: 95th percentile (s) of the response times that the clients saw;
    ``issued`` and ``moved``: bytes/s asked for and answered; ``on``: App1 is.
    """
    return pl.concat([_seconds(seed, run, name) for name in APPLICATIONS])


def _seconds(seed: int, run: RequestRun, application: str) -> pl.DataFrame:
    mine = run.requests_of(application)
    issued, answered = run.issued_s[mine], run.answered_s[mine]
    times = answered - issued
    seconds = np.arange(int(LASTS))
    asked = np.bincount(issued.astype(int), minlength=len(seconds))
    found = answered.astype(int)
    counts = np.bincount(found, minlength=len(seconds))[: len(seconds)]
    p95 = [_p95(times[found == k]) if counts[k] else None for k in seconds]
    return pl.DataFrame(
        {
            "scheduler": run.scheduler,
            "seed": seed,
            "application": application,
            "second": seconds,
            "on": seconds % int(2 * PERIOD) < PERIOD,
            "p95": pl.Series(p95, dtype=pl.Float64),
            "issued": asked[: len(seconds)] * float(MB),
            "moved": counts * float(MB),
        }
    )


def _p95(times: NDArray[np.float64]) -> float:
    return float(np.sort(times)[ceil(0.95 * len(times)) - 1])


def depths(seed: int, run: RequestRun) -> pl.DataFrame:
    """Return the depth in every time window of 0.5 s; null: infinite."""
    starts = np.arange(0.0, LASTS, WINDOW)
    changes: Any = run.depths[0]
    # A window has the depth that is set just after it begins.
    where = np.searchsorted(changes[:, 0], starts + WINDOW / 2, side="right") - 1
    found = changes[where, 1]
    return pl.DataFrame(
        {
            "scheduler": run.scheduler,
            "seed": seed,
            "window": np.arange(len(starts)),
            "time": starts,
            "on": starts % (2 * PERIOD) < PERIOD,
            "depth": pl.Series([float(d) if np.isfinite(d) else None for d in found]),
        }
    )
