# SPDX-License-Identifier: MIT
"""papers/4 Figures 15 and 16: what delays do to single processes, and what flushes do.

Here every process is an application of the engine, and the storage serves requests in
the order in which they arrive: while a process pauses, others are served. Interference
costs the more, the more requests wait beyond those of one application: with n of them,
1 / (1 + 0.15 (n - 256) / 256) of the bandwidth is left, which makes 2.3 of two
applications of 256 processes without delays (Figure 4). With buffering, the processes
of A stage during all their pauses and then flush without any, as strategy 1b has it.
32 MB per process, 170 MB/s.
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

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.model import Application, Instance, Platform, Window
from penstock.papers.p4.charts import bars, new_figure
from penstock.papers.p4.study import DELAYS, one_of
from penstock.policies.policy import bind
from penstock.policies.view import View
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION, POST

__all__ = ["FIGURES"]

_BANDWIDTH: Final = 170e6
_PROCESSES: Final = 256
_REQUESTS: Final = 32
_SIZE: Final = 1e6
_LONG: Final = 0.75
_HORIZON_S: Final = 1e5
#: What the requests of a second application cost beyond sharing.
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
    """Serve the oldest request, at what waiting requests leave of the bandwidth."""
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
    """Return the processes of A, and of B if there is one, for every case."""
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
    return bars(tables.rows, "panel", "label", "case", "rate", "bandwidth of A (MB/s)")


def _rate(tables: Tables, case: str, delay: float) -> float:
    return one_of(tables.rows, "rate", case=case, delay=delay)


def _rates(tables: Tables, delay: float) -> dict[str, float]:
    return {case: _rate(tables, case, delay) for case in (_ALONE, _BOTH, _BUFFERED)}


def _delay_costs_little(tables: Tables) -> Verdict:
    quick, paced = (_rate(tables, _ALONE, d) for d in (0.0, _LONG))
    numbers = {"d = 0 (MB/s)": quick, "d = 750 ms (MB/s)": paced}
    return Verdict(paced >= 0.95 * quick, numbers)


def _interference(tables: Tables) -> Verdict:
    quick, paced = (_rate(tables, _BOTH, d) for d in (0.0, _LONG))
    numbers = {"d = 0 (MB/s)": quick, "d = 750 ms (MB/s)": paced}
    return Verdict(abs(quick / 75 - 1) <= 0.15 and abs(paced / 90 - 1) <= 0.15, numbers)


def _factor_falls(tables: Tables) -> Verdict:
    quick, paced = (
        _rate(tables, _ALONE, d) / _rate(tables, _BOTH, d) for d in (0.0, _LONG)
    )
    return Verdict(quick > paced, {"d = 0": quick, "d = 750 ms": paced})


def _buffering_helps(tables: Tables) -> Verdict:
    found = _rates(tables, 0.0)
    gain = found[_BUFFERED] / found[_BOTH] - 1
    return Verdict(gain >= 0.1, found | {"gain": gain})


def _buffering_hurts(tables: Tables) -> Verdict:
    found = _rates(tables, _LONG)
    ratio = found[_BUFFERED] / found[_BOTH]
    return Verdict(0.9 < ratio < 1, found | {"with over without": ratio})


_FIG15: Final = "papers/4 section V-D, Figure 15"
_CLAIMS15: Final = (
    Claim(
        "delay-costs-little-alone",
        _FIG15,
        "Alone, A reaches 170 MB/s without delays and 162 MB/s with 750 ms (95 %).",
        _delay_costs_little,
    ),
    Claim(
        "interfering-bandwidths",
        _FIG15,
        "Interfering with B, A reaches 75 MB/s without delays and 90 MB/s with 750 ms "
        "(± 15 %).",
        _interference,
    ),
    Claim(
        "factor-falls-with-the-delay",
        _FIG15,
        "The interference factor is higher without delays than with 750 ms.",
        _factor_falls,
    ),
    Claim(
        "buffering-helps-without-delays",
        _FIG15,
        "Without delays, buffering gives A 20 % more bandwidth (at least 10 %).",
        _buffering_helps,
        note="Without delays there is nothing to do while staging: A flushes at once, "
        "and interferes as before. Had it waited for B, it would have gained what "
        "interference costs beyond sharing, 15 %; but then also with delays.",
    ),
    Claim(
        "buffering-hurts-with-delays",
        _FIG15,
        "With delays of 750 ms, A is slightly slower with buffering than without (by "
        "less than 10 %).",
        _buffering_hurts,
        note="While A stages, B writes without interference, and that is worth more "
        "here than the pauses that A's flush no longer has: requests of one "
        "application that wait for one another cost nothing in the model.",
    ),
)


# --- Figure 16 --------------------------------------------------------------------


def _duration_rows(_scale: Scale) -> pl.DataFrame:
    return pl.concat([_durations(delay) for delay in DELAYS])


@cache
def _durations(delay: float) -> pl.DataFrame:
    """Return how long every request of every process took, A being alone."""
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
    figure = new_figure(13, 3.9)
    axes = figure.subplots(1, len(DELAYS), sharey=True)
    for axis, delay in zip(axes, DELAYS, strict=True):
        for process in _SHOWN:
            mine = tables.rows.filter(
                pl.col("delay") == delay, pl.col("process") == process
            ).sort("request")
            axis.plot(
                mine["request"].to_numpy() + 1,
                mine["duration"].to_numpy(),
                linewidth=1.2,
                label=f"process {process}",
            )
        axis.set_title(f"d = {1000 * delay:g} ms", fontsize=10)
        axis.set_xlabel("request")
        tidy(axis, "both")
    axes[0].set_ylim(bottom=0)
    axes[0].set_ylabel("duration of a request (s)")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def _means(tables: Tables) -> dict[float, float]:
    means = tables.rows.group_by("delay").agg(pl.mean("duration")).sort("delay")
    return dict(means.iter_rows())


def _fall(tables: Tables) -> Verdict:
    means = _means(tables)
    values = list(means.values())
    numbers = {f"d = {1000 * d:g} ms": mean for d, mean in means.items()}
    falls = all(late < early for early, late in pairwise(values))
    return Verdict(falls, numbers)


def _takes_over(tables: Tables) -> Verdict:
    """Compare what a delay takes from the duration of a request with the delay."""
    means = _means(tables)
    ratios = {
        f"d = {1000 * d:g} ms": (means[0.0] - mean) / d
        for d, mean in means.items()
        if d > 0
    }
    return Verdict(min(ratios.values()) >= 0.9, ratios)


_FIG16: Final = "papers/4 section V-D, Figure 16"
_CLAIMS16: Final = (
    Claim(
        "durations-fall-with-the-delay",
        _FIG16,
        "Requests take longest when all processes write without delays; the longer the "
        "delay, the shorter the requests (mean duration, s).",
        _fall,
    ),
    Claim(
        "self-stabilising",
        _FIG16,
        "The pauses of one process let another complete faster: they cost hardly "
        "anything (what requests get shorter by, over the delay: 0.9 at least).",
        _takes_over,
    ),
)

FIGURES: Final = {
    "p4-fig15": Reproduction(
        name="p4-fig15",
        title="Bandwidth of an application that pauses, with and without buffering",
        source=_FIG15,
        study=_buffering_rows,
        draw=_draw_buffering,
        claims=list(_CLAIMS15),
    ),
    "p4-fig16": Reproduction(
        name="p4-fig16",
        title="Durations of the requests of single processes",
        source=_FIG16,
        study=_duration_rows,
        draw=_draw_durations,
        claims=list(_CLAIMS16),
    ),
}
