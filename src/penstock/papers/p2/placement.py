# SPDX-License-Identifier: MIT
"""Figures 5 to 7 and 14 to 16 of target allocation: effects of the placement.

Figures 5 to 7 (section 6.1.1) are about I/O nodes, 14 to 16 (appendix B) about OSTs.
GC is greedy-clairvoyant placement, GNC greedy-non-clairvoyant. A "set" is one problem:
applications that need targets. The I/O-spread is the share of the time in which the
busiest target is busy minus that of the idlest one.
"""

from __future__ import annotations

from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict, case
from penstock.papers.p2.charts import LoadPanel, load_lines, spread_boxes
from penstock.papers.p2.pairs import figure_pair
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    CONCLUSIONS,
    GC,
    GNC,
    PLACEMENTS,
    RANDOM,
    binned,
    chosen,
    means,
    relative,
    spread,
    summary,
)

__all__ = ["balance", "balance_by_load", "slowdown"]

_METRIC: Final = "mean_io_slowdown"
#: What "very little" and "very low" mean: section 6.3 uses these words for 5 %.
_LITTLE: Final = 0.05
#: Middle of the interval of load of Figure 6: 0.5 +- 0.05.
_HALF: Final = 0.5
_INFORMED: Final = tuple(name for name in ALLOCATIONS if name != RANDOM)
_GNC_NOTE: Final = (
    "Where the difference is negative, GNC is better although it knows less: GC "
    "balances the time in which targets are used, but the mean counts every "
    "application alike."
)


# --- Figures 5 and 14: slowdown ---------------------------------------------------


def _against_gc(tables: Tables, placement: str) -> pl.DataFrame:
    """Return the slowdown with a placement over that with GC, for each allocation."""
    rows = chosen(tables.rows, placements=(placement,))
    base = chosen(tables.rows, placements=(GC,))
    return relative(rows, base, _METRIC, on=["allocation"])


def _slowdown_table(tables: Tables) -> pl.DataFrame:
    parts = [
        summary(_against_gc(tables, placement), "ratio", "allocation").with_columns(
            pl.lit(placement).alias("placement")
        )
        for placement in (GNC, RANDOM)
    ]
    return pl.concat(parts)


def _draw_slowdown(tables: Tables, note: str) -> Figure:
    table = _slowdown_table(tables)
    panels = [
        LoadPanel(
            table.filter(pl.col("placement") == placement),
            "allocation",
            f"Mean-I/O-SlowDown over that with\n{GC}, minus 1 (%)",
            f"placement {placement}",
            per_cent=True,
        )
        for placement in (GNC, RANDOM)
    ]
    return load_lines(panels, note)


slowdown = figure_pair("p2-fig5", "p2-fig14", _draw_slowdown, _slowdown_table)


def _impact(tables: Tables, placement: str, name: str) -> tuple[pl.Series, float]:
    """Return the relative slowdowns of an allocation, and the largest mean by load."""
    rows = _against_gc(tables, placement).filter(pl.col("allocation") == name)
    by_load = means(rows, "ratio", "allocation").get(name, {})
    largest = max((abs(mean) for mean in by_load.values()), default=0.0)
    return rows["ratio"], largest


@slowdown.claim(
    "Whether GC or GNC is used has very little impact on performance, except with "
    "random allocation (mean at every load within 5 %).",
    reason=_GNC_NOTE,
)
def _gnc_like_gc(tables: Tables) -> Verdict:
    """Compare GNC with GC for all allocations but the random one."""
    numbers: dict[str, float] = {}
    worst = 0.0
    for name in _INFORMED:
        ratios, largest = _impact(tables, GNC, name)
        numbers |= spread(name, ratios) | {f"{name}, largest at a load": largest}
        worst = max(worst, largest)
    return Verdict(worst <= _LITTLE, numbers)


@slowdown.claim(
    "With random allocation GC and GNC differ (by more than 5 % at a load).",
    reason="In our sets random allocation is no exception: it differs as much as the "
    "others, and less than best-bandwidth and t-cpu.",
)
def _random_allocation_excepted(tables: Tables) -> Verdict:
    """Compare GNC with GC for random allocation."""
    ratios, largest = _impact(tables, GNC, RANDOM)
    numbers = spread(RANDOM, ratios) | {"largest at a load": largest}
    return Verdict(largest > _LITTLE, numbers)


@slowdown.claim(
    "Random placement matters: its slowdown is more than 5 % above that of GC, in the "
    "mean of all sets."
)
def _random_placement_matters(tables: Tables) -> Verdict:
    """Compare random placement with GC for all allocations but the random one."""
    numbers: dict[str, float] = {}
    least = float("inf")
    for name in _INFORMED:
        ratios, _ = _impact(tables, RANDOM, name)
        measures = spread(name, ratios)
        numbers |= measures
        least = min(least, measures.get(f"{name}, mean", 0.0))
    return Verdict(least > _LITTLE, numbers)


@slowdown.claim(
    "Balancing the number of applications per target gives results as good as a "
    "placement that knows the I/O (mean of all sets at most 5 % worse).",
    source=CONCLUSIONS,
    reason=_GNC_NOTE,
)
def _naive_placement_will_do(tables: Tables) -> Verdict:
    """Compare GNC with GC over all allocations."""
    numbers = spread("all allocations", _against_gc(tables, GNC)["ratio"])
    return Verdict(numbers.get("all allocations, mean", 1.0) <= _LITTLE, numbers)


# --- Figures 6 and 15: I/O-spread at load 0.5 -------------------------------------


def _half_loaded(tables: Tables) -> pl.DataFrame:
    rows = binned(chosen(tables.rows))
    return rows.filter(pl.col("bin") == _HALF)


def _balance_table(tables: Tables) -> pl.DataFrame:
    return (
        _half_loaded(tables)
        .group_by("allocation", "placement")
        .agg(
            pl.col("io_spread").count().alias("sets"),
            pl.mean("io_spread").alias("mean"),
            pl.quantile("io_spread", 0.1, "linear").alias("low"),
            pl.quantile("io_spread", 0.9, "linear").alias("high"),
        )
        .sort("allocation", "placement")
    )


def _draw_balance(tables: Tables, note: str) -> Figure:
    rows = _half_loaded(tables)
    sets = rows.select("point", "instance").n_unique()
    text = (
        f"{sets} sets, minimum I/O-load 0.5 ± 0.05; whiskers: 10th to 90th percentile"
    )
    return spread_boxes(rows, PLACEMENTS, f"{text}\n{note}" if note else text)


balance = figure_pair("p2-fig6", "p2-fig15", _draw_balance, _balance_table)


def _mean_spreads(tables: Tables) -> dict[str, dict[str, float]]:
    """Return the mean I/O-spread at load 0.5 by allocation and placement."""
    by_allocation: dict[str, dict[str, float]] = {}
    table = _balance_table(tables).select("allocation", "placement", "mean")
    for allocation, placement, mean in table.iter_rows():
        by_allocation.setdefault(allocation, {})[placement] = mean
    return by_allocation


@balance.claim_cases(
    case(
        "gc-balances-best",
        "GC balances I/O over the targets better than GNC (smaller mean I/O-spread "
        "with every allocation).",
        better=GC,
        worse=GNC,
    ),
    case(
        "gnc-balances-better-than-random",
        "GNC still balances I/O better than random placement.",
        better=GNC,
        worse=RANDOM,
    ),
)
def _better_balanced(tables: Tables, better: str, worse: str) -> Verdict:
    """Compare the mean I/O-spreads of two placements, for every allocation."""
    rows, gaps = _half_loaded(tables), []
    numbers: dict[str, float] = {}
    for allocation, values in _mean_spreads(tables).items():
        gaps.append(values[worse] - values[better])
        for name in (better, worse):
            selected = rows.filter(
                pl.col("allocation") == allocation, pl.col("placement") == name
            )
            numbers |= spread(f"{allocation} + {name}", selected["io_spread"])
    return Verdict(bool(gaps) and min(gaps) > 0, numbers or {"sets": 0.0})


@balance.claim(
    "The occupancy of a target is correlated to the number of its applications (r > "
    "0.3 in the mean, under random placement)."
)
def _occupancy_follows_users(tables: Tables) -> Verdict:
    """Take the mean correlation over all sets with random placement."""
    rows = chosen(tables.rows, placements=(RANDOM,))
    numbers = spread("correlation", rows["users_correlation"])
    return Verdict(numbers.get("correlation, mean", 0.0) > 0.3, numbers)


@balance.claim(
    "GC and GNC balance differently and perform alike: the I/O-spread of GNC is over "
    "10 % wider, its slowdown within 5 %.",
    reason=_GNC_NOTE,
)
def _balance_does_not_matter(tables: Tables) -> Verdict:
    """Compare I/O-spread and slowdown of GNC and GC at load 0.5."""
    numbers, holds = {}, []
    for allocation, values in _mean_spreads(tables).items():
        if allocation == RANDOM:
            continue
        rows = binned(_against_gc(tables, GNC)).filter(
            pl.col("bin") == _HALF, pl.col("allocation") == allocation
        )
        slower = spread(allocation, rows["ratio"]).get(f"{allocation}, mean", 1.0)
        numbers[f"{allocation}, spread of GNC"] = values[GNC]
        numbers[f"{allocation}, spread of GC"] = values[GC]
        numbers[f"{allocation}, slowdown of GNC over GC"] = slower
        holds.append(values[GNC] > 1.1 * values[GC] and abs(slower) <= _LITTLE)
    return Verdict(bool(holds) and all(holds), numbers or {"sets": 0.0})


# --- Figures 7 and 16: I/O-spread by load -----------------------------------------


def _spread_by_load(tables: Tables) -> pl.DataFrame:
    rows = chosen(tables.rows, allocations=(BEST_BANDWIDTH,))
    return summary(rows, "io_spread", "placement")


def _draw_spread_by_load(tables: Tables, note: str) -> Figure:
    label = "I/O-spread: busiest minus idlest target\n(fraction of the time)"
    panel = LoadPanel(
        _spread_by_load(tables),
        "placement",
        label,
        f"allocation {BEST_BANDWIDTH}",
        error=True,
    )
    return load_lines([panel], note)


balance_by_load = figure_pair(
    "p2-fig7", "p2-fig16", _draw_spread_by_load, _spread_by_load
)


@balance_by_load.claim(
    "The order of the I/O-spreads, GC < GNC < random, holds for different values of "
    "I/O-load (all intervals).",
    reason="At loads near 0.1 and above 1 nearly all targets are idle or nearly all "
    "are busy: there is little to balance.",
)
def _order_at_every_load(tables: Tables) -> Verdict:
    """Compare the three placements in every interval of load."""
    numbers: dict[str, float] = {}
    holds = True
    table = _spread_by_load(tables)
    for (load,), rows in table.group_by("bin", maintain_order=True):
        value = dict(rows.select("placement", "mean").iter_rows())
        error = dict(rows.select("placement", "error").iter_rows())
        if not value.keys() >= {RANDOM, GNC, GC}:
            continue
        numbers[f"load {load:g}, random - GNC"] = value[RANDOM] - value[GNC]
        numbers[f"load {load:g}, GNC - GC"] = value[GNC] - value[GC]
        numbers[f"load {load:g}, 95 % ±"] = max(error.values())
        holds = holds and value[RANDOM] > value[GNC] > value[GC]
    numbers = dict(sorted(numbers.items()))
    return Verdict(holds and bool(numbers), numbers or {"sets": 0.0})
