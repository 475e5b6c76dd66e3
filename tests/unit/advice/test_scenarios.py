# SPDX-License-Identifier: MIT
"""Scenarios: the given instances first, then copies that stay valid instances."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from penstock.advice.scenarios import Uncertainty, draw_scenarios, mean_iteration_s
from penstock.errors import InputError
from unit.samples import app, instances, make, pair


def test_the_instances_come_first_and_unchanged() -> None:
    given_instances = [pair(), make(app("c", ("io", 1.0)))]
    drawn = draw_scenarios(given_instances, 5, Uncertainty(), seed=1)
    assert len(drawn) == 5
    assert drawn[:2] == given_instances


def test_all_instances_are_used_even_if_fewer_scenarios_are_asked_for() -> None:
    assert len(draw_scenarios([pair()] * 3, 2, Uncertainty(), seed=1)) == 3


def test_the_same_seed_gives_the_same_scenarios() -> None:
    first, second = (
        draw_scenarios([pair()], 6, Uncertainty(), seed=4) for _ in range(2)
    )
    assert [s.digest() for s in first] == [s.digest() for s in second]
    other = draw_scenarios([pair()], 6, Uncertainty(), seed=5)
    assert [s.digest() for s in other] != [s.digest() for s in first]


def test_more_scenarios_begin_with_the_same_ones() -> None:
    few = draw_scenarios([pair()], 3, Uncertainty(), seed=1)
    many = draw_scenarios([pair()], 9, Uncertainty(), seed=1)
    assert [s.digest() for s in many[:3]] == [s.digest() for s in few]


def test_without_uncertainty_only_the_starts_differ() -> None:
    changed = draw_scenarios([pair()], 2, Uncertainty(0.0), seed=1)[1]
    for before, after in zip(pair().applications, changed.applications, strict=True):
        assert np.array_equal(before.work, after.work)
        assert np.array_equal(before.volume, after.volume)
    assert changed.platform == pair().platform


def test_a_shift_is_at_most_half_an_iteration() -> None:
    instance = make(
        app("a", ("work", 4.0), ("io", 1.0), ("work", 100.0), release=5.0, nodes=1),
        window=(0.0, 1000.0),
    )
    for drawn in draw_scenarios([instance], 50, Uncertainty(0.0), seed=3)[1:]:
        one = drawn.applications[0]
        assert abs(one.start - 5.0) <= 0.5 * 105.0
        assert one.start == one.release >= 0.0


def test_an_unknown_bandwidth_differs_and_a_known_one_does_not() -> None:
    known = draw_scenarios([pair()], 8, Uncertainty(), seed=1)
    assert {s.platform.bandwidth for s in known} == {1.0}
    unknown = draw_scenarios([pair()], 8, Uncertainty(bandwidth=0.3), seed=1)
    assert len({s.platform.bandwidth for s in unknown}) == 8


@pytest.mark.parametrize("part", [-0.1, 1.5, float("nan")])
def test_an_uncertainty_outside_0_and_1_is_refused(part: float) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        Uncertainty(part)


def test_a_mean_iteration_is_work_and_transfer_over_operations() -> None:
    between = [("work", 4.0), ("io", 6.0), ("work", 2.0), ("io", 6.0)]
    one = app("a", ("io", 6.0), *between, ("work", 99.0))
    assert mean_iteration_s(one, cap=2.0) == (4.0 + 2.0) / 2 + 6.0 / 2.0


def test_one_operation_is_one_iteration() -> None:
    one = app("a", ("work", 4.0), ("io", 6.0), ("work", 2.0))
    assert mean_iteration_s(one, cap=2.0) == 4.0 + 3.0 + 2.0


@given(instance=instances(), seed=st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_every_scenario_is_a_valid_instance_of_the_same_jobs(
    instance: object, seed: int
) -> None:
    doubt = Uncertainty(0.5, 0.5)
    changed = draw_scenarios([instance], 2, doubt, seed)[1]  # type: ignore[list-item]
    names = [a.name for a in instance.applications]  # type: ignore[attr-defined]
    assert [a.name for a in changed.applications] == names
