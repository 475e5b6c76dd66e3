# SPDX-License-Identifier: MIT
"""Greedy yield: the application with the lowest yield first."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide


def test_the_lowest_yield_goes_first() -> None:
    # Ages 100 s: yields 0.9, 0.7, 0.8.
    scene = Scene(cap=[1.0] * 3, lost=[10.0, 30.0, 20.0])
    assert decide("greedy-yield", scene) == ([0.0, 1.0, 0.0], inf)


def test_the_age_counts() -> None:
    # 10 of 100 s are less than 5 of 20 s.
    scene = Scene(cap=[1.0, 1.0], lost=[10.0, 5.0], release=[-100.0, -20.0])
    assert decide("greedy-yield", scene)[0] == [0.0, 1.0]


def test_applications_that_were_never_delayed_tie_exactly() -> None:
    scene = Scene(cap=[1.0] * 3, lost=[0.0] * 3, release=[-0.1, -0.3, -0.7])
    assert decide("greedy-yield", scene)[0] == [1.0, 0.0, 0.0]


def test_at_its_release_an_application_has_yield_0() -> None:
    scene = Scene(cap=[1.0, 1.0], lost=[50.0, 0.0], release=[-100.0, 0.0])
    assert decide("greedy-yield", scene)[0] == [0.0, 1.0]


@pytest.mark.parametrize("capacity", [1.0, 2.5, 4.0])
def test_the_rest_goes_to_the_next_lowest(capacity: float) -> None:
    scene = Scene(cap=[2.0, 2.0], lost=[10.0, 20.0], capacity=capacity)
    rates, _ = decide("greedy-yield", scene)
    assert rates == [max(capacity - 2.0, 0.0), min(capacity, 2.0)]
