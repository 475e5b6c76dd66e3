# SPDX-License-Identifier: MIT
"""The bound on Efficiency at a MinYield: by hand, and never exceeded by a policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.analysis import measure
from penstock.analysis.bound_efficiency import (
    Tradeoff,
    efficiency_bound,
    mean_efficiency_bound,
)
from penstock.errors import InputError
from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.sim import simulate

POLICIES = ("fair-share", "greedy-yield", "greedy-com", "soft-deadline")

phases = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1)
crowds = st.lists(st.tuples(st.integers(1, 3), phases), min_size=1, max_size=4)


def _instance(*crowd: tuple[int, Sequence[tuple[float, float]]]) -> Instance:
    """Return applications of some nodes that repeat (work, I/O) over a window of 10."""
    applications = tuple(
        Application.from_phases(
            f"a{number}",
            nodes,
            [*(p for w, v in pairs for p in (("work", w), ("io", v))), ("work", 99)],
        )
        for number, (nodes, pairs) in enumerate(crowd)
    )
    return Instance(Platform(2.0, 1.0), Window(0.0, 10.0), applications)


def test_enough_bandwidth_for_all() -> None:
    assert efficiency_bound(_instance((1, [(5, 2)]), (1, [(1, 1)])), 0.5) == 1.0


def test_three_that_do_nothing_but_io() -> None:
    """Each needs 10 of 20 bytes for yield 1: the mean yield is at most two thirds."""
    crowd = [(1, [(0.0, 50.0)])] * 3
    for least in (0.0, 0.3, 2 / 3):
        assert efficiency_bound(_instance(*crowd), least) == pytest.approx(2 / 3)
    assert efficiency_bound(_instance(*crowd), 0.7) == -math.inf


def test_work_is_free_and_wide_applications_come_first() -> None:
    """Cap 2 of 2 for the wide one, of 2 nodes: its 20 fill the storage by themselves.

    With y = 0 the wide one gets yield 1; the narrow one, of cap 1, works for 5, then
    has nothing: (2 + 0.5) / 3. With y = 0.6 the narrow one needs 1 of the 20.
    """
    wide, narrow = (2, [(0.0, 50.0)]), (1, [(5.0, 50.0)])
    crowd = _instance(wide, narrow)
    assert efficiency_bound(crowd, 0.0) == pytest.approx(2.5 / 3)
    assert efficiency_bound(crowd, 0.6) == pytest.approx((2 * 0.95 + 0.6) / 3)


@given(crowd=crowds)
@settings(max_examples=40)
def test_no_policy_exceeds_the_bound(
    crowd: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    instance = _instance(*crowd)
    objectives = [measure(simulate(instance, policy)) for policy in POLICIES]
    for metrics in objectives:
        bound = efficiency_bound(instance, metrics.min_yield)
        assert metrics.efficiency <= bound + 1e-9


def _by_time(*crowd: tuple[int, list[tuple[int, int]]]) -> Instance:
    """Return the instance on three targets shared by time; applications have 1 to 3."""
    applications = tuple(
        replace(a, profile=np.array([9.0, 12.0, 30.0]), targets=tuple(range(n % 3 + 1)))
        for n, a in enumerate(_instance(*crowd).applications)
    )
    platform = Platform(1.0, 1.0, 3, Sharing.TIME)
    return Instance(platform, Window(0.0, 10.0), applications)


def test_targets_that_are_shared_by_time_have_no_bandwidth_in_common() -> None:
    """One application with only I/O has yield 1; two have 1/2 on average."""
    alone = Application.from_phases("a", 1, [("io", 1e6)], profile=[100.0])
    platform = Platform(1.0, 1.0, 1, Sharing.TIME)
    instance = Instance(platform, Window(0.0, 10.0), (alone,))
    assert efficiency_bound(instance, 0.0) == pytest.approx(1.0)
    both = replace(instance, applications=(alone, replace(alone, name="b")))
    assert efficiency_bound(both, 0.0) == pytest.approx(0.5)
    assert efficiency_bound(both, 0.6) == -math.inf


@given(crowd=crowds)
@settings(max_examples=40)
def test_no_policy_exceeds_the_bound_on_targets_shared_by_time(
    crowd: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    instance = _by_time(*crowd)
    for policy in POLICIES:
        metrics = measure(simulate(instance, policy))
        bound = efficiency_bound(instance, max(metrics.min_yield, 0.0))
        assert metrics.efficiency <= bound + 1e-9


@pytest.mark.parametrize("least", [1.5, -0.1, math.nan, math.inf])
def test_an_invalid_min_yield_is_refused(least: float) -> None:
    with pytest.raises(InputError, match="is not a MinYield"):
        efficiency_bound(_instance((1, [(1, 1)])), least)


@given(crowd=crowds)
@settings(max_examples=25)
def test_no_policy_exceeds_the_mean(
    crowd: list[tuple[int, list[tuple[int, int]]]],
) -> None:
    instances = [_instance(*crowd), _instance((1, [(2, 9)]), (2, [(0, 30)]))]
    tradeoffs = [Tradeoff.of(instance) for instance in instances]
    for policy in POLICIES:
        objectives = [measure(simulate(instance, policy)) for instance in instances]
        least = sum(m.min_yield for m in objectives) / 2
        reached = sum(m.efficiency for m in objectives) / 2
        assert reached <= mean_efficiency_bound(tradeoffs, least) + 1e-9


def test_the_bound_falls_as_min_yield_rises() -> None:
    greedy, modest = (2, [(0, 50)]), (1, [(1, 1)] * 9)
    tradeoff = Tradeoff.of(_instance(greedy, greedy, greedy, modest, modest))
    assert (tradeoff.efficiency[1:] <= tradeoff.efficiency[:-1] + 1e-12).all()
    assert tradeoff.efficiency[0] > tradeoff.efficiency[-2] + 0.01


def test_history_is_refused() -> None:
    instance = _instance((1, [(1, 1)]))
    late = replace(instance.applications[0], start=1.0)
    with pytest.raises(InputError, match=r"applications\[0\]"):
        efficiency_bound(replace(instance, applications=(late,)), 0.5)
