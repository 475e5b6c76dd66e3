# SPDX-License-Identifier: MIT
"""Volumes of operations that nobody announced: closed forms and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.control.activity.volumes import (
    FIRST_S,
    REMEMBERED,
    SAME,
    OperationLengths,
    VolumePredictor,
)

CAP = 40.0
VOLUMES = st.lists(st.floats(1.0, 1e15), min_size=1, max_size=2 * REMEMBERED)


def predictor_after(*volumes: float) -> VolumePredictor:
    """Return the predictor of a job whose operations had these volumes."""
    predictor = VolumePredictor()
    for volume in volumes:
        predictor.learn(volume)
    return predictor


# --- Known volumes ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("volumes", "known"),
    [
        ((), 0.0),
        ((8.0,), 0.0),
        ((8.0, 8.0), 8.0),
        ((2.0, 8000.0, 8001.0), 8000.0),
        ((8.0, 8.0, 8.0, 2.0), 0.0),
        ((8.0, 8.0, 8.0, 2.0, 2.0), 0.0),
    ],
)
def test_the_same_volume_twice_is_certain(
    volumes: tuple[float, ...], known: float
) -> None:
    assert predictor_after(*volumes).known() == known


def test_the_likely_volume_is_announced_or_the_median_of_the_last() -> None:
    predictor = VolumePredictor()
    assert predictor.likely_bytes == 0.0
    for volume in (1.0, 9.0, 5.0):
        predictor.learn(volume)
    assert predictor.likely_bytes == 5.0
    predictor.hint_bytes = 7.0
    assert predictor.likely_bytes == 7.0
    predictor.next_hint_bytes = 8.0
    assert predictor.likely_bytes == predictor.likely_bytes == 8.0


def test_a_hint_is_believed() -> None:
    predictor = VolumePredictor(hint_bytes=77.0)
    predictor.learn(5.0)
    assert predictor.known() == 77.0
    predictor.next_hint_bytes = 9.0
    assert predictor.known() == 9.0
    assert predictor.known() == 77.0


# --- A job that was measured --------------------------------------------------------


def test_the_mean_of_the_volumes_that_exceed_what_was_moved() -> None:
    predictor = predictor_after(1000.0, 1.0, 5.0, 3.0, 4.0, 2.0)
    assert REMEMBERED == 5
    means = {0.0: 3.0, 1.0: 3.5, 2.5: 4.0, 4.0: 5.0}
    assert {m: predictor.estimate(m, CAP, 9e9) for m in means} == means
    # More than ever before: as much again.
    assert predictor.estimate(5.0, CAP, 9e9) == 10.0
    assert predictor.estimate(600.0, CAP, 9e9) == 1200.0


def test_ftio_replaces_the_mean_until_more_was_moved() -> None:
    predictor = predictor_after(10.0, 30.0)
    predictor.expected_bytes = 17.0
    assert predictor.estimate(0.0, CAP, 1.0) == 17.0
    assert predictor.estimate(17.0, CAP, 1.0) == 30.0


@given(VOLUMES, st.floats(0.0, 1e15))
def test_an_estimate_exceeds_what_was_moved(volumes: list[float], moved: float) -> None:
    predictor = predictor_after(*volumes)
    assert predictor.estimate(moved, CAP, 1.0) > moved


@given(VOLUMES, st.floats(0.0, 1e15), st.floats(0.0, 1e15))
def test_the_more_was_moved_the_larger_is_the_estimate(
    volumes: list[float], moved: float, more: float
) -> None:
    predictor = predictor_after(*volumes)
    below, above = sorted((moved, moved + more))
    least = predictor.estimate(below, CAP, 1.0) * (1.0 - 1e-12)
    assert predictor.estimate(above, CAP, 1.0) >= least


def test_an_operation_that_moved_nothing() -> None:
    assert predictor_after(0.0).estimate(0.0, CAP, 0.0) == 1.0


# --- A job that was never measured --------------------------------------------------


def test_a_newcomer_remains_as_long_as_the_longest() -> None:
    predictor = VolumePredictor()
    assert predictor.estimate(0.0, CAP, 6.0) == 240.0
    assert predictor.estimate(230.0, CAP, 6.0) == 230.0 + 240.0
    # More than any operation so far: as much again.
    assert predictor.estimate(250.0, CAP, 6.0) == 250.0 + 250.0


@given(VOLUMES, st.floats(1.0, 1e12), st.floats(1.0, 1e12), *2 * [st.floats(0.0, 1e15)])
def test_a_newcomer_does_not_outrank_what_was_measured(
    volumes: list[float], cap: float, cap_of_newcomer: float, moved: float, done: float
) -> None:
    """By the time at full bandwidth, as greedy-com ranks, whatever the caps are."""
    lengths = OperationLengths()
    for volume in volumes:
        lengths.add(7, volume / cap)
    done = min(done, 0.99 * max(volumes[-REMEMBERED:]))
    measured_bytes = predictor_after(*volumes).estimate(done, cap, 1.0) - done
    newcomer_bytes = (
        VolumePredictor().estimate(moved, cap_of_newcomer, lengths.longest_s(7)) - moved
    )
    # Up to the rounding of V(m) - m.
    least = (1.0 - 1e-9) * measured_bytes / cap
    assert newcomer_bytes / cap_of_newcomer >= least


def test_lengths_of_the_user_then_of_all_users() -> None:
    lengths = OperationLengths()
    assert lengths.longest_s(1) == FIRST_S
    lengths.add(1, 0.25)
    lengths.add(1, 0.5)
    lengths.add(2, 30.0)
    assert lengths.longest_s(1) == (1.0 + SAME) * 0.5
    assert lengths.longest_s(2) == (1.0 + SAME) * 30.0
    assert lengths.longest_s(3) == (1.0 + SAME) * 30.0


def test_old_lengths_are_forgotten() -> None:
    lengths = OperationLengths()
    lengths.add(1, 1e6)
    for _ in range(100):
        lengths.add(1, 2.0)
    assert lengths.longest_s(1) == (1.0 + SAME) * 2.0
