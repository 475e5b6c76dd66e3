# SPDX-License-Identifier: MIT
"""Figures 8, 9, 17 and 18 of target allocation: what the allocation does.

Figures 8 and 9 (section 6.1) are about I/O nodes, 17 and 18 (appendix B) about OSTs.
All allocations use the placement greedy-non-clairvoyant (GNC); mckp places by itself.
The Mean-I/O-SlowDown has two parts: ρ_io, the loss from a number of targets that is not
the best one, and ρ_con, the loss from congestion.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import NoRowsError, Tables, Verdict
from penstock.experiments.output.charts import LABELS
from penstock.model import Column
from penstock.papers.p2.charts import LoadPanel, load_grid
from penstock.papers.p2.pairs import figure_pair
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    CONCLUSIONS,
    IDLETIME,
    INFORMED,
    LARGER_LOAD,
    MCKP,
    N_SYS,
    PLACEMENTS,
    RANDOM,
    SLOWDOWN,
    STATIC,
    T_CPU,
    Problems,
    at_every_number,
    label,
    per_problem,
    summary,
)

__all__ = ["fig8", "fig9", "fig17", "fig18"]

_PARTS: Final = (SLOWDOWN, "rho_io", "rho_con")
_DRAWN: Final = (*ALLOCATIONS, MCKP)
#: Contender -> its name in the legend.
_LINES: Final = {label(name): name for name in _DRAWN}
_OVER_T_CPU: Final = f"{IDLETIME} over {T_CPU}"
#: Loads that the text calls low (at most), high and very high (at least).
_LOW: Final = 0.35
_HIGH: Final = 0.85
_VERY_HIGH: Final = 1.05


def _ratios(problems: Problems, metric: str, one: str, other: str) -> Column:
    """Return `metric` of allocation `one` over that of `other`, minus 1, with GNC."""
    return problems.ratios(metric, label(one), label(other))


def _by_load(
    problems: Problems, metric: str, names: Iterable[str]
) -> dict[str, dict[float, float]]:
    """Return the means by allocation, at the loads at which all are measured."""
    values = {name: problems.means(metric, label(name)) for name in names}
    loads = sorted(set.intersection(*(set(means) for means in values.values())))
    if not loads:
        raise NoRowsError
    return {name: {x: means[x] for x in loads} for name, means in values.items()}


# --- Figures 8 and 17: Mean-I/O-SlowDown and its parts ----------------------------


def _slowdown_table(tables: Tables) -> pl.DataFrame:
    return pl.concat(summary(tables, m, name) for m in _PARTS for name in _LINES)


def _draw_slowdown(tables: Tables, note: str) -> Figure:
    panels = [
        # ρ_io stays within 1 to 5; the others range over two decades. With K = 20 ρ_con
        # of mckp and n-sys is (nearly) 0: there is a target for each application.
        LoadPanel(SLOWDOWN, _LINES, "Mean-I/O-SlowDown", logarithmic=True),
        LoadPanel("rho_io", _LINES, "ρ_io"),
        LoadPanel("rho_con", _LINES, "ρ_con", logarithmic=True, lowest=0.05),
    ]
    return load_grid(_slowdown_table(tables), panels, note)


_EVERY: Final = (*_LINES, *(label(a, p) for a in ALLOCATIONS for p in PLACEMENTS))

fig8, fig17 = figure_pair(
    "p2-fig8",
    "p2-fig17",
    _draw_slowdown,
    _slowdown_table,
    per_problem((*_PARTS, "io_load"), dict.fromkeys(_EVERY)),
)


@fig8.claim(
    "best-bandwidth reduces ρ_io to its bare minimum (1 in every problem; the mean of "
    "all problems)."
)
@at_every_number
def _bba_least_rho_io(problems: Problems) -> Verdict:
    """Check ρ_io of best-bandwidth; give that of all allocations."""
    values = {name: problems.values("rho_io", label(name)) for name in INFORMED}
    means = {name: problems.mean(column) for name, column in values.items()}
    highest = float(np.nanmax(values[BEST_BANDWIDTH]))
    return Verdict(highest <= 1 + 1e-12, means)


@fig8.claim(
    "In return best-bandwidth has a much higher ρ_con than n-sys and static (at least "
    "1.5 times, mean of all problems).",
    reason="ρ counts a wait in units of the time on the best number of targets, so "
    "that it weighs more for an application that static makes slow; in units "
    "of the time on its own targets, best-bandwidth waits 2.8 to 4.3 times as "
    "long as static.",
)
@at_every_number
def _bba_much_more_congestion(problems: Problems) -> Verdict:
    """Compare the means of ρ_con."""
    means = {
        name: problems.mean(problems.values("rho_con", label(name)))
        for name in (BEST_BANDWIDTH, N_SYS, STATIC)
    }
    most = max(means[N_SYS], means[STATIC])
    return Verdict(means[BEST_BANDWIDTH] >= 1.5 * most, means)


@fig8.claim(
    "ρ_con of best-bandwidth grows linearly with the I/O-load (R² of a line through "
    "the means at least 0.95)."
)
@at_every_number
def _bba_congestion_linear(problems: Problems) -> Verdict:
    """Fit a line through the means by load."""
    points = problems.means("rho_con", label(BEST_BANDWIDTH))
    if len(points) < 2:
        raise NoRowsError
    loads, values = np.array(list(points)), np.array(list(points.values()))
    slope, begin = np.polyfit(loads, values, 1)
    residuals = values - (begin + slope * loads)
    determination = 1 - float(residuals @ residuals) / float(
        np.sum((values - values.mean()) ** 2)
    )
    numbers = {"slope": float(slope), "R²": determination}
    return Verdict(slope > 0 and determination >= 0.95, numbers)


@fig8.claim(
    "At very high I/O-load best-bandwidth may become a problem: from 1.05 it has a "
    "higher slowdown than n-sys on the same problems (over n-sys, minus 1, in %).",
    reason="With K = 40 best-bandwidth falls behind n-sys only above an I/O-load of "
    "1.5 (by 5 % at 1.8), which is beyond the loads of the figure.",
)
@at_every_number
def _bba_a_problem_at_very_high_load(problems: Problems) -> Verdict:
    """Compare the slowdowns of best-bandwidth and n-sys problem by problem."""
    ratios = _ratios(problems, SLOWDOWN, BEST_BANDWIDTH, N_SYS)
    mean = problems.mean(ratios, low=_VERY_HIGH)
    return Verdict(mean > 0, {f"{BEST_BANDWIDTH} over {N_SYS}": 100 * mean})


@fig8.claim(
    "ρ_con of n-sys and t-cpu does not vary as much with the I/O-load as that of "
    "best-bandwidth (range of the means)."
)
@at_every_number
def _aware_vary_less(problems: Problems) -> Verdict:
    """Compare the ranges of the means over the loads that all three have."""
    values = _by_load(problems, "rho_con", (BEST_BANDWIDTH, N_SYS, T_CPU))
    ranges = {
        name: max(means.values()) - min(means.values())
        for name, means in values.items()
    }
    return Verdict(max(ranges[N_SYS], ranges[T_CPU]) < ranges[BEST_BANDWIDTH], ranges)


@fig8.claim(
    "n-sys and t-cpu pay for it with more I/O time due to the allocation: their ρ_io "
    "is higher than that of best-bandwidth (mean of all problems)."
)
@at_every_number
def _aware_pay_in_rho_io(problems: Problems) -> Verdict:
    """Compare the means of ρ_io."""
    means = {
        name: problems.mean(problems.values("rho_io", label(name)))
        for name in (BEST_BANDWIDTH, N_SYS, T_CPU)
    }
    holds = min(means[N_SYS], means[T_CPU]) > means[BEST_BANDWIDTH] + 1e-9
    return Verdict(holds, means)


@fig8.claim(
    "mckp performs worse than all others (Mean-I/O-SlowDown over the next worst, the "
    "least of all loads).",
    reason="With K = 20 on 20 targets mckp gives every application targets of its "
    "own, and none waits for another.",
)
@at_every_number
def _mckp_worst(problems: Problems) -> Verdict:
    """Compare mckp with the worst of the others at every load."""
    values = _by_load(problems, SLOWDOWN, _DRAWN)
    factors = {
        load: mean / max(values[name][load] for name in ALLOCATIONS)
        for load, mean in values[MCKP].items()
    }
    load = min(factors, key=lambda load: factors[load])
    numbers = {"over the next worst": factors[load], "at load": load}
    return Verdict(factors[load] > 1, numbers)


@fig8.claim(
    "Under low I/O-load best-bandwidth is the most efficient allocation (no other has "
    "a lower slowdown on the same problems up to load 0.35; over best-bandwidth, minus "
    "1, in %).",
    source="target allocation, section 6.2",
    reason="With K = 20 t-cpu is better in the mean by 0.01 %: in one of 329 problems "
    "best-bandwidth has an I/O-load above 1, and t-cpu, which gives fewer targets "
    "then, is 3 % faster.",
)
@at_every_number
def _bba_best_at_low_load(problems: Problems) -> Verdict:
    """Compare all others with best-bandwidth problem by problem."""
    means = {
        other: 100
        * problems.mean(_ratios(problems, SLOWDOWN, other, BEST_BANDWIDTH), high=_LOW)
        for other in (RANDOM, STATIC, N_SYS, T_CPU)
    }
    return Verdict(min(means.values()) >= -1e-7, means)


@fig8.claim(
    "Where the I/O-load of best-bandwidth is below 1, t-cpu behaves as best-bandwidth "
    "(the same slowdown in every such problem; share of these problems).",
    source="target allocation, section 4.1",
)
@at_every_number
def _ta_is_bba_unsaturated(problems: Problems) -> Verdict:
    """Compare both in the problems in which best-bandwidth does not saturate."""
    below = problems.values("io_load", label(BEST_BANDWIDTH)) < 1
    ratios = np.abs(_ratios(problems, SLOWDOWN, T_CPU, BEST_BANDWIDTH)[below])
    present = ratios[~np.isnan(ratios)]
    if not present.size:
        raise NoRowsError
    share = float(np.mean(present <= 1e-9))
    largest = float(present.max())
    numbers = {"share of the problems": share, "largest difference": largest}
    return Verdict(share == 1, numbers)


def _factor(problems: Problems, contenders: Iterable[str]) -> float:
    """Return the mean of the largest over the smallest slowdown of a problem."""
    values = np.stack([problems.values(SLOWDOWN, name) for name in contenders])
    return problems.mean(values.max(axis=0) / values.min(axis=0))


@fig8.claim(
    "The allocation matters more than the placement for I/O performance (largest over "
    "smallest slowdown of a problem: over the allocations with GNC; over the "
    "placements with the allocation where this is largest).",
    source=CONCLUSIONS,
)
@at_every_number
def _allocation_matters_more(problems: Problems) -> Verdict:
    """Compare the two factors; random allocation is left out."""
    factors = {
        "allocations": _factor(problems, [label(name) for name in INFORMED]),
        "placements": max(
            _factor(problems, [label(name, place) for place in PLACEMENTS])
            for name in INFORMED
        ),
    }
    return Verdict(factors["allocations"] > factors["placements"], factors)


@fig8.claim(
    "Decisions with limited information still improve performance significantly in "
    "most scenarios: best-bandwidth with GNC, which knows n_perf only, has a lower "
    "slowdown than random allocation and placement, by over 5 %, in over half of the "
    "problems.",
    source="target allocation, abstract",
)
@at_every_number
def _limited_information_pays(problems: Problems) -> Verdict:
    """Take the share of the problems in which best-bandwidth gains over 5 %."""
    ratios = problems.ratios(SLOWDOWN, label(BEST_BANDWIDTH), label(RANDOM, RANDOM))
    share = problems.mean(np.where(np.isnan(ratios), np.nan, ratios < -0.05))
    gain = -100 * problems.mean(ratios)
    numbers = {"share of the problems": share, "mean gain (%)": gain}
    return Verdict(share > 0.5, numbers)


# --- Figures 9 and 18: Machine-Idletime -------------------------------------------


def _idletime_table(tables: Tables) -> pl.DataFrame:
    """Return Machine-Idletime, and that over t-cpu's, minus 1."""
    absolute = [summary(tables, IDLETIME, name) for name in _LINES]
    ratio = [
        summary(
            tables,
            _OVER_T_CPU,
            label(name),
            partial(_ratios, metric=IDLETIME, one=name, other=T_CPU),
        )
        for name in INFORMED
    ]
    return pl.concat([*absolute, *ratio])


def _draw_idletime(tables: Tables, note: str) -> Figure:
    panels = [
        LoadPanel(IDLETIME, _LINES, "Machine-Idletime\n(fraction of node time)"),
        LoadPanel(
            _OVER_T_CPU,
            {label(name): name for name in INFORMED},
            f"Machine-Idletime over that\nwith {T_CPU}, minus 1 (%)",
            per_cent=True,
        ),
    ]
    return load_grid(_idletime_table(tables), panels, note)


fig9, fig18 = figure_pair(
    "p2-fig9",
    "p2-fig18",
    _draw_idletime,
    _idletime_table,
    per_problem((SLOWDOWN, IDLETIME), _LINES),
)


@fig9.claim(
    "At low I/O-load (up to 0.35) best-bandwidth and t-cpu are the best two in "
    "Machine-Idletime, as they are in Mean-I/O-SlowDown (share of these loads).",
)
@at_every_number
def _same_order_at_low_load(problems: Problems) -> Verdict:
    """Find the best two allocations at every low load, for both metrics."""
    shares = {}
    for metric in (SLOWDOWN, IDLETIME):
        values = _by_load(problems, metric, ALLOCATIONS)
        low = [load for load in values[T_CPU] if load <= _LOW]
        if not low:
            raise NoRowsError
        ahead = [_best_two(values, load) == {BEST_BANDWIDTH, T_CPU} for load in low]
        shares[LABELS[metric]] = float(np.mean(ahead))
    return Verdict(min(shares.values()) == 1, shares)


def _best_two(values: dict[str, dict[float, float]], load: float) -> set[str]:
    return set(sorted(ALLOCATIONS, key=lambda name: values[name][load])[:2])


@fig9.claim(
    "At larger I/O-load (from 0.65) there is a real difference between t-cpu and "
    "best-bandwidth: Machine-Idletime is lower with t-cpu, by over 5 % (over "
    "best-bandwidth, minus 1, in %).",
)
@at_every_number
def _ta_ahead_at_larger_load(problems: Problems) -> Verdict:
    """Compare the Machine-Idletimes of t-cpu and best-bandwidth problem by problem."""
    mean = problems.mean(
        _ratios(problems, IDLETIME, T_CPU, BEST_BANDWIDTH), low=LARGER_LOAD
    )
    return Verdict(mean < -0.05, {f"{T_CPU} over {BEST_BANDWIDTH}": 100 * mean})


@fig9.claim(
    "At larger I/O-load (from 0.65) the I/O performance of t-cpu and best-bandwidth is "
    "similar (Mean-I/O-SlowDown within 10 %; over best-bandwidth, minus 1, in %).",
    reason="With K = 20 t-cpu makes the large applications 44 % faster and the "
    "others 33 % slower than best-bandwidth (at an aimed load of 0.75), and "
    "the mean counts all alike.",
)
@at_every_number
def _ta_performs_like_bba(problems: Problems) -> Verdict:
    """Compare the slowdowns of t-cpu and best-bandwidth problem by problem."""
    mean = problems.mean(
        _ratios(problems, SLOWDOWN, T_CPU, BEST_BANDWIDTH), low=LARGER_LOAD
    )
    return Verdict(abs(mean) <= 0.1, {f"{T_CPU} over {BEST_BANDWIDTH}": 100 * mean})


@fig9.claim(
    "static can get good machine utilization when the I/O-load is high: from 0.85 its "
    "Machine-Idletime is lower than that of best-bandwidth (over best-bandwidth, minus "
    "1, in %).",
)
@at_every_number
def _static_good_at_high_load(problems: Problems) -> Verdict:
    """Compare the Machine-Idletimes of static and best-bandwidth problem by problem."""
    mean = problems.mean(_ratios(problems, IDLETIME, STATIC, BEST_BANDWIDTH), low=_HIGH)
    return Verdict(mean < 0, {f"{STATIC} over {BEST_BANDWIDTH}": 100 * mean})


@fig9.claim(
    "The mean over applications disadvantages static, which favours large ones: "
    "compared with best-bandwidth it is better in Machine-Idletime than in "
    "Mean-I/O-SlowDown (over best-bandwidth, minus 1, in %, mean of all problems)."
)
@at_every_number
def _slowdown_disadvantages_static(problems: Problems) -> Verdict:
    """Compare static with best-bandwidth in both metrics."""
    means = {
        metric: 100 * problems.mean(_ratios(problems, metric, STATIC, BEST_BANDWIDTH))
        for metric in (SLOWDOWN, IDLETIME)
    }
    numbers = {LABELS[metric]: mean for metric, mean in means.items()}
    return Verdict(means[IDLETIME] < means[SLOWDOWN], numbers)


@fig9.claim(
    "A fine-tuned algorithm is better than peak bandwidth or static: t-cpu is better "
    "than both in Mean-I/O-SlowDown and in Machine-Idletime, in the mean of all "
    "problems (over the other, minus 1, in %).",
    source=CONCLUSIONS,
    reason="With K = 20 and 40 t-cpu has a lower Machine-Idletime but a higher "
    "Mean-I/O-SlowDown than best-bandwidth, because it favours large "
    "applications and the mean counts all alike.",
)
@at_every_number
def _fine_tuned_pays(problems: Problems) -> Verdict:
    """Compare t-cpu with best-bandwidth and static in both metrics."""
    table = {
        f"over {other}": {
            LABELS[metric]: 100 * problems.mean(_ratios(problems, metric, T_CPU, other))
            for metric in (SLOWDOWN, IDLETIME)
        }
        for other in (BEST_BANDWIDTH, STATIC)
    }
    worst = max(value for row in table.values() for value in row.values())
    return Verdict(worst <= 0, table)
