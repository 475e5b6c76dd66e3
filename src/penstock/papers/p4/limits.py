# SPDX-License-Identifier: MIT
"""Figures 15 and 16 of burst-buffer coordination (section V-D): limits of the model.

Figure 15 shows the bandwidth of an application that pauses, with and without buffers.
Figure 16 shows how long single requests take. Every process is an application of the
simulator and writes 32 MB; the storage (170 MB/s) serves requests in the order of their
arrival, so that others are served while a process pauses.

Interference costs bandwidth when more requests wait than one application has: with n
of them, 1 / (1 + 0.15 (n - 256) / 256) of the bandwidth is left. Two applications of
256 processes without delays then have a factor of 2.3 (Figure 4). With buffers the
processes of A stage during all their pauses and then flush without pauses (strategy
1b).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Scale
from penstock.model import Application, Instance, Platform, Window
from penstock.papers.declaration import figure
from penstock.papers.p4.charts import BarColumns, bars, new_figure
from penstock.papers.p4.study import DELAYS, one_of
from penstock.policies.policy import bind
from penstock.policies.view import View
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION, POST

__all__ = ["fig15", "fig16"]

_BANDWIDTH: Final = 170e6
_PROCESSES: Final = 256
_REQUESTS: Final = 32
_SIZE: Final = 1e6
_LONG: Final = 0.75
_HORIZON_S: Final = 1e5
#: Part of the bandwidth that a second application costs beyond sharing.
_LOSS: Final = 0.15
#: Processes whose requests Figure 16 shows.
_SHOWN: Final = (0, 60, 120, 180, 240)

_ALONE: Final = "alone"
_BOTH: Final = "interfering"
_BUFFERED: Final = "buffering"


def _processes(name: str, delay: float, first_work: float = 0.0) -> list[Application]:
    """Return the processes of a group, each an application."""
    work = np.full(_REQUESTS + 1, delay)
    work[0], work[-1] = first_work, 0.0
    volume = np.full(_REQUESTS, _SIZE)
    return [Application(f"{name}{i}", 1, work, volume) for i in range(_PROCESSES)]


def _lossy_fcfs(view: View, rates: Any) -> float:
    """Serve the oldest request with the bandwidth that waiting requests leave."""
    waiting = np.asarray(view.active)[: view.n_active]
    first = waiting[np.argmin(np.asarray(view.posted)[waiting])]
    excess = max(view.n_active - _PROCESSES, 0) / _PROCESSES
    rates[first] = view.capacity / (1 + _LOSS * excess)
    return inf


def _run(applications: Sequence[Application], *, record: bool = False) -> Run:
    platform = Platform(_BANDWIDTH, _BANDWIDTH)
    instance = Instance(platform, Window(0.0, _HORIZON_S), tuple(applications))
    policy = bind("lossy-fcfs", _lossy_fcfs, (), {})
    return simulate(instance, policy, steady=False, record=record)


# --- Figure 15 --------------------------------------------------------------------


def _cases(delay: float) -> dict[str, list[Application]]:
    """Return the processes for every case: those of A first, then those of B if any."""
    b = _processes("B", 0.0)
    staged = _processes("A", 0.0, first_work=(_REQUESTS - 1) * delay)
    return {
        _ALONE: _processes("A", delay),
        _BOTH: [*_processes("A", delay), *b],
        _BUFFERED: [*staged, *b],
    }


def _buffering_rows(_scale: Scale) -> pl.DataFrame:
    rows = []
    for delay in (0.0, _LONG):
        for case, applications in _cases(delay).items():
            time = float(_run(applications).ended[:_PROCESSES].max())
            rows.append(
                {
                    "case": case,
                    "delay": delay,
                    "label": f"d = {1000 * delay:g} ms",
                    "panel": "A, while B writes without delays",
                    "io_time": time,
                    "rate": _PROCESSES * _REQUESTS * _SIZE / time / 1e6,
                }
            )
    return pl.DataFrame(rows)


def _draw_buffering(tables: Tables) -> Figure:
    columns = BarColumns("panel", "label", "case", "rate")
    return bars(tables.rows, columns, "bandwidth of A (MB/s)")


fig15 = figure("p4-fig15", rows=_buffering_rows, draw=_draw_buffering)


def _rate(tables: Tables, case: str, delay: float) -> float:
    return one_of(tables.rows, "rate", case=case, delay=delay)


def _rates(tables: Tables, delay: float) -> dict[str, float]:
    return {case: _rate(tables, case, delay) for case in (_ALONE, _BOTH, _BUFFERED)}


@fig15.claim(
    "Alone, A reaches 170 MB/s without delays and 162 MB/s with 750 ms (95 %)."
)
def _delay_costs_little_alone(tables: Tables) -> Verdict:
    """Compare the bandwidths of A alone."""
    quick, paced = (_rate(tables, _ALONE, d) for d in (0.0, _LONG))
    numbers = {"d = 0 (MB/s)": quick, "d = 750 ms (MB/s)": paced}
    return Verdict(paced >= 0.95 * quick, numbers)


@fig15.claim(
    "Interfering with B, A reaches 75 MB/s without delays and 90 MB/s with 750 ms "
    "(± 15 %)."
)
def _interfering_bandwidths(tables: Tables) -> Verdict:
    """Check the bandwidths of A beside B."""
    quick, paced = (_rate(tables, _BOTH, d) for d in (0.0, _LONG))
    numbers = {"d = 0 (MB/s)": quick, "d = 750 ms (MB/s)": paced}
    return Verdict(abs(quick / 75 - 1) <= 0.15 and abs(paced / 90 - 1) <= 0.15, numbers)


@fig15.claim("The interference factor is higher without delays than with 750 ms.")
def _factor_falls_with_the_delay(tables: Tables) -> Verdict:
    """Compare the bandwidths alone over those beside B."""
    quick, paced = (
        _rate(tables, _ALONE, d) / _rate(tables, _BOTH, d) for d in (0.0, _LONG)
    )
    return Verdict(quick > paced, {"d = 0": quick, "d = 750 ms": paced})


@fig15.claim(
    "Without delays, buffering gives A 20 % more bandwidth (at least 10 %).",
    reason="Without delays A has nothing else to do while it stages: it flushes at "
    "once and interferes as before. If it waited for B, it would gain the 15 % that "
    "interference costs beyond sharing, but then also with delays.",
)
def _buffering_helps_without_delays(tables: Tables) -> Verdict:
    """Compare A with and without buffers, without delays."""
    rates = _rates(tables, 0.0)
    gain = rates[_BUFFERED] / rates[_BOTH] - 1
    return Verdict(gain >= 0.1, rates | {"gain": gain})


@fig15.claim(
    "With delays of 750 ms, A is slightly slower with buffering than without (by less "
    "than 10 %).",
    reason="While A stages, B writes without interference. Here this gains more than "
    "the missing pauses of A's flush cost: requests of the same application that wait "
    "for each other cost nothing in the model.",
)
def _buffering_hurts_with_delays(tables: Tables) -> Verdict:
    """Compare A with and without buffers, with delays of 750 ms."""
    rates = _rates(tables, _LONG)
    ratio = rates[_BUFFERED] / rates[_BOTH]
    return Verdict(0.9 < ratio < 1, rates | {"with over without": ratio})


# --- Figure 16 --------------------------------------------------------------------


def _duration_rows(_scale: Scale) -> pl.DataFrame:
    return pl.concat([_durations(delay) for delay in DELAYS])


@cache
def _durations(delay: float) -> pl.DataFrame:
    """Return the duration of every request of every process while A is alone (s)."""
    log: Any = _run(_processes("A", delay), record=True).log
    posted, done = (
        pl.DataFrame(
            {
                "process": log.application[log.kind == kind],
                name: log.time[log.kind == kind],
            }
        ).with_columns(pl.int_range(pl.len()).over("process").alias("request"))
        for kind, name in ((POST, "posted"), (COMPLETION, "done"))
    )
    return posted.join(done, on=["process", "request"]).select(
        pl.lit(delay).alias("delay"),
        "process",
        "request",
        (pl.col("done") - pl.col("posted")).alias("duration"),
    )


def _draw_durations(tables: Tables) -> Figure:
    drawn = new_figure(13, 3.9)
    axes = drawn.subplots(1, len(DELAYS), sharey=True)
    for axis, delay in zip(axes, DELAYS, strict=True):
        for process in _SHOWN:
            requests = tables.rows.filter(
                pl.col("delay") == delay, pl.col("process") == process
            ).sort("request")
            axis.plot(
                requests["request"].to_numpy() + 1,
                requests["duration"].to_numpy(),
                linewidth=1.2,
                label=f"process {process}",
            )
        axis.set_title(f"d = {1000 * delay:g} ms", fontsize=10)
        axis.set_xlabel("request")
        tidy(axis, "both")
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel("duration of a request (s)")
    axes[0].legend(frameon=False, fontsize=8)
    return drawn


fig16 = figure("p4-fig16", rows=_duration_rows, draw=_draw_durations)


def _means(tables: Tables) -> dict[float, float]:
    means = tables.rows.group_by("delay").agg(pl.mean("duration")).sort("delay")
    return dict(means.iter_rows())


@fig16.claim(
    "Requests take longest when all processes write without delays; the longer the "
    "delay, the shorter the requests (mean duration, s)."
)
def _durations_fall_with_the_delay(tables: Tables) -> Verdict:
    """Compare the mean durations from one delay to the next."""
    means = _means(tables)
    values = list(means.values())
    numbers = {f"d = {1000 * d:g} ms": mean for d, mean in means.items()}
    falls = all(late < early for early, late in pairwise(values))
    return Verdict(falls, numbers)


@fig16.claim(
    "The pauses of one process let another one complete faster, so that they cost "
    "hardly anything (reduction of the duration of a request, over the delay: 0.9 at "
    "least)."
)
def _self_stabilising(tables: Tables) -> Verdict:
    """Compare the reduction of the mean duration with the delay."""
    means = _means(tables)
    ratios = {
        f"d = {1000 * d:g} ms": (means[0.0] - mean) / d
        for d, mean in means.items()
        if d > 0
    }
    return Verdict(min(ratios.values()) >= 0.9, ratios)
