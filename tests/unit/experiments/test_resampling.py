# SPDX-License-Identifier: MIT
"""Resamples: whole instances, new numbers, the same pairs, the same bytes."""

from __future__ import annotations

import math
import statistics

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from penstock.experiments.resampling import (
    Tables,
    group_count,
    resampled,
    spread_of,
)


def _tables(instances: int = 6, points: int = 2) -> Tables:
    """Return a row per point, instance and policy; `x` names all three."""
    key = [
        {"point": p, "instance": i, "policy": c, "x": f"{p} {i} {c}"}
        for p in range(points)
        for i in range(instances)
        for c in "ab"
    ]
    rows = pl.DataFrame(key)
    return Tables(rows, rows.select("point", "instance", "policy"))


@given(st.integers(3, 9), st.integers(1, 3))
def test_a_resample_has_whole_instances_under_new_numbers(
    instances: int, points: int
) -> None:
    tables = _tables(instances, points)
    for drawn in resampled(tables, 3):
        assert drawn.rows.height == tables.rows.height
        key = drawn.rows.select("point", "instance", "policy")
        assert_frame_equal(key, tables.rows.select(key.columns))
        origin = drawn.rows.with_columns(pl.col("x").str.split(" ").list.get(1))
        per_number = origin.group_by("instance").agg(pl.col("x").n_unique())
        assert per_number["x"].to_list() == [1] * instances


def test_the_values_stay_with_their_point_and_policy() -> None:
    (drawn,) = resampled(_tables(), 1)
    for point, policy, text in drawn.rows.select("point", "policy", "x").rows():
        assert text.startswith(f"{point} ")
        assert text.endswith(f" {policy}")


def test_times_are_drawn_with_their_rows() -> None:
    (drawn,) = resampled(_tables(), 1)
    assert_frame_equal(drawn.times, drawn.rows.select(drawn.times.columns))


def test_resamples_are_the_same_each_time_and_differ_from_each_other() -> None:
    first, again = (list(resampled(_tables(), 2)) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert_frame_equal(one.rows, other.rows)
    assert not first[0].rows.equals(first[1].rows)


def test_instances_that_are_absent_at_some_points_are_kept_as_they_are() -> None:
    rows = _tables().rows.filter((pl.col("point") == 0) | (pl.col("instance") > 2))
    (drawn,) = resampled(Tables(rows, pl.DataFrame()), 1)
    assert set(drawn.rows["x"]) <= set(rows["x"])
    assert drawn.rows.filter(pl.col("point") == 0).height == 12


@pytest.mark.parametrize("instances", [1, 2])
def test_few_instances_give_no_resamples(instances: int) -> None:
    assert list(resampled(_tables(instances), 5)) == []


def test_a_table_without_instances_gives_no_resamples() -> None:
    rows = _tables().rows.drop("instance")
    assert list(resampled(Tables(rows, pl.DataFrame()), 5)) == []


@pytest.mark.parametrize(("groups", "quantile"), [(5, 2.776), (1001, 1.962)])
def test_a_spread_is_a_quantile_of_standard_deviations(
    groups: int, quantile: float
) -> None:
    spread = spread_of([(True, {"x": 1.0}), (False, {"x": 3.0})], groups)
    expected = quantile * math.sqrt(groups / (groups - 1)) * math.sqrt(2)
    assert spread.half_widths == {"x": pytest.approx(expected, rel=1e-3)}
    assert spread.support == 0.5


def test_the_spread_of_a_mean_of_five_is_the_interval_of_student() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0]
    rows = pl.DataFrame({"instance": range(5), "x": values})
    tables = Tables(rows, pl.DataFrame())
    means = [(True, {"x": t.rows["x"].mean()}) for t in resampled(tables, 3000)]
    expected = 2.776 * statistics.stdev(values) / math.sqrt(5)
    half_widths = spread_of(means, group_count(tables)).half_widths
    assert half_widths["x"] == pytest.approx(expected, rel=0.05)


def test_numbers_that_are_not_finite_or_absent_have_no_spread() -> None:
    spread = spread_of([(True, {"x": math.inf, "y": 1.0}), (True, {"x": 1.0})], 9)
    assert spread.half_widths == {}
    assert spread_of([], 0).support is None


def test_windows_of_one_schedule_are_drawn_together() -> None:
    rows = _tables(instances=12, points=1).rows.with_columns(windows=pl.lit(3))
    tables = Tables(rows, pl.DataFrame())
    assert group_count(tables) == 4
    (drawn,) = resampled(tables, 1)
    origin = pl.col("x").str.split(" ").list.get(1).cast(pl.Int64)
    numbers = (
        drawn.rows.select("instance", origin.alias("of")).unique().sort("instance")
    )
    assert numbers["instance"].to_list() == list(range(12))
    assert (numbers["instance"] % 3).equals(numbers["of"] % 3, check_names=False)
    schedules = numbers.group_by(pl.col("instance") // 3).agg(
        (pl.col("of") // 3).n_unique()
    )
    assert schedules["of"].to_list() == [1] * 4


def test_too_few_schedules_are_drawn_window_by_window() -> None:
    rows = _tables(instances=12, points=1).rows.with_columns(windows=pl.lit(12))
    origins = {
        text.split()[1]
        for drawn in resampled(Tables(rows, pl.DataFrame()), 1)
        for text in drawn.rows["x"]
    }
    assert 1 < len(origins) < 12
