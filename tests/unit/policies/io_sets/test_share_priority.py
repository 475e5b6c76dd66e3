# SPDX-License-Identifier: MIT
"""Share-priority: every application is a set with the priority of set-10."""

from __future__ import annotations

import pytest

from support.views import Scene, decide


def scene_of(iteration_time: list[float], posted: list[float]) -> Scene:
    """Return applications with these periods on a storage of 12 bytes/s."""
    n = len(iteration_time)
    return Scene(
        cap=[12.0] * n,
        capacity=12.0,
        iterations=[1 if period else 0 for period in iteration_time],
        iteration_time=iteration_time,
        posted=posted,
        now=5.0,
    )


def test_equal_periods_share_equally() -> None:
    scene = scene_of([10.0, 10.0, 10.0], [0.0, 1.0, 2.0])
    assert decide("share-priority", scene)[0] == pytest.approx([4.0] * 3)


def test_a_period_ten_times_as_long_gets_a_tenth() -> None:
    # Weights 1, 1, 1/10, 1/10, 1/10, 1/10 of 12: 5 and 0.5.
    scene = scene_of([1.0] * 2 + [10.0] * 4, [0.0] * 6)
    rates, _ = decide("share-priority", scene)
    assert rates == pytest.approx([5.0] * 2 + [0.5] * 4)


def test_applications_without_an_iteration_are_served_in_order() -> None:
    scene = scene_of([0.0, 0.0, 10.0], [2.0, 1.0, 0.0])
    assert decide("share-priority", scene)[0] == [0.0, 12.0, 0.0]
