# SPDX-License-Identifier: MIT
"""The least depth that is good enough, on curves that are known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.qos.saturation import Pace, Saturation


def learn(pace: Callable[[float], Pace], depth: float, windows: int = 64) -> Saturation:
    known = Saturation()
    for _ in range(windows):
        known.note(depth, pace(depth))
        depth = known.next()
    return known


@pytest.mark.parametrize("first", [1.0, 8.0, 300.0, float(2**12)])
@pytest.mark.parametrize("enough", [1, 2, 8, 32])
def test_it_finds_where_a_curve_becomes_flat(enough: int, first: float) -> None:
    known = learn(lambda d: Pace(50e6 * min(1.0, d / enough), 50.0), first)
    assert 2 ** known.best() == enough
    assert known.capacity() == pytest.approx(50e6)


def test_more_bytes_for_fewer_requests_are_no_gain() -> None:
    """Deeper, large requests crowd small ones out."""
    known = learn(lambda d: Pace(20e6 + 2e6 * d, 100 / d), 8.0)
    assert known.best() == 0


def test_it_follows_a_change() -> None:
    known = learn(lambda d: Pace(50e6, 50.0), 4.0)
    assert known.best() == 0
    depth = known.next()
    for _ in range(200):
        known.note(depth, Pace(12e6 * min(4.0, depth), 12 * min(4.0, depth)))
        depth = known.next()
    assert known.best() == 2


def test_a_window_without_answers_says_nothing() -> None:
    known = Saturation()
    known.note(4.0, Pace(0.0, 0.0))
    assert known.capacity() == 0.0
    assert known.next() == 1.0
