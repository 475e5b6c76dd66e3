# SPDX-License-Identifier: MIT
"""papers/5 Figures 3, 4 and 5: two IORs under the two-level scheduler.

The experiment, and what we had to assume, is in `p5_experiment`. Two variants of the
scheduler are shown: as the paper has it (infinite depth under overload), and ours,
which holds requests back instead.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Claim, Tables, Verdict, some
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p5.experiment import (
    APPLICATIONS,
    CAPACITY,
    COLOURS,
    LASTS,
    OURS,
    PAPERS,
    PERIOD,
    SLOS,
    by_second,
    depths,
    runs,
)

__all__ = ["FIGURES"]

_ALL: Final = ("fifo", "sfq", "edf", PAPERS, OURS)
_TITLES: Final = {
    "fifo": "fifo",
    "sfq": "sfq (D = 8)",
    "edf": "edf (depth 8)",
    PAPERS: "two-level, as in the paper (overload=send)",
    OURS: "two-level (overload=hold)",
}
#: How the infinite depth is drawn, as in the paper.
_INFINITE: Final = 100.0
#: App2 alone asks for less than 45 MB/s, 90 % of the capacity, until then (s).
_CALM: Final = 500.0
_TIGHT: Final = 0.1
_LOOSE: Final = 0.3
_SETTLED: Final = 5.0


# --- Figure 3 ---------------------------------------------------------------------


def _rates(scale: Scale) -> pl.DataFrame:
    return pl.concat([by_second(*run) for run in runs(scale, (PAPERS, OURS))])


def _panels(number: int, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(11, height * number + 0.4), layout="constrained")
    panels = figure.subplots(number, 1, sharex=True, squeeze=False)[:, 0]
    for panel in panels:
        tidy(panel, "y")
        for start in range(0, int(LASTS), int(2 * PERIOD)):
            panel.axvspan(start, start + PERIOD, color="#f1f1f1", linewidth=0, zorder=0)
    panels[-1].set_xlabel("time (s); grey: App1 is on")
    panels[-1].set_xlim(0, LASTS)
    return figure, panels


def _first_seed(rows: pl.DataFrame, scheduler: str) -> pl.DataFrame:
    return rows.filter((pl.col("scheduler") == scheduler) & (pl.col("seed") == 1))


def _draw_rates(tables: Tables) -> Figure:
    figure, panels = _panels(2, 2.9)
    for panel, scheduler in zip(panels, (PAPERS, OURS), strict=True):
        rows = _first_seed(tables.rows, scheduler)
        for name in APPLICATIONS:
            mine = rows.filter(pl.col("application") == name)
            smooth = mine["issued"].rolling_mean(5, min_samples=1, center=True) / 1e6
            panel.plot(mine["second"], smooth, color=COLOURS[name], label=name)
        panel.axhline(CAPACITY / 1e6, color="#444444", linewidth=0.8, linestyle=":")
        panel.set_title(_TITLES[scheduler], fontsize=10)
        panel.set_ylabel("issue rate (MB/s)")
        panel.set_ylim(0, 60)
    panels[0].legend(frameon=False, ncols=2, loc="upper left")
    return figure


def _issue_rate(rows: pl.DataFrame, scheduler: str, name: str) -> pl.DataFrame:
    return rows.filter(
        (pl.col("scheduler") == scheduler) & (pl.col("application") == name)
    )


def _mean(rows: pl.DataFrame, column: str) -> float:
    return float(some(rows[column]).to_numpy().mean())


def _saturates(tables: Tables) -> Verdict:
    rows = tables.rows.filter(pl.col("on") & (pl.col("second") % 100 >= _SETTLED))
    numbers = {
        s: sum(_mean(_issue_rate(rows, s, name), "issued") for name in APPLICATIONS)
        / 1e6
        for s in (PAPERS, OURS)
    }
    return Verdict(all(47.5 <= n <= 52.5 for n in numbers.values()), numbers)


def _alone_gets_all(tables: Tables) -> Verdict:
    second = pl.col("second")
    calm = ~pl.col("on") & (second < _CALM) & (second % 100 >= PERIOD + _SETTLED)
    rows = tables.rows.filter(calm)
    numbers = {}
    for scheduler in (PAPERS, OURS):
        mine = _issue_rate(rows, scheduler, "App2")
        wanted = 20e6 + 30e6 * _mean(mine, "second") / LASTS
        numbers[scheduler] = _mean(mine, "issued") / wanted
    return Verdict(min(numbers.values()) >= 0.97, numbers)


def _ratios(tables: Tables) -> dict[str, float]:
    """Return the throughput of App1 over that of App2 while both are on."""
    rows = tables.rows.filter(pl.col("on") & (pl.col("second") % 100 >= _SETTLED))
    return {
        s: _mean(_issue_rate(rows, s, "App1"), "moved")
        / _mean(_issue_rate(rows, s, "App2"), "moved")
        for s in (PAPERS, OURS)
    }


def _paper_not_proportional(tables: Tables) -> Verdict:
    ratio = _ratios(tables)[PAPERS]
    return Verdict(ratio < 1.5, {"App1 over App2, agreed: 2": ratio})


def _ours_proportional(tables: Tables) -> Verdict:
    ratio = _ratios(tables)[OURS]
    return Verdict(1.8 <= ratio <= 2.2, {"App1 over App2, agreed: 2": ratio})


# --- Figure 4 ---------------------------------------------------------------------


def _windows(scale: Scale) -> pl.DataFrame:
    return pl.concat([depths(*run) for run in runs(scale, (PAPERS, OURS))])


def _draw_depths(tables: Tables) -> Figure:
    figure, panels = _panels(2, 2.9)
    for panel, scheduler in zip(panels, (PAPERS, OURS), strict=True):
        rows = _first_seed(tables.rows, scheduler)
        shown = rows["depth"].fill_null(_INFINITE).clip(upper_bound=_INFINITE)
        panel.plot(rows["time"], shown, ".", color="#4477AA", markersize=3)
        panel.set_title(_TITLES[scheduler], fontsize=10)
        panel.set_ylabel("EDF queue depth")
    panels[0].set_yticks([0, 20, 40, 60, 80, 100], ["0", "20", "40", "60", "80", "∞"])
    panels[1].set_ylim(bottom=0)
    return figure


def _paper_depths(tables: Tables) -> pl.DataFrame:
    return tables.rows.filter(pl.col("scheduler") == PAPERS)


def _becomes_infinite(tables: Tables) -> Verdict:
    """Look at the first 300 s: windows from App1's coming to the infinite depth."""
    rows = _paper_depths(tables)
    some(rows["window"])
    waits, before = [], []
    for start in (100, 200):
        for _, mine in rows.group_by("seed", maintain_order=True):
            after = mine.filter((pl.col("time") >= start) & pl.col("depth").is_null())
            windows = after["window"].to_list()
            waits.append(float(windows[0]) - 2 * start if windows else inf)
            calm = mine.filter(pl.col("time").is_between(start - 20, start - 1))
            before.append(float(calm["depth"].fill_null(_INFINITE).to_numpy().mean()))
    numbers = {"depth before, mean": max(before), "windows until ∞, most": max(waits)}
    return Verdict(max(before) < 25 and max(waits) <= 6, numbers)


def _becomes_finite(tables: Tables) -> Verdict:
    rows = _paper_depths(tables).filter(~pl.col("on") & (pl.col("time") < 300))
    late = rows.filter(pl.col("time") % 100 >= PERIOD + _SETTLED)
    finite = 1 - float(some(late["depth"].is_null()).to_numpy().mean())
    on = _paper_depths(tables).filter(pl.col("on") & (pl.col("time") % 100 >= _SETTLED))
    infinite = float(some(on["depth"].is_null()).to_numpy().mean())
    numbers = {"finite while App1 is off": finite, "infinite while on": infinite}
    return Verdict(finite >= 0.9 and infinite >= 0.9, numbers)


def _about_15(tables: Tables) -> Verdict:
    rows = _paper_depths(tables).filter(
        ~pl.col("on")
        & (pl.col("time") < 400)
        & (pl.col("time") % 100 >= PERIOD + _SETTLED)
    )
    middle = float(np.median(some(rows["depth"]).to_numpy()))
    return Verdict(10 <= middle <= 20, {"median depth, App2 alone": middle})


def _high_more_often(tables: Tables) -> Verdict:
    rows = _paper_depths(tables).with_columns(pl.col("depth").is_null().alias("high"))
    early = rows.filter(pl.col("time") < 300)
    late = rows.filter(pl.col("time") >= 300)
    numbers = {
        "infinite, first 300 s": _mean(early, "high"),
        "after that": _mean(late, "high"),
    }
    first, after = numbers.values()
    return Verdict(after > first, numbers)


# --- Figure 5 ---------------------------------------------------------------------


def _responses(scale: Scale) -> pl.DataFrame:
    return pl.concat([by_second(*run) for run in runs(scale, _ALL)])


def _draw_responses(tables: Tables) -> Figure:
    figure, panels = _panels(len(_ALL), 2.1)
    for panel, scheduler in zip(panels, _ALL, strict=True):
        rows = _first_seed(tables.rows, scheduler)
        for name in APPLICATIONS:
            mine = rows.filter(pl.col("application") == name).drop_nulls("p95")
            times = (mine["p95"] * 1000).to_numpy()
            panel.plot(
                mine["second"],
                times,
                ".",
                color=COLOURS[name],
                markersize=4,
                label=name,
            )
            bound = SLOS[name].latency_s * 1000
            panel.axhline(bound, color=COLOURS[name], linewidth=0.8, linestyle="--")
        panel.set_yscale("log")
        panel.set_ylim(10, 60_000)
        panel.set_yticks([10, 100, 1000, 10_000], ["10", "100", "1000", "10000"])
        panel.set_title(_TITLES[scheduler], fontsize=10)
        panel.set_ylabel("p95 (ms)")
    panels[0].legend(frameon=False, ncols=2, loc="upper left")
    return figure


def _kept(rows: pl.DataFrame, scheduler: str, name: str, bound: float) -> float:
    """Return the share of seconds whose 95th percentile is within `bound` (s)."""
    times = some(_issue_rate(rows, scheduler, name)["p95"])
    return float((times <= bound).to_numpy().mean())


def _not_overloaded(tables: Tables) -> Verdict:
    rows = tables.rows.filter(~pl.col("on") & (pl.col("second") < _CALM))
    numbers = {s: _kept(rows, s, "App2", _LOOSE) for s in _ALL}
    return Verdict(numbers[OURS] >= 0.9 and numbers[PAPERS] >= 0.9, numbers)


def _favours(scheduler: str) -> Any:
    def check(tables: Tables) -> Verdict:
        rows = tables.rows.filter(pl.col("on"))
        first, second = (_kept(rows, scheduler, n, _TIGHT) for n in APPLICATIONS)
        numbers = {"App1 within 100 ms": first, "App2 within 100 ms": second}
        return Verdict(first >= 10 * second and first > 0.05, numbers)

    return check


def _works_as_much(tables: Tables) -> Verdict:
    moved = {
        s: _mean(tables.rows.filter(pl.col("scheduler") == s), "moved") for s in _ALL
    }
    numbers = {s: moved[s] / moved["fifo"] for s in (PAPERS, OURS)}
    return Verdict(min(numbers.values()) >= 0.95, numbers)


def _first_200_s(tables: Tables) -> Verdict:
    rows = tables.rows.filter(pl.col("second") < 200)
    numbers = {
        f"{name}, {s}": _kept(rows, s, name, _LOOSE)
        for s in (PAPERS, OURS)
        for name in APPLICATIONS
    }
    return Verdict(min(numbers.values()) >= 0.9, numbers)


def _worse_later(tables: Tables) -> Verdict:
    early = tables.rows.filter(pl.col("second") < 200)
    late = tables.rows.filter(pl.col("second") >= 200)
    numbers = {
        "App2 beyond 300 ms, first 200 s": 1 - _kept(early, PAPERS, "App2", _LOOSE),
        "after that": 1 - _kept(late, PAPERS, "App2", _LOOSE),
    }
    first, after = numbers.values()
    return Verdict(after > first, numbers)


_FIG3: Final = "papers/5 section 4.2, Figure 3"
_FIG4: Final = "papers/5 section 4.2.1, Figure 4"
_FIG5: Final = "papers/5 section 4.2.2, Figure 5"
_MEMORY: Final = (
    "The paper's server has 32 GB of memory, which takes writes in at the speed of the "
    "network: in 200 s some 2 GB more than its disk writes. Ours has none: with 64 "
    "processes waiting at 50 MB/s nobody can be answered sooner than in a second or "
    "so, unless others wait longer."
)

FIGURES: Final = {
    "p5-fig3": Reproduction(
        name="p5-fig3",
        title="Issue rates of two IORs under the two-level scheduler",
        source=_FIG3,
        study=_rates,
        draw=_draw_rates,
        claims=[
            Claim(
                "saturated-when-both-are-on",
                _FIG3,
                "With both applications on the storage is saturated: together they "
                "issue what it can serve (50 MB/s, within 5 %), since a process issues "
                "its next request after the last one is answered.",
                _saturates,
            ),
            Claim(
                "alone-gets-its-rate",
                _FIG3,
                "With App1 off the system handles App2's issue rate (97 % of it, until "
                "500 s).",
                _alone_gets_all,
            ),
            Claim(
                "not-proportional-under-overload",
                _FIG5,
                "Under overload throughputs follow the issue rates, not the agreed "
                "ones (App1 has less than 1.5 times App2's).",
                _paper_not_proportional,
            ),
            Claim(
                "held-back-shares-hold",
                "beyond papers/5 (overload=hold)",
                "Where requests are held back instead, shares are those agreed, 2 to 1 "
                "(within 10 %).",
                _ours_proportional,
            ),
        ],
    ),
    "p5-fig4": Reproduction(
        name="p5-fig4",
        title="Adaptive depth of the EDF queue",
        source=_FIG4,
        study=_windows,
        draw=_draw_depths,
        claims=[
            Claim(
                "small-to-infinite",
                _FIG4,
                "When App1 comes on, the depth goes from small (below 25) to infinite "
                "(within 6 windows; first 300 s).",
                _becomes_infinite,
            ),
            Claim(
                "infinite-to-small",
                _FIG4,
                "It stays infinite while App1 is on, and comes back when App1 goes off "
                "(90 % of the windows each, 5 s after the change; first 300 s).",
                _becomes_finite,
            ),
            Claim(
                "about-15-in-steady-state",
                _FIG4,
                "With App2 alone the depth is about 15 (median 10 to 20), not its 32 "
                "processes.",
                _about_15,
            ),
            Claim(
                "high-more-often-later",
                _FIG4,
                "As App2 issues more the depth stays high more often (second 300 s "
                "against the first).",
                _high_more_often,
            ),
        ],
    ),
    "p5-fig5": Reproduction(
        name="p5-fig5",
        title="95th percentile of response times, second by second",
        source=_FIG5,
        study=_responses,
        draw=_draw_responses,
        claims=[
            Claim(
                "bound-met-when-not-overloaded",
                _FIG5,
                "When the storage is not overloaded (App1 off, App2 below 45 MB/s), "
                "the 95th percentile is within the bound 90 % of the time.",
                _not_overloaded,
            ),
            Claim(
                "tight-bound-favoured",
                f"{_FIG5} (with overload=hold)",
                "Under overload App1 is within 100 ms at least 10 times as often as "
                "App2, and in more than 5 % of the seconds.",
                _favours(OURS),
            ),
            Claim(
                "tight-bound-favoured-as-in-the-paper",
                _FIG5,
                "The same with an infinite depth, as in the paper.",
                _favours(PAPERS),
                note="With an infinite depth the storage has all requests and serves "
                f"them as they came. {_MEMORY}",
            ),
            Claim(
                "work-conserving",
                _FIG5,
                "Utilization is kept: at least 95 % of fifo's throughput.",
                _works_as_much,
            ),
            Claim(
                "first-200-s-within-300-ms",
                _FIG5,
                "In the first 200 s, 90 % of the seconds are within 300 ms for both.",
                _first_200_s,
                note=_MEMORY,
            ),
            Claim(
                "more-beyond-300-ms-later",
                _FIG5,
                "After 200 s more of them are beyond 300 ms (App2).",
                _worse_later,
            ),
        ],
    ),
}
