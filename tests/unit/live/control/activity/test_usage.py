# SPDX-License-Identifier: MIT
"""What a job does in a window of time."""

from __future__ import annotations

import pytest

from penstock.live.control.activity.usage import (
    BUSY_PART,
    HELD_PART,
    SYNC_S,
    JobWindow,
    Kind,
    Usage,
    kind_of,
)


def window_of(*reports: tuple[float, Usage]) -> JobWindow:
    """Return a window to which reports, each with its time, were added."""
    window = JobWindow()
    for now, usage in reports:
        window.read(now, usage)
    return window


def wrote(written_bytes: float, busy_s: float, held_up_s: float = 0.0) -> Usage:
    """Return the counters of a writer that is inside a call."""
    return Usage(0.0, written_bytes, busy_s, held_up_s, in_call=True)


@pytest.mark.parametrize(
    ("read_bytes", "written_bytes", "kind"),
    [
        (100.0, 0.0, Kind.READS),
        (0.0, 100.0, Kind.WRITES),
        (96.0, 4.0, Kind.READS),
        (4.0, 96.0, Kind.WRITES),
        (10.0, 90.0, Kind.MIXED),
        (50.0, 50.0, Kind.MIXED),
    ],
)
def test_a_few_bytes_of_the_other_kind_are_no_mixture(
    read_bytes: float, written_bytes: float, kind: Kind
) -> None:
    assert kind_of(read_bytes, written_bytes) is kind


def test_time_without_bytes_is_added_with_the_next_bytes() -> None:
    window = window_of((0.0, wrote(0.0, 0.0)), (0.1, wrote(0.0, 0.0)))
    assert window.elapsed_s == 0.0
    window.read(0.2, wrote(10.0, 0.2))
    assert (window.elapsed_s, window.moved_bytes, window.busy_s) == (0.2, 10.0, 0.2)
    assert window.rate(0.5, 0.2) == pytest.approx(50.0)
    assert window.service == pytest.approx(50.0)


def test_a_call_that_is_under_way_moves_bytes_like_the_one_before() -> None:
    window = window_of((0.0, wrote(0.0, 0.0)), (0.2, wrote(10.0, 0.2)))
    window.clear(rebase=False)
    window.read(0.4, wrote(10.0, 0.2))
    assert window.rate(0.2, 0.4) == pytest.approx(50.0)
    late_s = 0.3 + SYNC_S
    window.read(late_s, wrote(10.0, 0.2))
    assert window.rate(0.2, late_s) == 0.0


def test_a_job_that_is_held_and_moves_nothing_has_no_rate() -> None:
    window = window_of((0.0, wrote(0.0, 0.0)), (0.2, wrote(10.0, 0.2)))
    window.clear(rebase=False)
    window.read(0.4, wrote(10.0, 0.2, held_up_s=0.2))
    assert window.is_held
    assert window.rate(0.2, 0.4) == 0.0


def test_a_job_that_has_just_joined_counts_for_the_whole_window() -> None:
    window = window_of((0.3, wrote(0.0, 0.0)), (0.5, wrote(10.0, 0.2)))
    window.stayed = False
    assert window.rate(0.5, 0.5) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("busy_s", "held_up_s", "held", "waits"),
    [
        (1.0, 0.0, False, True),
        (0.9 * BUSY_PART, 0.0, False, False),
        (0.9, 2.0 * HELD_PART, True, False),
    ],
)
def test_a_job_is_held_or_waits_or_limits_itself(
    busy_s: float, held_up_s: float, held: bool, waits: bool
) -> None:
    window = window_of((0.0, wrote(0.0, 0.0)), (1.0, wrote(10.0, busy_s, held_up_s)))
    assert (window.is_held, window.waits) == (held, waits)


def test_calls_take_longer_than_in_the_best_window() -> None:
    window = window_of((0.0, wrote(0.0, 0.0)), (1.0, wrote(100.0, 1.0)))
    assert window.takes_longer(0.1, without_best=True)
    assert not window.takes_longer(0.1, without_best=False)
    window.remember_busy()
    window.clear(rebase=False)
    window.read(2.0, wrote(180.0, 2.0))
    assert window.takes_longer(0.1, without_best=False)
    assert not window.takes_longer(0.5, without_best=False)


def test_a_call_that_moves_nothing_for_long_syncs_unless_it_is_held_up() -> None:
    late_s = 2.0 * SYNC_S
    waiting = window_of((0.0, wrote(1.0, 0.0)), (late_s, wrote(1.0, 0.0)))
    held = window_of((0.0, wrote(1.0, 0.0)), (late_s, wrote(1.0, 0.0, late_s)))
    assert (waiting.syncs(late_s), held.syncs(late_s)) == (True, False)


def test_the_time_of_a_sync_is_not_added() -> None:
    window = window_of((0.0, wrote(0.0, 0.0)), (0.1, wrote(100.0, 0.1)))
    window.read(0.1 + 2.0 * SYNC_S, wrote(101.0, 1.1))
    assert (window.elapsed_s, window.moved_bytes) == (0.1, 100.0)


def test_counters_that_go_back_are_a_new_base() -> None:
    window = window_of((0.0, wrote(100.0, 1.0)), (1.0, wrote(5.0, 0.1)))
    assert window.elapsed_s == 0.0
    window.read(2.0, wrote(15.0, 0.2))
    assert (window.elapsed_s, window.moved_bytes) == (1.0, 10.0)


def test_windows_in_which_a_job_lends_are_counted() -> None:
    window = JobWindow()
    for lends, lent in ((True, 1), (True, 2), (False, 0)):
        window.read(1.0, wrote(0.0, 0.0), lends=lends)
        window.clear(rebase=False)
        assert window.lent == lent
