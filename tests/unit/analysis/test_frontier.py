# SPDX-License-Identifier: MIT
"""Intervals, paired differences and domination, checked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from penstock.analysis.frontier import (
    Interval,
    dominates,
    gap_closed,
    interval,
    paired,
)

numbers = st.floats(-100, 100)
samples = st.lists(numbers, min_size=2, max_size=30)


@given(values=samples)
def test_an_interval_is_that_of_students_t(values: list[float]) -> None:
    estimate = interval(values)
    error = stats.sem(values)
    low, high = (
        stats.t.interval(0.95, len(values) - 1, np.mean(values), error)
        if error > 0
        else (np.mean(values),) * 2
    )
    assert estimate.mean - estimate.half_width == pytest.approx(low, rel=1e-9, abs=1e-9)
    assert estimate.mean + estimate.half_width == pytest.approx(
        high, rel=1e-9, abs=1e-9
    )


@given(values=st.lists(numbers, min_size=4, max_size=24), size=st.integers(1, 4))
def test_groups_of_equal_size_count_by_their_means(
    values: list[float], size: int
) -> None:
    """Twenty windows of a schedule are one observation: their mean."""
    count = len(values) // size * size
    array = np.array(values[:count])
    found = interval(array, np.arange(count) // size)
    expected = interval(array.reshape(-1, size).mean(axis=1))
    assert found.mean == pytest.approx(expected.mean, abs=1e-9)
    assert found.half_width == pytest.approx(expected.half_width, rel=1e-6, abs=1e-9)


@given(values=samples)
def test_groups_of_one_change_nothing(values: list[float]) -> None:
    assert interval(values, range(len(values))) == interval(values)


def test_copies_of_instances_make_no_interval_narrower() -> None:
    """Means 1 and 3: t = 12.7062 with one degree of freedom, error 1."""
    copied = interval([1.0] * 20 + [3.0] * 20, [7] * 20 + [4] * 20)
    assert copied.mean == 2.0
    assert copied.half_width == pytest.approx(12.7062, abs=1e-4)
    assert not copied.above_zero
    assert interval([1.0] * 20 + [3.0] * 20).above_zero


def test_groups_of_unequal_size_by_hand() -> None:
    """Mean 2; sums of the groups -2 and 2: e^2 = 2 (4 + 4) / 9."""
    found = interval([1.0, 1.0, 4.0], [0, 0, 1])
    assert found.mean == 2.0
    assert found.half_width == pytest.approx(12.7062 * 4 / 3, abs=1e-3)


def test_one_group_gives_no_interval() -> None:
    assert interval([0.5, 1.5], [3, 3]) == Interval(1.0, math.inf)


def test_one_instance_gives_no_interval() -> None:
    assert interval([0.5]) == Interval(0.5, math.inf)
    assert not interval([0.5]).above_zero


@given(values=samples, gain=st.floats(0.5, 10))
def test_a_common_spread_cancels_out_in_paired_differences(
    values: list[float], gain: float
) -> None:
    """The spread over instances is large; the difference has no spread."""
    estimate = paired(np.array(values) + gain, values)
    assert estimate.mean == pytest.approx(gain)
    assert estimate.half_width == pytest.approx(0.0, abs=1e-6)
    assert estimate.above_zero


def test_domination_needs_every_objective() -> None:
    better, unsure, worse = Interval(0.2, 0.1), Interval(0.2, 0.3), Interval(-0.2, 0.1)
    assert dominates(better, better)
    assert not dominates(better, unsure)
    assert not dominates(worse, better)


@pytest.mark.parametrize(
    ("reached", "closed"), [(0.8, 0.0), (0.85, 0.5), (0.9, 1.0), (0.75, -0.5)]
)
def test_the_gap_that_is_closed(reached: float, closed: float) -> None:
    assert gap_closed(reached, best=0.8, bound=0.9) == pytest.approx(closed)


def test_no_gap_cannot_be_closed() -> None:
    assert math.isnan(gap_closed(0.9, best=0.9, bound=0.9))
