# SPDX-License-Identifier: MIT
"""Figures 8, 9, 17 and 18 of target allocation: what the allocation does.

Figures 8 and 9 (section 6.1) are about I/O nodes, 17 and 18 (appendix B) about OSTs.
All allocations use the placement greedy-non-clairvoyant (GNC); mckp places by itself.
The Mean-I/O-SlowDown has two parts: ρ_io, the loss from a number of targets that is not
the best one, and ρ_con, the loss from congestion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import LABELS
from penstock.papers.p2.charts import LoadPanel, load_lines
from penstock.papers.p2.pairs import figure_pair
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    CONCLUSIONS,
    GNC,
    MCKP,
    N_SYS,
    RANDOM,
    STATIC,
    T_CPU,
    binned,
    chosen,
    means,
    placed,
    relative,
    spread,
    summary,
)

__all__ = ["idletime", "slowdown"]

_SLOWDOWN: Final = "mean_io_slowdown"
_IDLETIME: Final = "machine_idletime"
_PARTS: Final = (_SLOWDOWN, "rho_io", "rho_con")
_INFORMED: Final = (STATIC, BEST_BANDWIDTH, N_SYS, T_CPU)
#: Loads that the text calls low (at most), larger, high and very high (at least).
_LOW: Final = 0.35
_LARGER: Final = 0.65
_HIGH: Final = 0.85
_VERY_HIGH: Final = 1.05
_EARLIER: Final = (
    "With OSTs best-bandwidth falls behind at a much lower load, as section 6.3 says."
)


def _over(tables: Tables, one: str, other: str, metric: str) -> pl.DataFrame:
    """Return `metric` of allocation `one` over that of `other`, minus 1, with GNC."""
    rows = placed(tables.rows)
    first, base = (rows.filter(pl.col("allocation") == name) for name in (one, other))
    return binned(relative(first, base, metric))


def _between(
    rows: pl.DataFrame, low: float = 0.0, high: float = float("inf")
) -> pl.Series:
    """Return the ratios at loads from `low` to `high`."""
    return rows.filter(pl.col("bin").is_between(low, high))["ratio"]


def _mean_or_infinity(values: pl.Series) -> float:
    """Return the mean of the values that are not missing; infinite if all are."""
    present = values.drop_nulls()
    return float(present.to_numpy().mean()) if present.len() else float("inf")


def _common(values: dict[str, dict[float, float]], names: Iterable[str]) -> list[float]:
    """Return the loads at which all of `names` were measured."""
    known = [set(values.get(name, {})) for name in names]
    return sorted(set.intersection(*known)) if known else []


# --- Figures 8 and 17: Mean-I/O-SlowDown and its parts ----------------------------


def _slowdown_table(tables: Tables) -> pl.DataFrame:
    rows = placed(tables.rows)
    return pl.concat([summary(rows, metric, "allocation") for metric in _PARTS])


def _draw_slowdown(tables: Tables, note: str) -> Figure:
    table = _slowdown_table(tables)
    panels = [
        LoadPanel(
            table.filter(pl.col("metric") == metric),
            "allocation",
            LABELS[metric],
            # ρ_io stays within 1 to 4; the others range over two decades.
            logarithmic=metric != "rho_io",
        )
        for metric in _PARTS
    ]
    return load_lines(panels, note)


slowdown = figure_pair("p2-fig8", "p2-fig17", _draw_slowdown, _slowdown_table)


@slowdown.claim("best-bandwidth has the lowest possible ρ_io (1 in every set).")
def _bba_least_rho_io(tables: Tables) -> Verdict:
    """Check ρ_io of best-bandwidth; give that of all allocations."""
    rows = placed(tables.rows)
    numbers: dict[str, float] = {}
    for name in ALLOCATIONS:
        selected = rows.filter(pl.col("allocation") == name)
        numbers |= spread(name, selected["rho_io"])
    own = (
        rows.filter(pl.col("allocation") == BEST_BANDWIDTH)["rho_io"]
        .drop_nulls()
        .to_numpy()
    )
    return Verdict(bool(own.size) and bool(np.all(own <= 1 + 1e-12)), numbers)


@slowdown.claim(
    "In return best-bandwidth has a much higher ρ_con than n-sys and static (at least "
    "1.5 times, in the mean of the loads).",
    reason="The unit of ρ is the time on the best number of targets. An application "
    "that is eight times slower on the single target that static gives it counts the "
    "same wait eight times as much.",
)
def _bba_much_more_congestion(tables: Tables) -> Verdict:
    """Compare the means of ρ_con at every load."""
    values = means(placed(tables.rows), "rho_con", "allocation")
    numbers, holds = {}, []
    for other in (N_SYS, STATIC):
        loads = _common(values, (BEST_BANDWIDTH, other))
        ratios = [values[BEST_BANDWIDTH][load] / values[other][load] for load in loads]
        numbers[f"over {other}, mean"] = float(np.mean(ratios))
        numbers[f"over {other}, lowest"] = min(ratios)
        numbers[f"over {other}, highest"] = max(ratios)
        holds.append(numbers[f"over {other}, mean"] >= 1.5)
    return Verdict(all(holds), numbers)


@slowdown.claim(
    "ρ_con of best-bandwidth grows linearly with the I/O-load (R² of a line through "
    "the means at least 0.95)."
)
def _bba_congestion_linear(tables: Tables) -> Verdict:
    """Fit a line through the means by load."""
    points = means(placed(tables.rows), "rho_con", "allocation")[BEST_BANDWIDTH]
    loads, values = np.array(list(points)), np.array(list(points.values()))
    slope, begin = np.polyfit(loads, values, 1)
    residuals = values - (begin + slope * loads)
    determination = 1 - float(residuals @ residuals) / float(
        np.sum((values - values.mean()) ** 2)
    )
    numbers = {
        "slope": float(slope),
        "R²": determination,
        "largest deviation": float(np.abs(residuals).max()),
    }
    return Verdict(slope > 0 and determination >= 0.95, numbers)


@slowdown.claim(
    "At very high I/O-load best-bandwidth may become a problem: above 1.05 it has a "
    "higher slowdown than n-sys on the same sets."
)
def _bba_a_problem_at_very_high_load(tables: Tables) -> Verdict:
    """Compare the slowdowns of best-bandwidth and n-sys set by set."""
    ratios = _between(_over(tables, BEST_BANDWIDTH, N_SYS, _SLOWDOWN), low=_VERY_HIGH)
    return Verdict(
        0 < _mean_or_infinity(ratios) < np.inf, spread(f"over {N_SYS}", ratios)
    )


@slowdown.claim(
    "ρ_con of n-sys and t-cpu varies less with the I/O-load than that of "
    "best-bandwidth (range of the means)."
)
def _aware_vary_less(tables: Tables) -> Verdict:
    """Compare the ranges of the means over the loads that all three have."""
    values = means(placed(tables.rows), "rho_con", "allocation")
    loads = _common(values, (BEST_BANDWIDTH, N_SYS, T_CPU))
    ranges = {
        name: max(values[name][load] for load in loads)
        - min(values[name][load] for load in loads)
        for name in (BEST_BANDWIDTH, N_SYS, T_CPU)
    }
    return Verdict(max(ranges[N_SYS], ranges[T_CPU]) < ranges[BEST_BANDWIDTH], ranges)


@slowdown.claim(
    "n-sys and t-cpu pay for it with a higher ρ_io (from the lowest to the highest "
    "load).",
    reason="With our OST profiles n-sys is 1 or 2 for nearly all applications at any "
    "load.",
)
def _aware_pay_in_rho_io(tables: Tables) -> Verdict:
    """Compare the means of ρ_io at the lowest and the highest load."""
    values = means(placed(tables.rows), "rho_io", "allocation")
    numbers, holds = {}, []
    for name in (N_SYS, T_CPU):
        loads = _common(values, (name,))
        first, last = values[name][loads[0]], values[name][loads[-1]]
        numbers[f"{name}, load {loads[0]:g}"] = first
        numbers[f"{name}, load {loads[-1]:g}"] = last
        holds.append(last > first and last > 1)
    return Verdict(all(holds), numbers)


@slowdown.claim("mckp has a higher Mean-I/O-SlowDown than all others, at every load.")
def _mckp_worst(tables: Tables) -> Verdict:
    """Compare mckp with the worst of the others at every load."""
    values = means(placed(tables.rows), _SLOWDOWN, "allocation")
    loads = _common(values, (MCKP, *ALLOCATIONS))
    factors = [
        values[MCKP][load] / max(values[name][load] for name in ALLOCATIONS)
        for load in loads
    ]
    numbers = {
        "over the next worst, mean": float(np.mean(factors)),
        "lowest": min(factors),
        "highest": max(factors),
    }
    return Verdict(min(factors) > 1, numbers)


@slowdown.claim(
    "At low I/O-load best-bandwidth is the most efficient allocation (no other has a "
    "lower slowdown on the same sets up to load 0.35).",
    source="target allocation, section 6.2",
    reason=_EARLIER,
)
def _bba_best_at_low_load(tables: Tables) -> Verdict:
    """Compare all others with best-bandwidth set by set."""
    numbers: dict[str, float] = {}
    least = float("inf")
    for other in (RANDOM, STATIC, N_SYS, T_CPU):
        ratios = _between(_over(tables, other, BEST_BANDWIDTH, _SLOWDOWN), high=_LOW)
        numbers |= spread(f"{other} over {BEST_BANDWIDTH}", ratios)
        least = min(least, _mean_or_infinity(ratios))
    return Verdict(least >= -1e-9, numbers)


def _factor(rows: pl.DataFrame) -> pl.Series:
    """Return the largest over the smallest slowdown of every set."""
    value = pl.col(_SLOWDOWN)
    return (
        rows.filter(value.is_not_null())
        .group_by("point", "instance", maintain_order=True)
        .agg((value.max() / value.min()).alias("factor"))["factor"]
    )


@slowdown.claim(
    "The allocation matters more than the placement (largest over smallest slowdown "
    "of a set: over the allocations with GNC, over the placements).",
    source=CONCLUSIONS,
)
def _allocation_matters_more(tables: Tables) -> Verdict:
    """Compare the two factors; random allocation is left out."""
    numbers = spread("allocations", _factor(chosen(tables.rows, _INFORMED, (GNC,))))
    by_allocation, by_placement = numbers.get("allocations, mean", 0.0), 0.0
    for name in _INFORMED:
        factors = spread(f"placements, {name}", _factor(chosen(tables.rows, (name,))))
        numbers |= factors
        mean = factors.get(f"placements, {name}, mean", 0.0)
        by_placement = max(by_placement, mean)
    return Verdict(by_allocation > by_placement, numbers)


# --- Figures 9 and 18: Machine-Idletime -------------------------------------------


def _against_t_cpu(tables: Tables, metric: str) -> pl.DataFrame:
    rows = placed(tables.rows)
    return relative(rows, rows.filter(pl.col("allocation") == T_CPU), metric)


def _idletime_table(tables: Tables) -> pl.DataFrame:
    """Return Machine-Idletime, and (as metric "ratio") that over t-cpu's, minus 1."""
    parts = [
        summary(placed(tables.rows), _IDLETIME, "allocation"),
        summary(_against_t_cpu(tables, _IDLETIME), "ratio", "allocation"),
    ]
    return pl.concat(parts)


def _draw_idletime(tables: Tables, note: str) -> Figure:
    table = _idletime_table(tables)
    absolute, ratio = (
        table.filter(pl.col("metric") == m) for m in (_IDLETIME, "ratio")
    )
    panels = [
        LoadPanel(absolute, "allocation", "Machine-Idletime\n(fraction of node time)"),
        LoadPanel(
            ratio,
            "allocation",
            f"Machine-Idletime over that with {T_CPU},\nminus 1 (%), on the same set",
            per_cent=True,
            names=_INFORMED,
        ),
    ]
    return load_lines(panels, note)


idletime = figure_pair("p2-fig9", "p2-fig18", _draw_idletime, _idletime_table)


def _best_two(values: dict[str, dict[float, float]], load: float) -> set[str]:
    return set(sorted(ALLOCATIONS, key=lambda name: values[name][load])[:2])


@idletime.claim(
    "At low I/O-load (up to 0.35) best-bandwidth and t-cpu are the best in "
    "Machine-Idletime, as they are in Mean-I/O-SlowDown (1: yes).",
    reason=_EARLIER,
)
def _same_order_at_low_load(tables: Tables) -> Verdict:
    """Find the best two allocations at every low load, for both metrics."""
    rows = placed(tables.rows)
    numbers, holds = {}, []
    for metric in (_SLOWDOWN, _IDLETIME):
        values = means(rows, metric, "allocation")
        for load in _common(values, ALLOCATIONS):
            if load <= _LOW:
                ahead = _best_two(values, load) == {BEST_BANDWIDTH, T_CPU}
                numbers[f"{LABELS[metric]}, load {load:g}"] = float(ahead)
                holds.append(ahead)
    return Verdict(bool(holds) and all(holds), numbers or {"sets": 0.0})


@idletime.claim(
    "At larger I/O-load (from 0.65) t-cpu is really better than best-bandwidth "
    "(Machine-Idletime lower by over 5 %)."
)
def _ta_ahead_at_larger_load(tables: Tables) -> Verdict:
    """Compare the Machine-Idletimes of t-cpu and best-bandwidth set by set."""
    ratios = _between(_over(tables, T_CPU, BEST_BANDWIDTH, _IDLETIME), low=_LARGER)
    return Verdict(
        _mean_or_infinity(ratios) < -0.05,
        spread(f"{T_CPU} over {BEST_BANDWIDTH}", ratios),
    )


@idletime.claim(
    "At larger I/O-load the I/O performance of t-cpu and best-bandwidth is similar "
    "(Mean-I/O-SlowDown within 10 %).",
    reason="t-cpu is better here as well.",
)
def _ta_performs_like_bba(tables: Tables) -> Verdict:
    """Compare the slowdowns of t-cpu and best-bandwidth set by set."""
    ratios = _between(_over(tables, T_CPU, BEST_BANDWIDTH, _SLOWDOWN), low=_LARGER)
    return Verdict(
        abs(_mean_or_infinity(ratios)) <= 0.1,
        spread(f"{T_CPU} over {BEST_BANDWIDTH}", ratios),
    )


@idletime.claim(
    "static still uses the machine well when the I/O-load is high (lower "
    "Machine-Idletime than best-bandwidth from 0.85)."
)
def _static_good_at_high_load(tables: Tables) -> Verdict:
    """Compare the Machine-Idletimes of static and best-bandwidth set by set."""
    ratios = _between(_over(tables, STATIC, BEST_BANDWIDTH, _IDLETIME), low=_HIGH)
    return Verdict(
        _mean_or_infinity(ratios) < 0, spread(f"{STATIC} over {BEST_BANDWIDTH}", ratios)
    )


@idletime.claim(
    "A fine-tuned algorithm is better than peak bandwidth or static: t-cpu is better "
    "than both in Mean-I/O-SlowDown and in Machine-Idletime, in the mean of all sets.",
    source=CONCLUSIONS,
    reason="With OSTs static is better than t-cpu at loads of 0.2 to 0.7; section 6.3 "
    "finds static excellent there, too.",
)
def _fine_tuned_pays(tables: Tables) -> Verdict:
    """Compare t-cpu with best-bandwidth and static in both metrics."""
    numbers: dict[str, float] = {}
    worst = -float("inf")
    for other in (BEST_BANDWIDTH, STATIC):
        for metric in (_SLOWDOWN, _IDLETIME):
            ratios = _between(_over(tables, T_CPU, other, metric))
            numbers |= spread(f"{LABELS[metric]} over {other}", ratios)
            worst = max(worst, _mean_or_infinity(ratios))
    return Verdict(worst <= 0, numbers)
