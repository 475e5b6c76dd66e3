# SPDX-License-Identifier: MIT
"""The search for the least depth with full throughput, on known curves."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import pytest

from penstock.kernels import interpreted, memory
from penstock.qos.parts import saturation as kernels
from penstock.qos.state import (
    CAPACITY_OVER_PROMISES,
    DEPTH,
    MAX_OUTSTANDING,
    RIVALS_SLACK,
    SATURATED,
    SHARED_DEPTH,
    WAITING,
    new_state,
)


class Pace(NamedTuple):
    """What the storage does per second."""

    bytes_per_s: float
    requests_per_s: float


class Saturation:
    """The search, with its kernels interpreted."""

    def __init__(self) -> None:
        self.state = memory(new_state())

    def record(self, depth: float, moved: float, answered: int, busy_s: float) -> None:
        interpreted(kernels.record_pace)(self.state, depth, moved, answered, busy_s)

    def next_depth(self) -> float:
        result: float = interpreted(kernels.next_depth)(self.state)
        return result

    def best_level(self) -> int:
        result: int = interpreted(kernels.best_level)(self.state)
        return result

    def capacity_bytes_per_s(self) -> float:
        result: float = interpreted(kernels.capacity_bytes_per_s)(self.state)
        return result


def learn(pace: Callable[[float], Pace], depth: float, windows: int = 64) -> Saturation:
    """Run the search for some windows on a storage with a given pace per depth."""
    search = Saturation()
    for _ in range(windows):
        bytes_per_s, requests_per_s = pace(depth)
        search.record(depth, 1000 * bytes_per_s, int(1000 * requests_per_s), 1000.0)
        depth = search.next_depth()
    return search


@pytest.mark.parametrize("first", [1.0, 8.0, 300.0, float(2**12)])
@pytest.mark.parametrize("enough", [1, 2, 8, 32])
def test_the_search_finds_where_a_curve_becomes_flat(enough: int, first: float) -> None:
    search = learn(lambda d: Pace(50e6 * min(1.0, d / enough), 50.0), first)
    assert 2 ** search.best_level() == enough
    assert search.capacity_bytes_per_s() == pytest.approx(50e6)


def test_more_bytes_for_fewer_requests_are_not_a_gain() -> None:
    """At greater depths large requests crowd small ones out."""
    search = learn(lambda d: Pace(20e6 + 2e6 * d, 100 / d), 8.0)
    assert search.best_level() == 0


def test_the_search_follows_a_change_of_the_curve() -> None:
    search = learn(lambda d: Pace(50e6, 50.0), 4.0)
    assert search.best_level() == 0
    depth = search.next_depth()
    for _ in range(200):
        count = int(48 * min(4.0, depth))
        search.record(depth, 1e6 * count, count, 4.0)
        depth = search.next_depth()
    assert search.best_level() == 2


def test_a_window_without_completions_is_ignored() -> None:
    search = Saturation()
    search.record(4.0, 0.0, 0, 0.5)
    assert search.capacity_bytes_per_s() == 0.0
    assert search.next_depth() == 1.0


def test_windows_with_few_answers_are_added_up() -> None:
    """8 answers of 1 MB in each window of 1 s: the second window completes a pace."""
    search = Saturation()
    search.record(1.0, 8e6, 8, 1.0)
    assert search.capacity_bytes_per_s() == 0.0
    search.record(1.0, 8e6, 8, 1.0)
    assert search.capacity_bytes_per_s() == pytest.approx(8e6)


def test_a_change_of_the_depth_starts_a_new_pace() -> None:
    search = Saturation()
    search.record(1.0, 8e6, 8, 1.0)
    search.record(2.0, 8e6, 8, 1.0)
    search.record(1.0, 8e6, 8, 1.0)
    assert search.capacity_bytes_per_s() == 0.0


# --- Several mounts in front of one storage -------------------------------------------


def shared_depths(
    slack_of: Callable[[float], float], first: tuple[float, ...], delay: int
) -> list[float]:
    """Return the sum of the depths of several mounts, window by window.

    Every mount knows the slack factor at the sum of `delay` windows ago.
    """
    states = [memory(new_state()) for _ in first]
    depths, totals = list(first), [sum(first)] * (delay + 1)
    for _ in range(60):
        slack = slack_of(totals[-1 - delay])
        for k, state in enumerate(states):
            state.value[DEPTH] = depths[k]
            state.counter[MAX_OUTSTANDING] = int(depths[k])
            state.value[RIVALS_SLACK] = slack
            depths[k] = interpreted(kernels.shared_depth)(state)
        totals.append(sum(depths))
    return totals


@pytest.mark.parametrize("delay", [0, 1, 2])
@pytest.mark.parametrize("first", [(1.0, 1.0), (64.0, 64.0), (256.0, 2.0, 2.0)])
def test_the_depths_of_mounts_converge_to_the_latency_bound(
    first: tuple[float, ...], delay: int
) -> None:
    """T = L x 20 ms and a bound of 0.8 s: 40 requests at the storage."""
    totals = shared_depths(lambda total: 0.8 / (0.02 * total), first, delay)
    assert totals[-1] == pytest.approx(40.0, rel=0.05)
    assert max(totals[20:]) < 50.0
    assert min(totals[20:]) > 30.0


def test_a_bound_that_cannot_be_kept_leaves_every_mount_one_request() -> None:
    totals = shared_depths(lambda _: 0.0, (32.0, 8.0), 1)
    assert totals[-1] == 2.0


def test_the_depth_is_free_when_nobody_else_has_a_bound() -> None:
    state = memory(new_state())
    state.value[SHARED_DEPTH] = 1.0
    assert interpreted(kernels.shared_depth)(state) == inf
    assert state.value[SHARED_DEPTH] == inf


@pytest.mark.parametrize(("waiting", "saturated"), [(0, 1), (3, 0)])
def test_a_storage_for_which_nothing_waits_is_not_short(
    waiting: int, saturated: int
) -> None:
    """A capacity that was once too small must not make requests late for ever."""
    state = memory(new_state())
    state.value[CAPACITY_OVER_PROMISES] = 0.5
    state.counter[WAITING], state.counter[SATURATED] = waiting, saturated
    interpreted(kernels.set_holding_depth)(state, 0.5, 1.0)
    assert state.value[CAPACITY_OVER_PROMISES] == 1.0
