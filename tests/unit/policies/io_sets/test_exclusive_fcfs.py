# SPDX-License-Identifier: MIT
"""Exclusive-FCFS: the rates of fcfs, computed with one set."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide, random_scene, tied_scene


@pytest.mark.parametrize("seed", range(40))
def test_the_rates_are_those_of_fcfs(seed: int) -> None:
    scene = random_scene(seed)
    rates, wake = decide("exclusive-fcfs", scene)
    assert rates == pytest.approx(decide("fcfs", scene)[0], rel=1e-12)
    assert wake == inf


@pytest.mark.parametrize("count", range(1, 10))
def test_ties_are_those_of_fcfs(count: int) -> None:
    scene = tied_scene(count)
    expected = decide("fcfs", scene)[0]
    assert decide("exclusive-fcfs", scene)[0] == pytest.approx(expected, rel=1e-12)


def test_one_operation_has_the_storage_for_itself_if_its_cap_is_full() -> None:
    scene = Scene(cap=[1.0] * 3, posted=[2.0, 0.0, 1.0], now=5.0)
    assert decide("exclusive-fcfs", scene)[0] == [0.0, 1.0, 0.0]
