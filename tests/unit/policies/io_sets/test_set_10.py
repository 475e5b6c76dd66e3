# SPDX-License-Identifier: MIT
"""Set-10: short periods weigh ten times as much as those ten times as long."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide


def scene_of(*periods_s: float, posted: list[float] | None = None) -> Scene:
    """Return applications with these periods, each able to use all of 11 bytes/s."""
    n = len(periods_s)
    return Scene(
        cap=[11.0] * n,
        capacity=11.0,
        iterations=[1 if period else 0 for period in periods_s],
        iteration_time=list(periods_s),
        posted=posted or [0.0] * n,
        now=5.0,
    )


def test_two_sets_share_ten_to_one() -> None:
    rates, wake = decide("set-10", scene_of(10.0, 100.0))
    assert rates == pytest.approx([10.0, 1.0])
    assert wake == inf


def test_one_set_serves_in_the_order_of_posting() -> None:
    assert decide("set-10", scene_of(90.0, 110.0, posted=[2.0, 1.0]))[0] == [0.0, 11.0]


def test_an_application_without_an_iteration_goes_first() -> None:
    assert decide("set-10", scene_of(10.0, 0.0))[0] == [0.0, 11.0]


def test_the_initial_set_may_have_a_weight_instead() -> None:
    # Priorities 10^-1 and 0.3: one to three of 11.
    name = "set-10:initial=weight,initial_weight=0.3"
    rates, _ = decide(name, scene_of(10.0, 0.0))
    assert rates == pytest.approx([2.75, 8.25])
