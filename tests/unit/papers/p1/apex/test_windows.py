# SPDX-License-Identifier: MIT
"""Measures on APEX windows: bands of W, ratios, statistics, and empty selections."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.papers.p1.apex.windows import (
    BANDS,
    HIGH,
    LOW,
    NERSC,
    TRILAB,
    all_pass,
    correlation,
    fair_values,
    fcfs_as_set10,
    flat,
    gain_grows,
    greedy_com_highest,
    highest_of,
    losses_of,
    lowest_of,
    mean_or_nan,
    means_of,
    ratio_by_band,
    ratios_of,
    rising,
    risk_of,
    share_above,
    share_below,
    trilab_higher,
    windows_of,
)
from penstock.papers.p1.policies import ALL_POLICIES, FAIR_SHARE, GREEDY_COM
from support.apex_tables import both_traces, by_band, tables_of, window

EMPTY = np.array([])


def test_a_band_includes_its_lower_end_only() -> None:
    rows = tables_of(*(window({}, w) for w in (0.49, 0.5, 1.0))).rows
    found = {
        name: windows_of(rows, NERSC, FAIR_SHARE, band)["pressure"].to_list()
        for name, band in BANDS.items()
    }
    assert found == {"W<0.5": [0.49], "0.5<=W<1": [0.5], "W>=1": [1.0]}
    assert windows_of(rows, TRILAB, FAIR_SHARE).is_empty()


def test_a_ratio_divides_by_fair_share_in_the_same_window() -> None:
    tables = tables_of(
        window({FAIR_SHARE: 0.5, GREEDY_COM: 0.25}, 0.3),
        window({FAIR_SHARE: 0.2, GREEDY_COM: 0.4}, 1.3),
    )
    assert ratios_of(tables, NERSC, GREEDY_COM).tolist() == [0.5, 2.0]
    assert ratios_of(tables, NERSC, GREEDY_COM, HIGH).tolist() == [2.0]
    assert ratios_of(tables, NERSC, FAIR_SHARE).tolist() == [1.0, 1.0]
    assert fair_values(tables, NERSC, "min_yield", LOW).tolist() == [0.5]


def test_a_ratio_within_a_thousandth_of_one_is_neither_lower_nor_higher() -> None:
    ratios = np.array([0.9, 0.9995, 1.0, 1.0005, 1.2])
    assert share_below(ratios) == pytest.approx(0.2)
    assert share_above(ratios) == pytest.approx(0.2)
    assert risk_of(ratios) == {"share lower": 0.2, "lowest ratio": 0.9}


def test_statistics_without_values_are_not_a_number() -> None:
    for statistic in (mean_or_nan, lowest_of, highest_of, share_below, share_above):
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


def test_nested_numbers_are_named_by_both_keys() -> None:
    assert flat({"a": {"x": 1.0, "y": 2.0}, "b": {"x": 3.0}}) == {
        "a x": 1.0,
        "a y": 2.0,
        "b x": 3.0,
    }


def test_all_numbers_must_pass() -> None:
    numbers = {"a": 1.0, "b": 2.0}
    assert all_pass(numbers, lambda v: v > 0).holds
    assert not all_pass(numbers, lambda v: v > 1).holds
    assert not all_pass({"a": math.nan}, lambda v: v > 0).holds
    assert all_pass(numbers, lambda v: v > 0).numbers == numbers


def test_means_and_losses_of_all_policies() -> None:
    tables = tables_of(
        window({}, 0.3, efficiency={GREEDY_COM: 0.9}),
        window({}, 1.3, efficiency={GREEDY_COM: 0.7}),
    )
    means = means_of(tables, NERSC, "efficiency")
    assert set(means) == set(ALL_POLICIES)
    assert means[GREEDY_COM] == pytest.approx(0.8)
    losses = losses_of(tables, NERSC, "efficiency", LOW, HIGH)
    assert losses[GREEDY_COM] == pytest.approx(0.2)
    assert losses[FAIR_SHARE] == 0.0


def test_mean_ratios_by_band() -> None:
    tables = tables_of(*by_band((GREEDY_COM,), (0.9, 1.0, 1.2), TRILAB))
    assert ratio_by_band(tables, TRILAB, (GREEDY_COM,)) == {
        GREEDY_COM: pytest.approx({"W<0.5": 0.9, "0.5<=W<1": 1.0, "W>=1": 1.2})
    }
    assert gain_grows(tables, TRILAB, (GREEDY_COM,)).holds
    assert not gain_grows(tables, TRILAB, (GREEDY_COM, "fcfs")).holds


@pytest.mark.parametrize("tolerance", [1e-9, 0.005])
def test_fcfs_and_set10_are_compared_window_by_window(tolerance: float) -> None:
    """Equal means do not suffice: both windows must agree."""
    equal = tables_of(window({"fcfs": 0.4, "set-10": 0.4}, 1.0))
    assert fcfs_as_set10(equal, NERSC, tolerance).holds
    crossed = tables_of(
        window({"fcfs": 0.4, "set-10": 0.6}, 1.0),
        window({"fcfs": 0.6, "set-10": 0.4}, 1.0),
    )
    verdict = fcfs_as_set10(crossed, NERSC, tolerance)
    assert not verdict.holds
    assert verdict.numbers["share of windows that differ"] == 1.0


def test_a_comparison_of_traces_needs_every_policy() -> None:
    higher = tables_of(window({}, 1.0), window({}, 1.0, TRILAB, utilization=0.6))
    assert trilab_higher(higher, "utilization", HIGH).holds
    assert not trilab_higher(higher, "utilization", LOW).holds
    assert not trilab_higher(higher, "efficiency", HIGH).holds


def test_greedy_com_must_be_highest_on_every_trace() -> None:
    one = tables_of(*both_traces({}, 1.0, efficiency={GREEDY_COM: 0.6}))
    assert greedy_com_highest(one, "efficiency", (NERSC, TRILAB), HIGH).holds
    half = tables_of(
        window({}, 1.0, efficiency={GREEDY_COM: 0.6}), window({}, 1.0, TRILAB)
    )
    assert greedy_com_highest(half, "efficiency", (NERSC,), HIGH).holds
    assert not greedy_com_highest(half, "efficiency", (NERSC, TRILAB), HIGH).holds
