# SPDX-License-Identifier: MIT
"""Earliest deadline: margins, deadlines and the target loss, by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from penstock.kernels import interpreted
from penstock.policies.beyond.earliest_deadline import due, worst_loss
from support.views import Scene, decide, make_view

NAME = "earliest-deadline"


def test_the_target_is_the_largest_loss() -> None:
    view = make_view(Scene(cap=[1.0] * 3, lost=[5.0, 30.0, 0.0]))
    assert interpreted(worst_loss)(view) == 0.3
    fresh = make_view(Scene(cap=[1.0], release=[0.0]))
    assert interpreted(worst_loss)(fresh) == 0.0


def test_the_key_is_margin_plus_weighted_volume() -> None:
    scene = Scene(cap=[2.0, 1.0], remaining=[6.0, 8.0], lost=[10.0, 4.0], capacity=2.0)
    view = make_view(scene)
    # m_i = 0.1 * 100 - lost_i; then (b_i / B) V_i / B.
    assert interpreted(due)(view, 0, 0.1, 100.0) == pytest.approx(0.0 + 1.0 * 3.0)
    assert interpreted(due)(view, 1, 0.1, 100.0) == pytest.approx(6.0 + 0.5 * 4.0)


def test_the_volume_is_cut_at_the_end_of_the_window() -> None:
    scene = Scene(cap=[1.0], remaining=[50.0], window_end=5.0)
    assert interpreted(due)(make_view(scene), 0, 0.0, 100.0) == 5.0


def test_the_order_is_that_of_the_deadlines_if_caps_are_full() -> None:
    """d_i(Z) = tau_i + (P_i + V_i / b_i) / (1 - Z), computed here from scratch."""
    scene = Scene(
        cap=[1.0] * 3, lost=[20.0, 15.0, 5.0], remaining=[9.0, 2.0, 1.0], now=0.0
    )
    target = 0.2
    deadlines = [
        -100.0 + (100.0 - lost + volume) / (1.0 - target)
        for lost, volume in zip(scene.lost, scene.remaining, strict=True)
    ]
    first = deadlines.index(min(deadlines))
    rates, wake = decide(NAME, scene)
    assert rates.index(1.0) == first == 1
    assert wake == inf


def test_without_losses_the_shortest_operation_goes_first() -> None:
    scene = Scene(cap=[1.0] * 3, remaining=[3.0, 1.0, 2.0])
    assert decide(NAME, scene)[0] == [0.0, 1.0, 0.0]


def _capped(**changes: Any) -> Scene:
    """Return three applications with a cap of 0.6 B each, and a window of 1,000 s."""
    return replace(Scene(cap=[0.6] * 3, remaining=[3.0, 1.0, 2.0]), **changes)


def test_it_decides_again_while_others_wait_for_one_with_a_small_cap() -> None:
    rates, wake = decide(NAME, _capped(now=70.0))
    assert rates == pytest.approx([0.0, 0.6, 0.4])
    # From the oldest release, 100 s ago, to the end of the window at 1,000 s.
    assert wake == pytest.approx(70.0 + 1030.0 / 200)


@pytest.mark.parametrize(
    "scene",
    [
        Scene(cap=[1.0, 1.0], remaining=[3.0, 1.0]),
        Scene(cap=[0.5, 0.5], remaining=[3.0, 1.0]),
        _capped(window_end=inf),
    ],
    ids=["cap of the whole bandwidth", "nothing waits", "no end of the window"],
)
def test_it_waits_for_the_next_event_otherwise(scene: Scene) -> None:
    assert decide(NAME, scene)[1] == inf


def test_the_order_changes_while_nothing_happens() -> None:
    """Waiting costs a margin of 1 s per second, being served (b_i / B)^2 of it."""
    scene = _capped(remaining=[3.0, 3.3, 3.5])
    first, second, third = decide(NAME, scene)[0]
    assert (first, second, third) == pytest.approx((0.6, 0.4, 0.0))
    # 2 s later the first has 1.8 left, the second has lost 2/3 s and the third 2 s:
    # m_i + 0.6 V_i is 2 + 1.08, 4/3 + 1.5 and 0 + 2.1.
    later = _capped(remaining=[1.8, 2.5, 3.5], lost=[0.0, 2.0 / 3.0, 2.0])
    assert decide(NAME, later)[0] == pytest.approx([0.0, 0.4, 0.6])
