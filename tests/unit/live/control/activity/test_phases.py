# SPDX-License-Identifier: MIT
"""Detection of operations in counters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.control.activity.phases import (
    PastOperation,
    PhaseDetector,
)
from penstock.live.wire.messages import JobCounters

GAP = 0.5


def counters(
    moved_bytes: float,
    *,
    idle: float = 0.0,
    begun: int = 1,
    held_up: float = 0.0,
    waiting: bool = False,
) -> JobCounters:
    """Return the counters of a job on a node."""
    return JobCounters("0:a", begun, moved_bytes, held_up, waiting, idle)


def idle_detector() -> PhaseDetector:
    """Return the detector of a job that has done nothing on node n."""
    detector = PhaseDetector(GAP)
    detector.read("n", 0.0, counters(0.0, idle=100.0, begun=0))
    assert not detector.detect_begin(0.0)
    return detector


def test_from_the_first_call_to_the_gap() -> None:
    detector = idle_detector()
    detector.read("n", 1.0, counters(0.0, begun=1))
    assert detector.detect_begin(1.0)
    assert not detector.detect_begin(1.0)
    detector.read("n", 2.0, counters(70.0))
    assert detector.detect_end(2.0) is None
    assert detector.moved_bytes == 70.0
    detector.read("n", 3.0, counters(90.0, idle=0.49))
    assert detector.detect_end(3.0) is None
    detector.read("n", 3.2, counters(90.0, idle=0.7))
    assert detector.detect_end(3.2) == pytest.approx((1.0, 2.5, 90.0))
    assert not detector.is_active
    assert detector.moved_bytes == 0.0
    assert not detector.detect_begin(3.2)


def test_an_idle_time_of_exactly_the_gap_ends_it() -> None:
    detector = idle_detector()
    detector.read("n", 1e6 / 3.0, counters(5.0))
    assert detector.detect_begin(1e6 / 3.0)
    detector.read("n", 1e6 / 3.0 + 0.1, counters(5.0, idle=GAP))
    assert detector.detect_end(1e6 / 3.0 + 0.1)


def test_bytes_without_a_post_begin_an_operation_too() -> None:
    detector = idle_detector()
    detector.read("n", 1.0, counters(8.0, begun=0))
    assert detector.detect_begin(1.0)


def test_an_operation_ends_with_a_gap_on_all_nodes() -> None:
    detector = idle_detector()
    detector.read("m", 0.0, counters(0.0, idle=100.0, begun=0))
    detector.read("n", 1.0, counters(10.0))
    assert detector.detect_begin(1.0)
    detector.read("m", 1.5, counters(20.0))
    detector.read("n", 2.0, counters(10.0, idle=1.0))
    assert detector.detect_end(2.0) is None
    assert detector.busy_nodes() == ["m"]
    detector.read("m", 3.0, counters(30.0, idle=0.5))
    assert detector.detect_end(3.0) == PastOperation(1.0, 2.5, 40.0)


def test_a_job_that_is_held_up_is_not_idle() -> None:
    detector = idle_detector()
    detector.read("n", 1.0, counters(1.0))
    assert detector.detect_begin(1.0)
    detector.read("n", 9.0, counters(1.0, idle=8.0, waiting=True))
    assert detector.detect_end(9.0) is None
    assert detector.was_held_up()
    assert not detector.was_held_up()


def test_held_up_between_two_reports() -> None:
    detector = idle_detector()
    detector.read("n", 1.0, counters(1.0, held_up=0.2))
    assert detector.was_held_up()
    detector.read("n", 1.1, counters(1.0, held_up=0.2))
    assert not detector.was_held_up()


def test_a_node_that_leaves_is_not_waited_for_and_its_bytes_count() -> None:
    detector = idle_detector()
    detector.read("m", 0.0, counters(0.0, idle=100.0, begun=0))
    detector.read("n", 1.0, counters(10.0))
    detector.read("m", 1.0, counters(5.0))
    assert detector.detect_begin(1.0)
    detector.drop_node("m")
    assert detector.moved_bytes == 15.0
    detector.read("n", 3.0, counters(10.0, idle=2.0))
    assert detector.detect_end(3.0) == PastOperation(1.0, 1.0, 15.0)


def test_without_any_node_an_operation_ends_now() -> None:
    detector = idle_detector()
    detector.read("n", 1.0, counters(10.0))
    assert detector.detect_begin(1.0)
    detector.drop_node("n")
    assert detector.detect_end(2.0) == PastOperation(1.0, 2.0, 10.0)


def test_a_node_that_joins_with_counters_of_the_past() -> None:
    """After a restart of its agent: in the middle of an operation, or not."""
    detector = PhaseDetector(GAP)
    detector.read("n", 1.0, counters(500.0, idle=9.0, begun=7))
    assert not detector.detect_begin(1.0)
    detector = PhaseDetector(GAP)
    detector.read("n", 1.0, counters(500.0, idle=0.0, begun=7))
    assert detector.detect_begin(1.0)
    assert detector.moved_bytes == 0.0


@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.integers(0, 50)), max_size=40))
def test_nothing_is_counted_twice_or_lost(steps: list[tuple[float, int]]) -> None:
    """The volumes of the operations add up to what was moved."""
    detector = idle_detector()
    now, last, volume, begun, total = 0.0, -100.0, 0.0, 0, 0.0
    for delay, moved in [*steps, (9.0, 0)]:
        now += delay
        if moved:
            begun += now - last > GAP
            volume, last = volume + moved, now
        detector.read("n", now, counters(volume, idle=now - last, begun=begun))
        detector.detect_begin(now)
        if ended := detector.detect_end(now):
            total += ended.moved_bytes
            assert ended.end_s == pytest.approx(last)
    assert total == volume


def test_a_certain_volume_ends_an_operation_without_a_gap() -> None:
    detector = idle_detector()
    detector.read("n", 1.0, counters(99.0, idle=0.001))
    assert detector.detect_begin(1.0)
    assert detector.detect_completion(100.0, 1.0) is None
    detector.read("n", 1.1, counters(100.0, idle=0.0))
    assert detector.detect_completion(100.0, 1.1) is None
    detector.read("n", 1.2, counters(100.0, idle=0.001, waiting=True))
    assert detector.detect_completion(100.0, 1.2) is None
    detector.read("n", 1.3, counters(100.0, idle=0.1))
    assert detector.detect_completion(100.0, 1.3) == pytest.approx((1.0, 1.2, 100.0))
    assert not detector.is_active


def test_a_node_whose_counters_begin_anew() -> None:
    """The job has left the node and come back: it has a new page."""
    detector = idle_detector()
    detector.read("n", 1.0, counters(500.0, begun=7))
    assert detector.detect_begin(1.0)
    detector.read("n", 2.0, counters(20.0, begun=1))
    detector.read("n", 3.0, counters(50.0, begun=1, idle=GAP))
    assert detector.detect_end(3.0) == PastOperation(1.0, 2.5, 530.0)


def announced(
    moved_bytes: float, announced_bytes: float, phases: int, *, idle: float = 0.0
) -> JobCounters:
    """Return counters of a program that announces its phases."""
    return JobCounters(
        *("0:a", 1, moved_bytes, 0.0, False, idle),
        announced_bytes=announced_bytes,
        phases=phases,
    )


def test_an_announced_phase_takes_precedence_over_the_gap() -> None:
    detector = idle_detector()
    detector.read("n", 1.0, announced(0.0, 80.0, 1))
    assert detector.detect_begin(1.0)
    assert detector.announced_bytes == 80.0
    detector.read("n", 3.0, announced(30.0, 80.0, 1, idle=1.5))
    assert detector.detect_end(3.0) is None
    detector.read("n", 4.0, announced(80.0, 80.0, 0, idle=0.01))
    assert detector.detect_end(4.0) == pytest.approx((1.0, 3.99, 80.0))
    assert detector.announced_bytes == 0.0


def test_announced_volumes_of_nodes_add_up() -> None:
    detector = idle_detector()
    detector.read("m", 0.0, counters(0.0, idle=100.0, begun=0))
    detector.read("n", 1.0, announced(0.0, 80.0, 1))
    detector.read("m", 1.0, announced(0.0, 20.0, 1))
    assert detector.detect_begin(1.0)
    assert detector.announced_bytes == 100.0
