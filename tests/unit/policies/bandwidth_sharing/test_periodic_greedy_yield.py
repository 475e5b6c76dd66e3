# SPDX-License-Identifier: MIT
"""Periodic greedy yield: the rates of greedy-yield, and when it wakes up."""

from __future__ import annotations

from math import inf

import pytest

from support.views import Scene, decide, random_scene

NAME = "periodic-greedy-yield"


@pytest.mark.parametrize("seed", range(10))
def test_the_rates_are_those_of_greedy_yield(seed: int) -> None:
    scene = random_scene(seed)
    assert decide(f"{NAME}:delta=1", scene)[0] == decide("greedy-yield", scene)[0]


@pytest.mark.parametrize(
    ("now", "wake"), [(0.0, 3.0), (2.9, 3.0), (3.0, 6.0), (7.5, 9.0), (-5.0, 0.0)]
)
def test_wake_ups_lie_on_a_grid_from_the_beginning_of_the_window(
    now: float, wake: float
) -> None:
    assert decide(f"{NAME}:delta=3", Scene(cap=[1.0], now=now))[1] == wake


def test_the_grid_starts_with_the_window() -> None:
    scene = Scene(cap=[1.0], now=5.0, window_begin=1.0)
    assert decide(f"{NAME}:delta=3", scene)[1] == 7.0


def test_with_the_other_clock_a_wake_up_follows_the_event() -> None:
    scene = Scene(cap=[1.0], now=5.0)
    assert decide(f"{NAME}:delta=3,clock=event", scene)[1] == 8.0


def test_the_default_interval_is_the_window_over_the_dedicated_events() -> None:
    # (1000 - 0) / 40 = 25 s (bandwidth sharing, equation 5).
    scene = Scene(cap=[1.0], now=30.0, dedicated_events=40.0)
    assert decide(NAME, scene)[1] == 50.0


def test_without_dedicated_events_there_is_no_wake_up() -> None:
    assert decide(NAME, Scene(cap=[1.0]))[1] == inf


@pytest.mark.parametrize("clock", ["window", "event"])
def test_a_wake_up_always_lies_in_the_future(clock: str) -> None:
    late = Scene(cap=[1.0], now=1e12, window_end=2e12, release=[0.0])
    _, wake = decide(f"{NAME}:delta=1e-9,clock={clock}", late)
    assert wake > 1e12
