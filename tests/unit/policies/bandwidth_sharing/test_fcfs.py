# SPDX-License-Identifier: MIT
"""First come, first served: by post time, ties by index, each up to its cap."""

from __future__ import annotations

from math import inf

import pytest

from penstock.sim import simulate
from support.views import Scene, decide
from unit.samples import app, make


def test_the_oldest_operation_gets_everything_it_can_use() -> None:
    scene = Scene(cap=[1.0, 1.0, 1.0], posted=[3.0, 1.0, 2.0], now=5.0)
    assert decide("fcfs", scene) == ([0.0, 1.0, 0.0], inf)


def test_the_next_ones_get_what_is_left() -> None:
    scene = Scene(cap=[2.0, 2.0, 2.0], posted=[3.0, 1.0, 2.0], now=5.0, capacity=5.0)
    assert decide("fcfs", scene)[0] == [1.0, 2.0, 2.0]


def test_equal_post_times_go_by_index() -> None:
    scene = Scene(cap=[1.0, 1.0, 1.0], posted=[2.0, 2.0, 2.0], active=[1, 2], now=5.0)
    assert decide("fcfs", scene)[0] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("lost", [[9.0, 0.0], [0.0, 9.0]])
def test_lost_time_does_not_matter(lost: list[float]) -> None:
    scene = Scene(cap=[1.0, 1.0], posted=[1.0, 2.0], lost=lost, now=5.0)
    assert decide("fcfs", scene)[0] == [1.0, 0.0]


def test_n_equal_operations_posted_together_wait_in_turn() -> None:
    """The j-th of n operations of length V waits (j - 1) V: a closed form."""
    applications = [
        app(f"a{j}", ("work", 1.0), ("io", 2.0), ("work", 99.0)) for j in range(4)
    ]
    run = simulate(make(*applications, window=(0.0, 20.0)), "fcfs")
    assert run.lost.tolist() == [0.0, 2.0, 4.0, 6.0]
