# SPDX-License-Identifier: MIT
"""Greedy completion: the shortest remaining transfer first."""

from __future__ import annotations

from math import inf

from penstock.sim import simulate
from support.views import Scene, decide
from unit.samples import app, make


def test_the_shortest_remaining_transfer_goes_first() -> None:
    scene = Scene(cap=[1.0, 1.0, 1.0], remaining=[5.0, 2.0, 3.0])
    assert decide("greedy-com", scene) == ([0.0, 1.0, 0.0], inf)


def test_the_time_at_the_own_cap_counts_not_the_volume() -> None:
    # 6 bytes at 3 bytes/s take 2 s, 4 bytes at 1 byte/s take 4 s.
    scene = Scene(cap=[1.0, 3.0], remaining=[4.0, 6.0], capacity=3.0)
    assert decide("greedy-com", scene)[0] == [0.0, 3.0]


def test_the_remaining_volume_counts_not_the_whole_volume() -> None:
    scene = Scene(cap=[1.0, 1.0], remaining=[1.0, 2.0], volume=[9.0, 2.0])
    assert decide("greedy-com", scene)[0] == [1.0, 0.0]


def test_equal_transfers_go_by_index() -> None:
    scene = Scene(cap=[1.0, 1.0], remaining=[2.0, 2.0])
    assert decide("greedy-com", scene)[0] == [1.0, 0.0]


def test_operations_posted_together_complete_shortest_first() -> None:
    """Shortest first minimises the sum of the completion times: 1 + 3 + 6."""
    applications = [
        app(f"a{j}", ("work", 1.0), ("io", volume), ("work", 99.0))
        for j, volume in enumerate([3.0, 1.0, 2.0])
    ]
    run = simulate(make(*applications, window=(0.0, 20.0)), "greedy-com")
    assert run.lost.tolist() == [3.0, 0.0, 1.0]
