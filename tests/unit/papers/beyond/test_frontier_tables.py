# SPDX-License-Identifier: MIT
"""Tables of the frontier, from rows with known gains."""

from __future__ import annotations

import polars as pl
import pytest

from penstock.papers.beyond.frontier_tables import (
    count_dominations,
    differences,
    dominations,
    means,
    points_of,
    windows_under_base,
)
from penstock.papers.p1.policies import ALL_POLICIES, LOOK_AHEAD
from penstock.policies import RECOMMENDED
from support.frontier_rows import AHEAD, WORSE, point_rows


def test_the_best_of_the_eight_is_by_min_yield() -> None:
    (point,) = points_of(point_rows(AHEAD))
    assert point.best == "greedy-yield"
    assert point.gain(RECOMMENDED).mean == pytest.approx(0.03)
    assert point.efficiency_gain(RECOMMENDED).mean == pytest.approx(0.02)
    assert point.gap_closed(RECOMMENDED) == pytest.approx(0.03 / 0.09)


def test_domination_is_counted_per_pair() -> None:
    rows = pl.concat([point_rows(AHEAD), point_rows({}, point=1, label="W=1")])
    counts = count_dominations(rows)
    default = counts.row(by_predicate=pl.col("policy") == RECOMMENDED, named=True)
    assert default["points"] == 2
    assert default["fcfs"] == default[LOOK_AHEAD] == 1
    assert default[RECOMMENDED] == 0
    fcfs = counts.row(by_predicate=pl.col("policy") == "fcfs", named=True)
    assert sum(fcfs[p] for p in (*ALL_POLICIES, RECOMMENDED)) == 0


def test_a_domination_names_point_and_both_policies() -> None:
    rows = dominations(point_rows(AHEAD))
    assert ("pressure", "W=0.8", RECOMMENDED, "fcfs") in rows.rows()
    assert dominations(point_rows({})).is_empty()


def test_one_better_objective_is_no_domination() -> None:
    (point,) = points_of(point_rows({"greedy-com": (WORSE, 0.05)}))
    assert not point.dominates("greedy-com", RECOMMENDED)
    assert not point.dominates(RECOMMENDED, "greedy-com")


def test_differences_and_means_agree() -> None:
    rows = point_rows(AHEAD)
    difference = differences(rows, (RECOMMENDED,)).row(0, named=True)
    mean = means(rows).row(by_predicate=pl.col("policy") == RECOMMENDED, named=True)
    assert difference["min_yield"] == mean["min_yield"]
    assert difference["both_significant"]
    assert mean["instances"] == 6
    assert mean["min_yield_error"] > 10 * difference["min_yield_gain_error"]


def test_windows_under_fair_share_are_counted() -> None:
    rows = point_rows({RECOMMENDED: (-0.00805, 0.0)}, group="NERSC", label="NERSC M_3")
    counted = windows_under_base(rows).row(
        by_predicate=pl.col("policy") == RECOMMENDED, named=True
    )
    # 0.00805 is more than 1 % of 0.80, and not of 0.81 or more.
    assert (counted["windows"], counted["under"]) == (6, 1)
    assert (counted["lowest_point"], counted["lowest_window"]) == ("NERSC M_3", 0)
    assert counted["lowest"] == pytest.approx(1 - 0.00805 / 0.8)


def test_a_window_where_fair_share_has_nothing_is_not_counted() -> None:
    rows = point_rows({RECOMMENDED: (0.0, 0.0)}, group="TRILAB", label="TRILAB M_0")
    zero = rows.with_columns(min_yield=pl.lit(0.0))
    counted = windows_under_base(zero)
    assert counted["under"].sum() == 0
    assert counted["lowest"].unique().to_list() == [1.0]
