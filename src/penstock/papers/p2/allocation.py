# SPDX-License-Identifier: MIT
"""papers/2 Figures 8 and 9 (I/O nodes), 17 and 18 (OSTs): what allocation does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import LABELS
from penstock.experiments.reproduction import Reproduction
from penstock.papers.p2.charts import LoadPanel, load_lines
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BBA,
    GENERATED,
    GNC,
    IO_NODES,
    MCKP,
    NSYSA,
    OSTS,
    RANDOM,
    STATIC,
    TA,
    binned,
    case_study,
    chosen,
    means,
    placed,
    relative,
    spread,
    summary,
)

__all__ = ["FIGURES"]

_SLOWDOWN: Final = "mean_io_slowdown"
_IDLETIME: Final = "machine_idletime"
_PARTS: Final = (_SLOWDOWN, "rho_io", "rho_con")
_INFORMED: Final = (STATIC, BBA, NSYSA, TA)
#: Intervals of load that the text calls low, larger and very high.
_LOW: Final = 0.35
_LARGER: Final = 0.65
_VERY_HIGH: Final = 1.05


def _part_summary(tables: Tables) -> pl.DataFrame:
    rows = placed(tables.rows)
    return pl.concat([summary(rows, metric, "allocation") for metric in _PARTS])


def _draw_parts(tables: Tables, note: str) -> Figure:
    table = _part_summary(tables)
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


def _against_ta(tables: Tables, metric: str) -> pl.DataFrame:
    rows = placed(tables.rows)
    return relative(rows, rows.filter(pl.col("allocation") == TA), metric)


def _idle_summary(tables: Tables) -> pl.DataFrame:
    """Return Machine-Idletime, and (as metric "ratio") that over t-cpu's, minus 1."""
    parts = [
        summary(placed(tables.rows), _IDLETIME, "allocation"),
        summary(_against_ta(tables, _IDLETIME), "ratio", "allocation"),
    ]
    return pl.concat(parts)


def _draw_idletime(tables: Tables, note: str) -> Figure:
    table = _idle_summary(tables)
    absolute, ratio = (
        table.filter(pl.col("metric") == m) for m in (_IDLETIME, "ratio")
    )
    panels = [
        LoadPanel(absolute, "allocation", "Machine-Idletime\n(fraction of node time)"),
        LoadPanel(
            ratio,
            "allocation",
            f"Machine-Idletime over that with {TA},\nminus 1 (%), on the same set",
            per_cent=True,
            names=(STATIC, BBA, NSYSA, TA),
        ),
    ]
    return load_lines(panels, note)


# --- Claims -----------------------------------------------------------------------


def _over(tables: Tables, one: str, other: str, metric: str) -> pl.DataFrame:
    """Return `metric` of allocation `one` over that of `other`, minus 1, with GNC."""
    rows = placed(tables.rows)
    mine, base = (rows.filter(pl.col("allocation") == name) for name in (one, other))
    return binned(relative(mine, base, metric))


def _between(
    rows: pl.DataFrame, low: float = 0.0, high: float = float("inf")
) -> pl.Series:
    """Return the ratios at loads from `low` to `high`."""
    return rows.filter(pl.col("bin").is_between(low, high))["ratio"]


def _mean(values: pl.Series) -> float:
    found = values.drop_nulls()
    return float(found.to_numpy().mean()) if found.len() else float("inf")


def _common(values: dict[str, dict[float, float]], names: Iterable[str]) -> list[float]:
    """Return the loads at which all of `names` were measured."""
    known = [set(values.get(name, {})) for name in names]
    return sorted(set.intersection(*known)) if known else []


def _bba_least_rho_io(tables: Tables) -> Verdict:
    rows = placed(tables.rows)
    numbers: dict[str, float] = {}
    for name in ALLOCATIONS:
        mine = rows.filter(pl.col("allocation") == name)
        numbers |= spread(name, mine["rho_io"])
    own = rows.filter(pl.col("allocation") == BBA)["rho_io"].drop_nulls().to_numpy()
    return Verdict(bool(own.size) and bool(np.all(own <= 1 + 1e-12)), numbers)


def _bba_much_more_congestion(tables: Tables) -> Verdict:
    values = means(placed(tables.rows), "rho_con", "allocation")
    numbers, holds = {}, []
    for other in (NSYSA, STATIC):
        loads = _common(values, (BBA, other))
        ratios = [values[BBA][load] / values[other][load] for load in loads]
        numbers[f"over {other}, mean"] = float(np.mean(ratios))
        numbers[f"over {other}, lowest"] = min(ratios)
        numbers[f"over {other}, highest"] = max(ratios)
        holds.append(numbers[f"over {other}, mean"] >= 1.5)
    return Verdict(all(holds), numbers)


def _bba_congestion_linear(tables: Tables) -> Verdict:
    points = means(placed(tables.rows), "rho_con", "allocation")[BBA]
    loads, values = np.array(list(points)), np.array(list(points.values()))
    slope, begin = np.polyfit(loads, values, 1)
    left = values - (begin + slope * loads)
    determination = 1 - float(left @ left) / float(
        np.sum((values - values.mean()) ** 2)
    )
    numbers = {
        "slope": float(slope),
        "R²": determination,
        "largest deviation": float(np.abs(left).max()),
    }
    return Verdict(slope > 0 and determination >= 0.95, numbers)


def _bba_a_problem(tables: Tables) -> Verdict:
    ratios = _between(_over(tables, BBA, NSYSA, _SLOWDOWN), low=_VERY_HIGH)
    return Verdict(0 < _mean(ratios) < np.inf, spread(f"over {NSYSA}", ratios))


def _aware_vary_less(tables: Tables) -> Verdict:
    values = means(placed(tables.rows), "rho_con", "allocation")
    loads = _common(values, (BBA, NSYSA, TA))
    ranges = {
        name: max(values[name][load] for load in loads)
        - min(values[name][load] for load in loads)
        for name in (BBA, NSYSA, TA)
    }
    return Verdict(max(ranges[NSYSA], ranges[TA]) < ranges[BBA], ranges)


def _aware_pay_in_rho_io(tables: Tables) -> Verdict:
    values = means(placed(tables.rows), "rho_io", "allocation")
    numbers, holds = {}, []
    for name in (NSYSA, TA):
        loads = _common(values, (name,))
        first, last = values[name][loads[0]], values[name][loads[-1]]
        numbers[f"{name}, load {loads[0]:g}"] = first
        numbers[f"{name}, load {loads[-1]:g}"] = last
        holds.append(last > first and last > 1)
    return Verdict(all(holds), numbers)


def _mckp_worst(tables: Tables) -> Verdict:
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


def _best_two(values: dict[str, dict[float, float]], load: float) -> set[str]:
    return set(sorted(ALLOCATIONS, key=lambda name: values[name][load])[:2])


def _bba_best_at_low_load(tables: Tables) -> Verdict:
    numbers: dict[str, float] = {}
    least = float("inf")
    for other in (RANDOM, STATIC, NSYSA, TA):
        ratios = _between(_over(tables, other, BBA, _SLOWDOWN), high=_LOW)
        numbers |= spread(f"{other} over {BBA}", ratios)
        least = min(least, _mean(ratios))
    return Verdict(least >= -1e-9, numbers)


def _factor(rows: pl.DataFrame) -> pl.Series:
    """Return the largest over the smallest slowdown of every problem."""
    value = pl.col(_SLOWDOWN)
    return (
        rows.filter(value.is_not_null())
        .group_by("point", "instance", maintain_order=True)
        .agg((value.max() / value.min()).alias("factor"))["factor"]
    )


def _allocation_matters_more(tables: Tables) -> Verdict:
    by_allocation = spread(
        "allocations", _factor(chosen(tables.rows, _INFORMED, (GNC,)))
    )
    numbers, largest = dict(by_allocation), 0.0
    for name in _INFORMED:
        found = spread(f"placements, {name}", _factor(chosen(tables.rows, (name,))))
        numbers |= found
        largest = max(largest, found.get(f"placements, {name}, mean", 0.0))
    return Verdict(by_allocation.get("allocations, mean", 0.0) > largest, numbers)


def _same_order_at_low_load(tables: Tables) -> Verdict:
    rows = placed(tables.rows)
    numbers, holds = {}, []
    for metric in (_SLOWDOWN, _IDLETIME):
        values = means(rows, metric, "allocation")
        for load in _common(values, ALLOCATIONS):
            if load <= _LOW:
                ahead = _best_two(values, load) == {BBA, TA}
                numbers[f"{LABELS[metric]}, load {load:g}"] = float(ahead)
                holds.append(ahead)
    return Verdict(bool(holds) and all(holds), numbers or {"sets": 0.0})


def _ta_ahead_at_larger_load(tables: Tables) -> Verdict:
    ratios = _between(_over(tables, TA, BBA, _IDLETIME), low=_LARGER)
    return Verdict(_mean(ratios) < -0.05, spread(f"{TA} over {BBA}", ratios))


def _ta_performs_like_bba(tables: Tables) -> Verdict:
    ratios = _between(_over(tables, TA, BBA, _SLOWDOWN), low=_LARGER)
    return Verdict(abs(_mean(ratios)) <= 0.1, spread(f"{TA} over {BBA}", ratios))


def _static_good_at_high_load(tables: Tables) -> Verdict:
    ratios = _between(_over(tables, STATIC, BBA, _IDLETIME), low=0.85)
    return Verdict(_mean(ratios) < 0, spread(f"{STATIC} over {BBA}", ratios))


def _fine_tuned_pays(tables: Tables) -> Verdict:
    numbers: dict[str, float] = {}
    worst = -float("inf")
    for other in (BBA, STATIC):
        for metric in (_SLOWDOWN, _IDLETIME):
            ratios = _between(_over(tables, TA, other, metric))
            numbers |= spread(f"{LABELS[metric]} over {other}", ratios)
            worst = max(worst, _mean(ratios))
    return Verdict(worst <= 0, numbers)


_EARLIER: Final = (
    "With OSTs best-bandwidth falls behind at a much lower load: so says section 6.3."
)


def _part_claims(source: str) -> tuple[Claim, ...]:
    return (
        Claim(
            "bba-least-rho-io",
            source,
            "best-bandwidth brings ρ_io down to its bare minimum (1 in every set).",
            _bba_least_rho_io,
        ),
        Claim(
            "bba-much-more-congestion",
            source,
            "This comes at the cost of a much higher ρ_con than that of n-sys or "
            "static (at least 1.5 times, in the mean of the loads).",
            _bba_much_more_congestion,
            note="ρ is in units of the time on the best number of targets. One that is "
            "eight times slower on the single target that static gives it counts the "
            "same wait eightfold.",
        ),
        Claim(
            "bba-congestion-linear",
            source,
            "As the I/O-load increases, this cost increases linearly (R² of a line "
            "through the means at least 0.95).",
            _bba_congestion_linear,
        ),
        Claim(
            "bba-a-problem-at-very-high-load",
            source,
            "It may become a problem at very high I/O-load: above 1.05 best-bandwidth "
            "has a higher slowdown than n-sys on the same sets.",
            _bba_a_problem,
        ),
        Claim(
            "aware-vary-less",
            source,
            "ρ_con of n-sys and t-cpu does not vary as much with the I/O-load (smaller "
            "range of the means than best-bandwidth).",
            _aware_vary_less,
        ),
        Claim(
            "aware-pay-in-rho-io",
            source,
            "That comes at the cost of an increased ρ_io (of n-sys and t-cpu, from the "
            "lowest to the highest load).",
            _aware_pay_in_rho_io,
            note="With our OST profiles n-sys is 1 or 2 for nearly all applications, "
            "whatever the load.",
        ),
        Claim(
            "mckp-worst",
            source,
            "mckp has a higher Mean-I/O-SlowDown than all others, at every load.",
            _mckp_worst,
        ),
        Claim(
            "bba-best-at-low-load",
            "papers/2 section 6.2, of this figure",
            "Under low I/O-load best-bandwidth is the most efficient allocation (no "
            "other has a lower slowdown on the same sets up to load 0.35).",
            _bba_best_at_low_load,
            note=_EARLIER,
        ),
        Claim(
            "allocation-matters-more",
            "papers/2 section 8",
            "The allocation is more important than the placement (largest over "
            "smallest slowdown of a set: of allocations with GNC, of placements).",
            _allocation_matters_more,
        ),
    )


def _idle_claims(source: str) -> tuple[Claim, ...]:
    return (
        Claim(
            "same-order-at-low-load",
            source,
            "At low I/O-load (up to 0.35) best-bandwidth and t-cpu are the best in "
            "Machine-Idletime, as they are in Mean-I/O-SlowDown (1: yes).",
            _same_order_at_low_load,
            note=_EARLIER,
        ),
        Claim(
            "ta-ahead-at-larger-load",
            source,
            "At larger I/O-load (from 0.65) there is a real difference in favour of "
            "t-cpu (Machine-Idletime lower than best-bandwidth's by over 5 %).",
            _ta_ahead_at_larger_load,
        ),
        Claim(
            "ta-performs-like-bba",
            source,
            "There, their I/O performance is similar (Mean-I/O-SlowDown of t-cpu "
            "within 10 % of best-bandwidth's).",
            _ta_performs_like_bba,
            note="t-cpu is the better one in this as well.",
        ),
        Claim(
            "static-good-at-high-load",
            source,
            "static still gets good machine utilization when the I/O-load is high "
            "(lower Machine-Idletime than best-bandwidth from 0.85).",
            _static_good_at_high_load,
        ),
        Claim(
            "fine-tuned-pays",
            "papers/2 section 8",
            "One should use a fine-tuned algorithm rather than peak bandwidth or "
            "static: t-cpu is better than both in Mean-I/O-SlowDown and in "
            "Machine-Idletime, in the mean of all sets.",
            _fine_tuned_pays,
            note="With OSTs static is better than t-cpu at loads of 0.2 to 0.7; "
            "section 6.3 finds it excellent there, too.",
        ),
    )


def _figures(
    case: str, numbers: Sequence[int], sections: Sequence[str], note: str
) -> dict[str, Reproduction]:
    """Return the two figures of one set of profiles."""
    what = f" ({note})" if note else ""
    parts, idle = (
        f"papers/2 {section}, Figure {number}"
        for section, number in zip(sections, numbers, strict=True)
    )
    first, second = (f"p2-fig{number}" for number in numbers)
    return {
        first: Reproduction(
            name=first,
            title=f"Mean-I/O-SlowDown of the allocations, and its two parts{what}",
            source=parts,
            study=case_study(case),
            draw=lambda t: _draw_parts(t, note),
            claims=list(_part_claims(parts)),
            summary=_part_summary,
        ),
        second: Reproduction(
            name=second,
            title=f"Machine-Idletime of the allocations{what}",
            source=idle,
            study=case_study(case),
            draw=lambda t: _draw_idletime(t, note),
            claims=list(_idle_claims(idle)),
            summary=_idle_summary,
        ),
    }


FIGURES: Final = {
    **_figures(IO_NODES, (8, 9), ("section 6.1.1", "section 6.1.2"), ""),
    **_figures(OSTS, (17, 18), ("section 6.3 and appendix B",) * 2, GENERATED),
}
