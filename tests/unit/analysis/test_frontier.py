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
