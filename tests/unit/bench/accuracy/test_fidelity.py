# SPDX-License-Identifier: MIT
"""Workload, ranks and summary of the fidelity benchmark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.accuracy.fidelity import FidelityOutcome, _instance, _summary, ranks


def test_the_workload_has_distinct_releases_and_several_caps() -> None:
    instance = _instance()
    assert len(instance.applications) == 8
    # Live jobs are numbered by arrival, so that ties are broken as in a simulation.
    releases = [app.release for app in instance.applications]
    assert releases == sorted(set(releases))
    assert max(len(app.volume) for app in instance.applications) >= 3
    assert len(set(instance.caps)) >= 3


@given(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=8), st.floats(0.0, 0.2))
def test_ranks_follow_the_order_except_for_ties(
    values: list[float], tie: float
) -> None:
    allowed = ranks(values, tie)
    for value, (low, high) in zip(values, allowed, strict=True):
        rank = 1 + sum(other > value for other in values)
        assert low <= rank <= high
        group = [v for v, ends in zip(values, allowed, strict=True) if ends[0] == low]
        assert len(group) == high - low + 1
        for other, (first, _) in zip(values, allowed, strict=True):
            if first > high:
                assert value - other > tie * value


def _outcome(policy: str, live: float, simulated: float) -> FidelityOutcome:
    return FidelityOutcome(
        policy, np.array([live, 1.0]), np.array([simulated, 1.0]), 1.0
    )


def test_a_wrong_order_misses_the_goal_and_a_tie_is_named() -> None:
    right = [_outcome("a", 0.91, 0.9), _outcome("b", 0.8, 0.8)]
    first, *order = _summary(right)
    assert first.value == pytest.approx(100 * (0.91 / 0.9 - 1))
    assert [(measurement.value, measurement.is_reached) for measurement in order] == [
        (1, True),
        (2, True),
    ]
    wrong = [_outcome("a", 0.79, 0.9), _outcome("b", 0.8, 0.8)]
    first, *order = _summary(wrong)
    assert not first.is_reached
    assert not any(measurement.is_reached for measurement in order)
    tied = [_outcome("a", 0.898, 0.9), _outcome("b", 0.899, 0.8999)]
    _, *order = _summary(tied)
    assert all(measurement.is_reached for measurement in order)
    assert all("a tie of 2" in measurement.name for measurement in order)
