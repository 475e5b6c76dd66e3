# SPDX-License-Identifier: MIT
"""Tables of the frontier, from rows with known gains."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from penstock.experiments.resampling import Tables, resampled
from penstock.papers.beyond.frontier_tables import (
    count_dominations,
    differences,
    dominations,
    means,
    points_of,
    windows_under_base,
    with_schedules,
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


def test_windows_of_one_schedule_are_not_independent() -> None:
    """Six windows of two schedules, in which the default gains .01 and .03."""
    gain = pl.when(pl.col("policy") == RECOMMENDED).then(
        pl.when(pl.col("instance") < 3).then(0.01).otherwise(0.03)
    )
    better = [pl.col(o) + gain.otherwise(0.0) for o in ("min_yield", "efficiency")]
    single, pairs = (
        points_of(point_rows({}, windows=windows).with_columns(better))[0]
        for windows in (1, 3)
    )
    assert (single.independent, pairs.independent) == (6, 2)
    assert single.dominates(RECOMMENDED, "fcfs")
    assert not pairs.dominates(RECOMMENDED, "fcfs")
    found = pairs.difference(RECOMMENDED, "fcfs", "min_yield")
    # t = 12.7062 with one degree of freedom; the standard error of .01 and .03 is .01.
    assert found.mean == pytest.approx(0.02)
    assert found.half_width == pytest.approx(0.127062, abs=1e-6)
    assert pairs.bound.half_width > single.bound.half_width


def test_only_apex_windows_share_schedules() -> None:
    rows = pl.DataFrame({"workload": ["synthetic", "apex", "io-sets"]})
    prepared = with_schedules(Tables(rows, pl.DataFrame())).rows
    assert prepared["windows"].to_list() == [1, 20, 1]


def test_resamples_draw_whole_schedules() -> None:
    """Every schedule of a resample is one of the drawn ones, with all its windows."""
    frame = pl.DataFrame(
        {"instance": range(80), "workload": "apex", "value": range(80)}
    )
    tables = with_schedules(Tables(frame, pl.DataFrame()))
    for sample in resampled(tables, 5):
        values = sample.rows.sort("instance")["value"].to_numpy().reshape(4, 20)
        assert (values[:, 0] % 20 == 0).all()
        assert (values == values[:, :1] + np.arange(20)).all()


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
