# SPDX-License-Identifier: MIT
"""Set-fair-share: the sets of set-10, all with the same priority."""

from __future__ import annotations

import pytest

from support.views import Scene, decide


def scene_of(iteration_time: list[float], cap: float = 12.0) -> Scene:
    """Return applications with these periods on a storage of 12 bytes/s."""
    n = len(iteration_time)
    return Scene(
        cap=[cap] * n,
        capacity=12.0,
        iterations=[1 if period else 0 for period in iteration_time],
        iteration_time=iteration_time,
    )


def test_sets_share_equally_whatever_their_period() -> None:
    rates, _ = decide("set-fair-share", scene_of([1.0, 10.0, 1000.0]))
    assert rates == pytest.approx([4.0, 4.0, 4.0])


def test_a_set_counts_once_however_many_members_it_has() -> None:
    rates, _ = decide("set-fair-share", scene_of([10.0, 10.0, 1000.0]))
    assert rates == pytest.approx([6.0, 0.0, 6.0])


def test_an_application_without_an_iteration_goes_first() -> None:
    assert decide("set-fair-share", scene_of([10.0, 0.0]))[0] == [0.0, 12.0]


def test_small_caps_leave_the_rest_to_the_other_members() -> None:
    rates, _ = decide("set-fair-share", scene_of([10.0, 10.0, 1000.0], cap=5.0))
    assert sum(rates) == pytest.approx(12.0)
    assert rates[0] == rates[2] == 5.0
