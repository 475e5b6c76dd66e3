# SPDX-License-Identifier: MIT
"""Figures 3, 4 and 5 of two-level scheduling (section 4.2): two IORs.

`penstock.papers.p5.experiment` describes the experiment and our assumptions. Two
variants of the scheduler are compared: that of the paper (infinite depth under
overload), and ours, which holds requests back instead.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import (
    Tables,
    Verdict,
    case,
    present_values,
    require_rows,
)
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p5.experiment import (
    APPLICATIONS,
    CAPACITY,
    COLOURS,
    DURATION_S,
    OURS,
    PAPERS,
    PERIOD_S,
    SLOS,
    by_second,
    depths,
    runs,
)

__all__ = ["fig3", "fig4", "fig5"]

_ALL: Final = ("fifo", "sfq", "edf", PAPERS, OURS)
_TITLES: Final = {
    "fifo": "fifo",
    "sfq": "sfq (D = 8)",
    "edf": "edf (depth 8)",
    PAPERS: "two-level, as in the paper (overload=send)",
    OURS: "two-level (overload=hold)",
}
#: The infinite depth is drawn here, as in the paper.
_INFINITE: Final = 100.0
#: Until then App2 issues less than 45 MB/s, 90 % of the capacity (s).
_CALM_S: Final = 500.0
#: Latency bounds of App1 and of App2 (s).
_TIGHT_S: Final = 0.1
_LOOSE_S: Final = 0.3
#: Time after App1 comes on or goes off that is not counted (s).
_TRANSIENT_S: Final = 5.0
_VARIANTS: Final = (PAPERS, OURS)
_MEMORY: Final = (
    "The paper's server has 32 GB of memory and takes writes at the speed of the "
    "network: in 200 s about 2 GB more than its disk writes. Our storage caches "
    "nothing: with 64 processes waiting at 50 MB/s an answer takes a second or so, "
    "unless others wait longer."
)


# --- Figure 3 ---------------------------------------------------------------------


def _rates(scale: Scale) -> pl.DataFrame:
    return pl.concat([by_second(*run) for run in runs(scale, _VARIANTS)])


def _panels(number: int, height: float) -> tuple[Figure, Any]:
    """Return a figure with panels below each other; grey where App1 is on."""
    drawn = Figure(figsize=(11, height * number + 0.4), layout="constrained")
    panels = drawn.subplots(number, 1, sharex=True, squeeze=False)[:, 0]
    for panel in panels:
        tidy(panel, "y")
        for start in range(0, int(DURATION_S), int(2 * PERIOD_S)):
            panel.axvspan(
                start, start + PERIOD_S, color="#f1f1f1", linewidth=0, zorder=0
            )
    panels[-1].set_xlabel("time (s); grey: App1 is on")
    panels[-1].set_xlim(0, DURATION_S)
    return drawn, panels


def _first_seed(rows: pl.DataFrame, scheduler: str) -> pl.DataFrame:
    return rows.filter((pl.col("scheduler") == scheduler) & (pl.col("seed") == 1))


def _draw_rates(tables: Tables) -> Figure:
    drawn, panels = _panels(2, 2.9)
    for panel, scheduler in zip(panels, _VARIANTS, strict=True):
        rows = _first_seed(tables.rows, scheduler)
        for name in APPLICATIONS:
            own = rows.filter(pl.col("application") == name)
            smooth = own["issued"].rolling_mean(5, min_samples=1, center=True) / 1e6
            panel.plot(own["second"], smooth, color=COLOURS[name], label=name)
        panel.axhline(CAPACITY / 1e6, color="#444444", linewidth=0.8, linestyle=":")
        panel.set_title(_TITLES[scheduler], fontsize=10)
        panel.set_ylabel("issue rate (MB/s)")
        panel.set_ylim(0, 60)
    panels[0].legend(frameon=False, ncols=2, loc="upper left")
    return drawn


fig3 = figure("p5-fig3", rows=_rates, draw=_draw_rates)


def _select(rows: pl.DataFrame, scheduler: str, name: str) -> pl.DataFrame:
    """Return the rows of one application under one scheduler."""
    return rows.filter(
        (pl.col("scheduler") == scheduler) & (pl.col("application") == name)
    )


def _column_mean(rows: pl.DataFrame, column: str) -> float:
    """Return the mean of a column; raise NoRowsError if there are no values."""
    return float(present_values(rows[column]).to_numpy().mean())


@fig3.claim(
    "With both applications on the storage is saturated: together they issue what it "
    "can serve (50 MB/s, within 5 %), since a process issues its next request after "
    "the last one is answered."
)
def _saturated_when_both_are_on(tables: Tables) -> Verdict:
    """Take the mean of both issue rates together (MB/s)."""
    rows = tables.rows.filter(pl.col("on") & (pl.col("second") % 100 >= _TRANSIENT_S))
    numbers = {
        s: sum(_column_mean(_select(rows, s, name), "issued") for name in APPLICATIONS)
        / 1e6
        for s in _VARIANTS
    }
    return Verdict(all(47.5 <= n <= 52.5 for n in numbers.values()), numbers)


@fig3.claim(
    "With App1 off the system handles App2's issue rate (97 % of it, until 500 s)."
)
def _alone_gets_its_rate(tables: Tables) -> Verdict:
    """Compare the mean issue rate of App2 with the aimed one."""
    second = pl.col("second")
    calm = (
        ~pl.col("on") & (second < _CALM_S) & (second % 100 >= PERIOD_S + _TRANSIENT_S)
    )
    rows = tables.rows.filter(calm)
    numbers = {}
    for scheduler in _VARIANTS:
        own = _select(rows, scheduler, "App2")
        aimed = 20e6 + 30e6 * _column_mean(own, "second") / DURATION_S
        numbers[scheduler] = _column_mean(own, "issued") / aimed
    return Verdict(min(numbers.values()) >= 0.97, numbers)


def _ratios(tables: Tables) -> dict[str, float]:
    """Return the throughput of App1 over that of App2 while both are on."""
    rows = tables.rows.filter(pl.col("on") & (pl.col("second") % 100 >= _TRANSIENT_S))
    return {
        s: _column_mean(_select(rows, s, "App1"), "moved")
        / _column_mean(_select(rows, s, "App2"), "moved")
        for s in _VARIANTS
    }


@fig3.claim(
    "Under overload throughputs follow the issue rates, not the agreed ones (App1 has "
    "less than 1.5 times App2's).",
    source="two-level scheduling, section 4.2.2, Figure 5",
)
def _not_proportional_under_overload(tables: Tables) -> Verdict:
    """Compare the throughputs under the scheduler of the paper."""
    ratio = _ratios(tables)[PAPERS]
    return Verdict(ratio < 1.5, {"App1 over App2, agreed: 2": ratio})


@fig3.claim(
    "If requests are held back instead, shares are those agreed, 2 to 1 (within 10 %).",
    source="not in the paper (overload=hold)",
)
def _held_back_shares_hold(tables: Tables) -> Verdict:
    """Compare the throughputs under our scheduler."""
    ratio = _ratios(tables)[OURS]
    return Verdict(1.8 <= ratio <= 2.2, {"App1 over App2, agreed: 2": ratio})


# --- Figure 4 ---------------------------------------------------------------------


def _windows(scale: Scale) -> pl.DataFrame:
    return pl.concat([depths(*run) for run in runs(scale, _VARIANTS)])


def _draw_depths(tables: Tables) -> Figure:
    drawn, panels = _panels(2, 2.9)
    for panel, scheduler in zip(panels, _VARIANTS, strict=True):
        rows = _first_seed(tables.rows, scheduler)
        shown = rows["depth"].fill_null(_INFINITE).clip(upper_bound=_INFINITE)
        panel.plot(rows["time"], shown, ".", color="#4477AA", markersize=3)
        panel.set_title(_TITLES[scheduler], fontsize=10)
        panel.set_ylabel("EDF queue depth")
    panels[0].set_yticks([0, 20, 40, 60, 80, 100], ["0", "20", "40", "60", "80", "∞"])
    panels[1].set_ylim(bottom=0)
    return drawn


fig4 = figure("p5-fig4", rows=_windows, draw=_draw_depths)


def _paper_depths(tables: Tables) -> pl.DataFrame:
    return tables.rows.filter(pl.col("scheduler") == PAPERS)


@fig4.claim(
    "When App1 comes on, the depth goes from small (below 25) to infinite (within 6 "
    "windows; first 300 s)."
)
def _small_to_infinite(tables: Tables) -> Verdict:
    """Count the windows from the start of App1 to the infinite depth."""
    rows = _paper_depths(tables)
    require_rows(rows)
    waits, before = [], []
    for start in (100, 200):
        for _, run in rows.group_by("seed", maintain_order=True):
            after = run.filter((pl.col("time") >= start) & pl.col("depth").is_null())
            windows = after["window"].to_list()
            waits.append(float(windows[0]) - 2 * start if windows else inf)
            calm = run.filter(pl.col("time").is_between(start - 20, start - 1))
            before.append(float(calm["depth"].fill_null(_INFINITE).to_numpy().mean()))
    numbers = {"depth before, mean": max(before), "windows until ∞, most": max(waits)}
    return Verdict(max(before) < 25 and max(waits) <= 6, numbers)


@fig4.claim(
    "The depth stays infinite while App1 is on, and becomes finite when App1 goes off "
    "(90 % of the windows each, 5 s after the change; first 300 s)."
)
def _infinite_to_small(tables: Tables) -> Verdict:
    """Take the shares of windows with finite and infinite depth."""
    rows = _paper_depths(tables).filter(~pl.col("on") & (pl.col("time") < 300))
    late = rows.filter(pl.col("time") % 100 >= PERIOD_S + _TRANSIENT_S)
    finite = 1 - float(present_values(late["depth"].is_null()).to_numpy().mean())
    on = _paper_depths(tables).filter(
        pl.col("on") & (pl.col("time") % 100 >= _TRANSIENT_S)
    )
    infinite = float(present_values(on["depth"].is_null()).to_numpy().mean())
    numbers = {"finite while App1 is off": finite, "infinite while on": infinite}
    return Verdict(finite >= 0.9 and infinite >= 0.9, numbers)


@fig4.claim(
    "With App2 alone the depth is about 15 (median 10 to 20), not its 32 processes."
)
def _about_15_in_steady_state(tables: Tables) -> Verdict:
    """Take the median depth while App1 is off."""
    rows = _paper_depths(tables).filter(
        ~pl.col("on")
        & (pl.col("time") < 400)
        & (pl.col("time") % 100 >= PERIOD_S + _TRANSIENT_S)
    )
    middle = float(np.median(present_values(rows["depth"]).to_numpy()))
    return Verdict(10 <= middle <= 20, {"median depth, App2 alone": middle})


@fig4.claim(
    "As App2 issues more, the depth stays high more often (second 300 s against the "
    "first)."
)
def _high_more_often_later(tables: Tables) -> Verdict:
    """Compare the shares of windows with infinite depth."""
    rows = _paper_depths(tables).with_columns(pl.col("depth").is_null().alias("high"))
    early = rows.filter(pl.col("time") < 300)
    late = rows.filter(pl.col("time") >= 300)
    numbers = {
        "infinite, first 300 s": _column_mean(early, "high"),
        "after that": _column_mean(late, "high"),
    }
    first, after = numbers.values()
    return Verdict(after > first, numbers)


# --- Figure 5 ---------------------------------------------------------------------


def _responses(scale: Scale) -> pl.DataFrame:
    return pl.concat([by_second(*run) for run in runs(scale, _ALL)])


def _draw_responses(tables: Tables) -> Figure:
    drawn, panels = _panels(len(_ALL), 2.1)
    for panel, scheduler in zip(panels, _ALL, strict=True):
        rows = _first_seed(tables.rows, scheduler)
        for name in APPLICATIONS:
            own = rows.filter(pl.col("application") == name).drop_nulls("p95")
            times = (own["p95"] * 1000).to_numpy()
            panel.plot(
                own["second"],
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
    return drawn


fig5 = figure("p5-fig5", rows=_responses, draw=_draw_responses)


def _kept(rows: pl.DataFrame, scheduler: str, name: str, bound_s: float) -> float:
    """Return the share of seconds whose 95th percentile is within `bound_s`."""
    times = present_values(_select(rows, scheduler, name)["p95"])
    return float((times <= bound_s).to_numpy().mean())


@fig5.claim(
    "When the storage is not overloaded (App1 off, App2 below 45 MB/s), the 95th "
    "percentile is within the bound 90 % of the time."
)
def _bound_met_when_not_overloaded(tables: Tables) -> Verdict:
    """Take the share of seconds in which App2 is within 300 ms."""
    rows = tables.rows.filter(~pl.col("on") & (pl.col("second") < _CALM_S))
    numbers = {s: _kept(rows, s, "App2", _LOOSE_S) for s in _ALL}
    return Verdict(numbers[OURS] >= 0.9 and numbers[PAPERS] >= 0.9, numbers)


@fig5.claim_cases(
    case(
        "tight-bound-favoured",
        "Under overload App1 is within 100 ms at least 10 times as often as App2, and "
        "in more than 5 % of the seconds.",
        source="two-level scheduling, section 4.2.2, Figure 5 (with overload=hold)",
        scheduler=OURS,
    ),
    case(
        "tight-bound-favoured-as-in-the-paper",
        "The same with an infinite depth, as in the paper.",
        reason="With an infinite depth the storage has all requests and serves them in "
        f"the order of their arrival. {_MEMORY}",
        scheduler=PAPERS,
    ),
)
def _tight_bound_favoured(tables: Tables, scheduler: str) -> Verdict:
    """Compare the shares of seconds within 100 ms while App1 is on."""
    rows = tables.rows.filter(pl.col("on"))
    first, second = (_kept(rows, scheduler, n, _TIGHT_S) for n in APPLICATIONS)
    numbers = {"App1 within 100 ms": first, "App2 within 100 ms": second}
    return Verdict(first >= 10 * second and first > 0.05, numbers)


@fig5.claim("Utilization is kept: at least 95 % of fifo's throughput.")
def _work_conserving(tables: Tables) -> Verdict:
    """Compare the throughput of both variants with that of fifo."""
    moved = {
        s: _column_mean(tables.rows.filter(pl.col("scheduler") == s), "moved")
        for s in _ALL
    }
    numbers = {s: moved[s] / moved["fifo"] for s in _VARIANTS}
    return Verdict(min(numbers.values()) >= 0.95, numbers)


@fig5.claim(
    "In the first 200 s, 90 % of the seconds are within 300 ms for both.",
    reason=_MEMORY,
)
def _first_200_s_within_300_ms(tables: Tables) -> Verdict:
    """Take the share of seconds within 300 ms."""
    rows = tables.rows.filter(pl.col("second") < 200)
    numbers = {
        f"{name}, {s}": _kept(rows, s, name, _LOOSE_S)
        for s in _VARIANTS
        for name in APPLICATIONS
    }
    return Verdict(min(numbers.values()) >= 0.9, numbers)


@fig5.claim("After 200 s a larger share of the seconds is beyond 300 ms (App2).")
def _more_beyond_300_ms_later(tables: Tables) -> Verdict:
    """Compare the shares of seconds beyond 300 ms."""
    early = tables.rows.filter(pl.col("second") < 200)
    late = tables.rows.filter(pl.col("second") >= 200)
    numbers = {
        "App2 beyond 300 ms, first 200 s": 1 - _kept(early, PAPERS, "App2", _LOOSE_S),
        "after that": 1 - _kept(late, PAPERS, "App2", _LOOSE_S),
    }
    first, after = numbers.values()
    return Verdict(after > first, numbers)
