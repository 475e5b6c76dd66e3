# SPDX-License-Identifier: MIT
"""Statistics of APEX windows: by hand, by band of W, and without any window."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.papers.p1.apex.bands import HIGH, LOW, NERSC, SAME, TRILAB
from penstock.papers.p1.apex.measures import (
    correlation,
    highest_of,
    losses_of,
    lowest_of,
    mean_or_nan,
    means_of,
    median_or_nan,
    ratio_by_band,
    rising,
    risk_of,
    share_above,
    share_below,
)
from penstock.papers.p1.policies import ALL_POLICIES, FAIR_SHARE, GREEDY_COM
from support.apex_tables import by_band, prepared, window

EMPTY = np.array([])


def test_statistics_of_three_windows() -> None:
    values = np.array([0.25, 0.5, 1.5])
    assert mean_or_nan(values) == 0.75
    assert median_or_nan(values) == 0.5
    assert (lowest_of(values), highest_of(values)) == (0.25, 1.5)
    assert mean_or_nan(values > 0.3) == pytest.approx(2 / 3)
    assert all(type(f(values)) is float for f in (mean_or_nan, median_or_nan))


def test_the_border_of_a_ratio_of_one_is_neither_lower_nor_higher() -> None:
    border = np.array([1 - SAME, 1 + SAME])
    assert (share_below(border), share_above(border)) == (0.0, 0.0)
    beyond = np.array([1 - 2 * SAME, 1 + 2 * SAME])
    assert (share_below(beyond), share_above(beyond)) == (0.5, 0.5)


def test_a_ratio_within_a_thousandth_of_one_is_neither_lower_nor_higher() -> None:
    ratios = np.array([0.9, 0.9995, 1.0, 1.0005, 1.2])
    assert share_below(ratios) == pytest.approx(0.2)
    assert share_above(ratios) == pytest.approx(0.2)
    assert risk_of(ratios) == {"share lower": 0.2, "lowest ratio": 0.9}


def test_statistics_without_values_are_not_a_number() -> None:
    for statistic in (
        *(mean_or_nan, median_or_nan, lowest_of, highest_of),
        *(share_below, share_above),
    ):
        assert math.isnan(statistic(EMPTY))
    assert math.isnan(correlation(EMPTY, EMPTY))


def test_the_correlation_of_ranks() -> None:
    one = np.array([1.0, 2.0, 4.0])
    assert correlation(one, one**3) == pytest.approx(1.0)
    assert correlation(one, -one) == pytest.approx(-1.0)
    assert math.isnan(correlation(one, np.ones(3)))
    assert math.isnan(correlation(one[:2], one[:2]))


def test_rising_is_strict() -> None:
    assert rising([1.0, 2.0, 3.0])
    assert not rising([1.0, 2.0, 2.0])
    assert not rising([1.0, math.nan])


def test_means_and_losses_of_all_policies() -> None:
    tables = prepared(
        window({}, 0.6, efficiency={GREEDY_COM: 0.9}),
        window({}, 1.3, efficiency={GREEDY_COM: 0.7}),
    )
    means = means_of(tables, NERSC, "efficiency")
    assert set(means) == set(ALL_POLICIES)
    assert means[GREEDY_COM] == pytest.approx(0.8)
    losses = losses_of(tables, NERSC, "efficiency", LOW, HIGH)
    assert losses[GREEDY_COM] == pytest.approx(0.2)
    assert losses[FAIR_SHARE] == 0.0


def test_means_of_a_band_without_windows_are_not_a_number() -> None:
    tables = prepared(window({}, 0.6))
    assert math.isnan(means_of(tables, NERSC, "efficiency", HIGH)[FAIR_SHARE])
    assert math.isnan(means_of(tables, TRILAB, "efficiency")[FAIR_SHARE])
    assert set(means_of(tables, NERSC, "efficiency", policies=("fcfs",))) == {"fcfs"}


def test_mean_ratios_by_band() -> None:
    tables = prepared(*by_band((GREEDY_COM,), (0.9, 1.0, 1.2), TRILAB))
    assert ratio_by_band(tables, TRILAB, (GREEDY_COM,)) == {
        GREEDY_COM: pytest.approx({"W<0.75": 0.9, "0.75<=W<1": 1.0, "W>=1": 1.2})
    }
