# SPDX-License-Identifier: MIT
"""Tables of the frontier: means, differences, domination, APEX windows.

*Best* is the policy of bandwidth sharing with the highest mean MinYield at a point.
*Look* is look-ahead-greedy-yield. All differences are paired by instance.

The windows of one APEX schedule show the same jobs, so the intervals of APEX points are
those of whole schedules: 10 schedules of 20 windows count as 10 (`with_schedules`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property
from itertools import permutations
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from penstock.analysis.frontier import (
    Interval,
    dominates,
    gap_closed,
    interval,
    paired,
)
from penstock.experiments.claims import Tables
from penstock.experiments.output.charts import policies_of
from penstock.papers.p1.policies import ALL_POLICIES, FAIR_SHARE, LOOK_AHEAD
from penstock.workloads import Apex

__all__ = [
    "PointTable",
    "count_dominations",
    "differences",
    "dominations",
    "means",
    "points_of",
    "windows_under_base",
    "with_schedules",
]

_OBJECTIVES: Final = ("min_yield", "efficiency", "utilization")
#: The objectives in which a policy must be better to dominate another.
_BOTH: Final = ("min_yield", "efficiency")
_APEX: Final = ("NERSC", "TRILAB")
#: A window counts if its MinYield is below this part of that of fair-share.
_LEAST: Final = 0.99
#: The column that says how many consecutive instances share a schedule.
_WINDOWS: Final = "windows"


def with_schedules(tables: Tables) -> Tables:
    """Add the number of windows per schedule to the rows; 1 where none are shared.

    Intervals here and the resamples of `penstock.experiments.resampling` keep windows
    of one schedule together by this column.
    """
    shared = pl.when(pl.col("workload") == "apex").then(Apex().windows).otherwise(1)
    return replace(tables, rows=tables.rows.with_columns(shared.alias(_WINDOWS)))


class PointTable:
    """The values of all policies and objectives at one point, by instance."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.group = str(rows["group"][0])
        self.label = str(rows["label"][0])
        self.policies = policies_of(rows)
        parts = rows.sort("instance").partition_by("policy", as_dict=True)
        self._values = {
            (str(policy), objective): part[objective].to_numpy()
            for (policy,), part in parts.items()
            for objective in (*_OBJECTIVES, "bound")
        }
        first = parts[self.policies[0],]
        self._groups = (first["instance"] // first[_WINDOWS]).to_numpy()
        self.independent = len(np.unique(self._groups))
        """Number of instances, or of schedules."""
        self.bound = self.interval(self.policies[0], "bound")

    def values(self, policy: str, objective: str) -> NDArray[np.float64]:
        """Return an objective of a policy on every instance."""
        return self._values[policy, objective]

    def interval(self, policy: str, objective: str) -> Interval:
        """Return the mean of an objective with its interval."""
        return interval(self.values(policy, objective), self._groups)

    def mean(self, policy: str, objective: str) -> float:
        """Return the mean of an objective over the instances."""
        return float(self.values(policy, objective).mean())

    def difference(self, policy: str, other: str, objective: str) -> Interval:
        """Return the paired difference of `policy` minus `other`."""
        values, others = (self.values(p, objective) for p in (policy, other))
        return paired(values, others, self._groups)

    def dominates(self, policy: str, other: str) -> bool:
        """Return True if `policy` is significantly better in both objectives."""
        return dominates(*(self.difference(policy, other, o) for o in _BOTH))

    @cached_property
    def best(self) -> str:
        """The policy of bandwidth sharing with the highest mean MinYield."""
        return max(ALL_POLICIES, key=lambda policy: self.mean(policy, "min_yield"))

    def gain(self, policy: str) -> Interval:
        """Return the MinYield of a policy minus that of the best of the eight."""
        return self.difference(policy, self.best, "min_yield")

    def efficiency_gain(self, policy: str) -> Interval:
        """Return the Efficiency of a policy minus that of look-ahead-greedy-yield."""
        return self.difference(policy, LOOK_AHEAD, "efficiency")

    def gap_closed(self, policy: str) -> float:
        """Return the part of the gap from the best of the eight to the bound."""
        mean, best = (self.mean(p, "min_yield") for p in (policy, self.best))
        return gap_closed(mean, best, self.bound.mean)


#: The tables of the rows that `points_of` saw last.
_latest: list[tuple[pl.DataFrame, list[PointTable]]] = []


def points_of(rows: pl.DataFrame) -> list[PointTable]:
    """Return a table per point, in the order of the study.

    The tables of the latest rows are kept: all claims ask for those of the same rows.
    """
    if not (_latest and _latest[0][0] is rows):
        tables = [PointTable(part) for part in rows.partition_by("point")]
        _latest[:] = [(rows, tables)]
    return _latest[0][1]


def means(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per point and policy: objectives with their intervals."""
    return pl.DataFrame(
        [
            _mean_row(point, policy)
            for point in points_of(rows)
            for policy in point.policies
        ]
    )


def _mean_row(point: PointTable, policy: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "group": point.group,
        "point": point.label,
        "policy": policy,
        "instances": point.values(policy, "min_yield").size,
        "independent": point.independent,
    }
    for objective in _OBJECTIVES:
        value = point.interval(policy, objective)
        row |= {objective: value.mean, f"{objective}_error": value.half_width}
    return row | {"bound": point.bound.mean, "bound_error": point.bound.half_width}


def differences(rows: pl.DataFrame, policies: tuple[str, ...]) -> pl.DataFrame:
    """Return a row per point and policy: differences to *best* and to *look*."""
    return pl.DataFrame(
        [
            _difference_row(point, policy)
            for point in points_of(rows)
            for policy in policies
        ]
    )


def _difference_row(point: PointTable, policy: str) -> dict[str, Any]:
    gain, efficiency = point.gain(policy), point.efficiency_gain(policy)
    return {
        "group": point.group,
        "point": point.label,
        "policy": policy,
        "best": point.best,
        "best_min_yield": point.mean(point.best, "min_yield"),
        "look_efficiency": point.mean(LOOK_AHEAD, "efficiency"),
        "bound": point.bound.mean,
        "min_yield": point.mean(policy, "min_yield"),
        "efficiency": point.mean(policy, "efficiency"),
        "min_yield_gain": gain.mean,
        "min_yield_gain_error": gain.half_width,
        "efficiency_gain": efficiency.mean,
        "efficiency_gain_error": efficiency.half_width,
        "gap_closed": point.gap_closed(policy),
        "both_at_least": gain.mean >= 0.0 and efficiency.mean >= 0.0,
        "both_significant": dominates(gain, efficiency),
    }


def dominations(rows: pl.DataFrame) -> pl.DataFrame:
    """Return a row per point and pair of policies: `policy` dominates `over`."""
    pairs = [
        {"group": point.group, "point": point.label, "policy": policy, "over": other}
        for point in points_of(rows)
        for policy, other in permutations(point.policies, 2)
        if point.dominates(policy, other)
    ]
    columns = ("group", "point", "policy", "over")
    return pl.DataFrame(pairs, schema=dict.fromkeys(columns, pl.String))


def count_dominations(rows: pl.DataFrame) -> pl.DataFrame:
    """Return at how many points the policy of a row dominates that of a column."""
    pairs = Counter(dominations(rows).select("policy", "over").iter_rows())
    policies = policies_of(rows)
    return pl.DataFrame(
        [
            {"policy": policy, "points": rows["point"].n_unique()}
            | {other: pairs[policy, other] for other in policies}
            for policy in policies
        ]
    )


def windows_under_base(rows: pl.DataFrame) -> pl.DataFrame:
    """Return how many APEX windows of a policy are more than 1 % below fair-share.

    A row per trace and policy also holds the lowest MinYield over that of fair-share,
    with its point and window.
    """
    return pl.DataFrame(
        [
            _windows_row(group, points, policy)
            for group, points in _apex_points(rows).items()
            for policy in points[0].policies
        ]
    )


def _apex_points(rows: pl.DataFrame) -> dict[str, list[PointTable]]:
    points: dict[str, list[PointTable]] = {}
    for point in points_of(rows.filter(pl.col("group").is_in(_APEX))):
        points.setdefault(point.group, []).append(point)
    return points


def _windows_row(group: str, points: list[PointTable], policy: str) -> dict[str, Any]:
    ratios = [_ratios(point, policy) for point in points]
    lowest = min(range(len(points)), key=lambda number: ratios[number].min())
    return {
        "group": group,
        "policy": policy,
        "windows": sum(part.size for part in ratios),
        "under": sum(int((part < _LEAST).sum()) for part in ratios),
        "lowest": float(ratios[lowest].min()),
        "lowest_point": points[lowest].label,
        "lowest_window": int(ratios[lowest].argmin()),
    }


def _ratios(point: PointTable, policy: str) -> NDArray[np.float64]:
    """Return MinYield over that of fair-share by window; 1 where both are 0."""
    values, base = (point.values(p, "min_yield") for p in (policy, FAIR_SHARE))
    return np.divide(values, base, out=np.ones_like(base), where=base > 0.0)
