# SPDX-License-Identifier: MIT
"""The rules of the estimator, one window at a time; whole runs: test_storage.py."""

from __future__ import annotations

from math import inf, isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.control.activity.usage import Kind, Usage
from penstock.live.control.storage.bandwidth import (
    CLOSE,
    FAST_STEP,
    FIRST_STEP,
    LARGEST_STEP,
    MARGIN,
    QUICK_STEP,
    RANGE_S,
    REST,
    START_S,
    WINDOW_S,
    BandwidthEstimator,
    Reason,
)


class Reports:
    """Jobs whose counters grow at given rates, and an estimator that reads them."""

    def __init__(self, estimator: BandwidthEstimator, *jobs: str) -> None:
        self.estimator = estimator
        self.now = 0.0
        self.usage = dict.fromkeys(jobs, Usage(0.0, 0.0, 0.0, 0.0, True))
        self.begin(*jobs)

    def begin(self, *jobs: str) -> None:
        """Let exactly these jobs have operations."""
        for job in jobs:
            self.usage.setdefault(job, Usage(0.0, 0.0, 0.0, 0.0, True))
        self.active = jobs
        self.estimator.set_active(jobs, self.now)
        self._read()

    def pass_time(self, duration_s: float, **rates: tuple[float, float, float]) -> None:
        """Let time pass; job=(bytes written per s, part busy, part held up)."""
        steps = round(duration_s / 0.1)
        for _ in range(steps):
            self.now += 0.1
            for job, (rate, busy, held) in rates.items():
                old = self.usage[job]
                self.usage[job] = Usage(
                    old.read_bytes,
                    old.written_bytes + 0.1 * rate,
                    old.busy_s + 0.1 * busy,
                    old.held_up_s + 0.1 * held,
                    True,
                )
            self._read()
            self.estimator.learn(self.now)

    def _read(self) -> None:
        for job in self.active:
            self.estimator.read(job, self.now, self.usage[job])

    def reads(self, job: str, read_bytes: float) -> None:
        """Add bytes that a job has read."""
        self.usage[job] = self.usage[job]._replace(read_bytes=read_bytes)

    @property
    def rate(self) -> float:
        return self.estimator.bandwidth


HELD = (0.2, 0.8)
"""Busy and held up: control limits the job."""
PUSHING = (1.0, 0.0)
"""Always inside calls, never held up."""


def two_jobs() -> Reports:
    """Return two jobs, of which nothing is known."""
    return Reports(BandwidthEstimator(), "a", "b")


def saturated(rate: float = 100.0) -> Reports:
    """Return two jobs that have just learnt the limit of their storage."""
    reports = two_jobs()
    reports.pass_time(START_S, a=(rate / 2, *PUSHING), b=(rate / 2, *PUSHING))
    return reports


def confirmed(rate: float = 100.0) -> Reports:
    """Return two jobs that have seen the limit of their storage twice."""
    reports = saturated(rate)
    part = MARGIN * rate / 2.0
    reports.pass_time(WINDOW_S, a=(part, *PUSHING), b=(part, 0.8, 0.2))
    return reports


def test_nothing_is_known_at_first() -> None:
    reports = two_jobs()
    assert (reports.rate, reports.estimator.beliefs()) == (inf, {})
    reports.pass_time(0.1, a=(50.0, *PUSHING), b=(50.0, *PUSHING))
    assert reports.rate == inf


def test_the_limit_is_what_free_jobs_draw_together() -> None:
    reports = saturated(100.0)
    assert reports.rate == pytest.approx(MARGIN * 100.0)
    (belief,) = reports.estimator.beliefs().values()
    assert (belief.reason, belief.saturated) == (Reason.SATURATED, True)
    assert reports.estimator.kind is Kind.WRITES


def test_a_lone_job_tells_where_to_begin_and_is_no_limit() -> None:
    reports = Reports(BandwidthEstimator(), "a")
    reports.pass_time(0.6, a=(30.0, 0.5, 0.0))
    # 30 bytes/s while it was inside calls for half of the time.
    assert reports.rate == pytest.approx(60.0)
    reports.begin("a", "b")
    assert reports.rate == pytest.approx(60.0)
    reports.pass_time(0.2, a=(30.0, *HELD), b=(30.0, *HELD))
    assert reports.rate == pytest.approx(60.0 * (1.0 + FAST_STEP))


def test_a_lone_job_that_draws_more_corrects_the_belief_at_once() -> None:
    reports = saturated(100.0)
    reports.begin("a")
    reports.pass_time(0.7, a=(300.0, *PUSHING))
    assert reports.rate == pytest.approx(300.0)
    assert not reports.estimator.beliefs()[Kind.WRITES].saturated


def test_a_lone_job_that_draws_less_changes_nothing() -> None:
    reports = saturated(100.0)
    reports.begin("a")
    reports.pass_time(5.0, a=(3.0, *PUSHING))
    assert reports.rate == pytest.approx(MARGIN * 100.0)


def test_a_belief_that_is_too_high_falls_to_what_is_drawn() -> None:
    reports = saturated(100.0)
    reports.pass_time(1.0, a=(49.0, *HELD), b=(49.0, *HELD))
    reports.pass_time(10.0, a=(20.0, *PUSHING), b=(20.0, *PUSHING))
    assert reports.rate == pytest.approx(40.0, rel=0.05)


def raised(reports: Reports, windows: int) -> list[float]:
    """Let held jobs draw all of the belief; return by what part each window raised it.

    They are inside calls for a fifth of the time: the storage is not their limit.
    """
    steps = []
    for _ in range(windows):
        before = reports.rate
        reports.pass_time(WINDOW_S, a=(before / 2.0, *HELD), b=(before / 2.0, *HELD))
        steps.append(reports.rate / before - 1.0)
    return steps


def test_a_confirmed_belief_rests_and_then_rises_in_growing_steps() -> None:
    steps = raised(confirmed(100.0), 3 * REST)
    assert steps[: REST - 1] == pytest.approx([0.0] * (REST - 1))
    near, far = steps[REST - 1 : 2 * REST], steps[2 * REST - 1 :]
    assert near == pytest.approx([FIRST_STEP] * len(near))
    assert far == pytest.approx([FIRST_STEP * 2**i for i in range(len(far))])


def test_a_limit_that_was_seen_once_is_probed_at_once() -> None:
    steps = raised(saturated(100.0), 5)
    expected = [min(QUICK_STEP * 2**i, LARGEST_STEP) for i in range(5)]
    assert steps == pytest.approx(expected)


def test_with_more_jobs_a_confirmed_limit_is_probed_again() -> None:
    reports = confirmed(100.0)
    reports.begin("a", "b", "c")
    before = reports.rate
    part = (before / 3.0, *HELD)
    reports.pass_time(WINDOW_S, a=part, b=part, c=part)
    assert reports.rate == pytest.approx(before * (1.0 + QUICK_STEP))


def test_slowed_jobs_that_draw_all_of_a_belief_confirm_it() -> None:
    (belief,) = saturated(100.0).estimator.beliefs().values()
    assert not belief.is_confirmed
    (belief,) = confirmed(100.0).estimator.beliefs().values()
    assert belief.is_confirmed


def test_slowed_jobs_that_draw_more_than_the_limit_do_not_confirm_it() -> None:
    reports = saturated(100.0)
    reports.pass_time(WINDOW_S, a=(60.0, *PUSHING), b=(60.0, 0.8, 0.2))
    (belief,) = reports.estimator.beliefs().values()
    assert not belief.is_confirmed


def test_a_little_that_is_left_undrawn_lowers_a_belief_in_the_end() -> None:
    reports = confirmed(100.0)
    before = reports.rate
    part = 0.97 * before / 2.0
    reports.pass_time(3.0, a=(part, *PUSHING), b=(part, *PUSHING))
    assert reports.rate == before
    reports.pass_time(1.0, a=(part, *PUSHING), b=(part, *PUSHING))
    assert reports.rate == pytest.approx(MARGIN * 0.97 * before)


def test_bytes_that_come_late_do_not_lower_a_belief() -> None:
    """One job moves bytes in every second window only, as large calls do."""
    reports = confirmed(100.0)
    before = reports.rate
    for _ in range(20):
        reports.pass_time(0.2, a=(0.0, *PUSHING), b=(before / 2.0, *PUSHING))
        reports.pass_time(0.1, a=(1.5 * before, *PUSHING), b=(before / 2.0, *PUSHING))
    assert reports.rate == pytest.approx(before)


def test_nobody_is_held_while_what_is_drawn_grows() -> None:
    reports = two_jobs()
    for rate in (10.0, 12.0, 14.0, 17.0, 20.0, 24.0, 30.0, 36.0, 43.0, 50.0):
        reports.pass_time(WINDOW_S, a=(rate, *PUSHING), b=(rate, *PUSHING))
        assert reports.rate == inf
    reports.pass_time(START_S, a=(50.0, *PUSHING), b=(50.0, *PUSHING))
    assert reports.rate == pytest.approx(MARGIN * 100.0)


def test_free_jobs_that_do_not_wait_for_the_storage_tell_nothing() -> None:
    reports = two_jobs()
    reports.pass_time(20.0, a=(50.0, 0.3, 0.0), b=(50.0, 0.3, 0.0))
    assert (reports.rate, reports.estimator.beliefs()) == (inf, {})


def test_a_job_that_is_paused_does_not_raise_the_belief() -> None:
    """A policy may serve one job and let the other one wait."""
    reports = Reports(BandwidthEstimator(), "a")
    reports.pass_time(0.6, a=(100.0, *PUSHING))
    reports.begin("a", "b")
    reports.pass_time(10.0, a=(100.0, *PUSHING), b=(0.0, 0.0, 1.0))
    assert reports.rate == pytest.approx(100.0)


def test_jobs_that_do_not_use_the_belief_do_not_raise_it() -> None:
    reports = saturated(100.0)
    before = reports.rate
    reports.pass_time(5.0, a=(10.0, 0.9, 0.05), b=(10.0, 0.1, 0.0))
    assert reports.rate == before


def test_a_slow_job_beside_one_that_is_served_well_is_no_saturation() -> None:
    reports = saturated(100.0)
    before = reports.rate
    # b gets its bytes in 1 % of the time: the storage is not at its limit.
    reports.pass_time(3.0, a=(10.0, *PUSHING), b=(40.0, 0.01, 0.9))
    assert reports.rate >= before


def test_reads_and_writes_have_beliefs_of_their_own() -> None:
    reports = saturated(100.0)
    for number in range(1, 40):
        for job in ("a", "b"):
            reports.reads(job, number * 2.0)
        reports.pass_time(0.1, a=(0.0, *PUSHING), b=(0.0, *PUSHING))
    beliefs = reports.estimator.beliefs()
    assert reports.estimator.kind is Kind.READS
    assert beliefs[Kind.WRITES].rate == pytest.approx(MARGIN * 100.0)
    assert beliefs[Kind.READS].rate == pytest.approx(40.0, rel=0.05)


def sync_in_turns(reports: Reports, sync_s: float, capacity: float) -> None:
    """Write for 1 s, then sync: for `sync_s`, and until the storage has it all."""
    for _ in range(12):
        part = reports.rate / 2.0
        reports.pass_time(1.0, a=(part, *HELD), b=(part, *HELD))
        rest_s = max(2.0 * part / capacity - 1.0, 0.0)
        reports.pass_time(sync_s + rest_s, a=(0.0, *PUSHING), b=(0.0, *PUSHING))


def test_a_sync_lowers_the_belief_towards_what_is_drawn_on_average() -> None:
    reports = Reports(BandwidthEstimator(), "a")
    reports.pass_time(0.6, a=(400.0, *PUSHING))
    reports.begin("a", "b")
    sync_in_turns(reports, 0.0, capacity=100.0)
    assert 80.0 < reports.rate < 250.0


def test_syncs_that_take_long_whatever_is_written_do_not_lower_it_for_ever() -> None:
    reports = saturated(100.0)
    sync_in_turns(reports, 2.0, capacity=1e9)
    assert reports.rate > 20.0


def test_a_suggestion_is_a_start_and_not_a_cap() -> None:
    known = {Kind.WRITES: (1.0, Reason.MEASURED)}
    reports = Reports(BandwidthEstimator(known), "a", "b")
    for _ in range(60):
        part = min(reports.rate, 100.0) / 2.0
        reports.pass_time(0.1, a=(part, *HELD), b=(part, *HELD))
    assert reports.rate >= 50.0


@pytest.mark.parametrize("rate", [0.0, -1.0, inf, float("nan")])
def test_a_useless_suggestion_is_ignored(rate: float) -> None:
    estimator = BandwidthEstimator({Kind.READS: (rate, Reason.REMEMBERED)})
    assert estimator.beliefs() == {}


def test_counters_that_go_back_begin_anew() -> None:
    reports = saturated(100.0)
    before = reports.rate
    reports.usage["a"] = Usage(0.0, 0.0, 0.0, 0.0, True)
    reports.pass_time(0.4, a=(49.0, *HELD), b=(49.0, *HELD))
    assert reports.rate == pytest.approx(before, rel=0.1)


def test_a_job_that_leaves_is_forgotten() -> None:
    reports = saturated(100.0)
    reports.estimator.leave("b", reports.now)
    assert not reports.estimator.has_company
    assert not reports.estimator.is_slowed("b")


def test_the_example_of_the_module() -> None:
    reports = two_jobs()
    full, slow = (50.0, *PUSHING), (40.0, *PUSHING)
    beliefs = {}
    reports.pass_time(2.0, a=full, b=full)
    beliefs[2.0] = reports.rate
    part = (reports.rate / 2.0, *HELD)
    reports.pass_time(0.5, a=part, b=part)
    beliefs[2.5] = reports.rate
    reports.pass_time(4.5, a=full, b=full)
    beliefs[7.0] = reports.rate
    for until_s in (8.0, 10.0):
        reports.pass_time(until_s - reports.now, a=slow, b=slow)
        beliefs[until_s] = reports.rate
    expected = {2.0: 98.5, 2.5: 102.4, 7.0: 98.5, 8.0: 78.8, 10.0: 78.8}
    assert beliefs == pytest.approx(expected, abs=0.05)


def test_a_job_that_ended_while_it_was_held_up_does_not_raise_the_belief() -> None:
    reports = Reports(BandwidthEstimator(), "a", "b", "c")
    reports.pass_time(0.3, a=(34, *PUSHING), b=(33, *PUSHING), c=(33, *PUSHING))
    # Bytes count before the wait: the last reports bring no bytes, only the wait.
    reports.pass_time(0.2, a=(0.0, 0.0, 1.0), b=(0.0, 0.0, 0.0), c=(0.0, 0.0, 0.0))
    reports.begin("b", "c")
    before = reports.rate
    part = 0.98 * before / 2.0
    reports.pass_time(3.0, b=(part, 0.3, 0.0), c=(part, 0.3, 0.0))
    assert reports.rate == before


def test_a_job_that_left_begins_anew_when_it_returns() -> None:
    reports = Reports(BandwidthEstimator(), "a", "b", "c")
    slow = (30.0, *PUSHING)
    reports.pass_time(0.5, a=slow, b=slow, c=slow)
    reports.begin("b", "c")
    reports.pass_time(1.2, b=slow, c=slow)
    assert reports.estimator._jobs["a"].base is None
    assert reports.estimator._jobs["b"].base is not None


def test_saturation_does_not_average_what_an_earlier_meeting_drew() -> None:
    reports = confirmed(100.0)
    reports.pass_time(0.5, a=(45.0, *PUSHING), b=(45.0, *PUSHING))
    reports.begin("a")
    reports.pass_time(3600.0, a=(10.0, *PUSHING))
    reports.begin("a", "b")
    reports.pass_time(1.0, a=(10.0, *PUSHING), b=(10.0, *PUSHING))
    assert reports.rate == pytest.approx(MARGIN * 20.0)


def test_the_spread_of_the_last_minute_is_known() -> None:
    reports = saturated(100.0)
    reports.pass_time(RANGE_S, a=(30.0, 1.0, 0.0), b=(30.0, 1.0, 0.0))
    (belief,) = reports.estimator.beliefs().values()
    assert belief.rate == pytest.approx(MARGIN * 60.0)
    lowest, highest = belief.spread
    assert lowest == belief.rate
    assert highest == pytest.approx(MARGIN * 100.0)
    reports.pass_time(RANGE_S + 5.0, a=(30.0, 1.0, 0.0), b=(30.0, 1.0, 0.0))
    lowest, highest = belief.spread
    assert lowest == highest == belief.rate


def test_large_calls_of_a_reader_and_a_writer_are_a_mixture_all_the_time() -> None:
    reports = two_jobs()
    for number in range(1, 20):
        reports.reads("a", 50.0 * number)
        reports.pass_time(0.5, a=(0.0, *PUSHING), b=(0.0, *PUSHING))
        reports.pass_time(0.5, a=(0.0, *PUSHING), b=(100.0, *PUSHING))
        if number > 1:
            assert reports.estimator.kind is Kind.MIXED


PARTS = st.floats(0.0, 1.0)
WINDOWS = st.lists(
    st.tuples(st.floats(0.0, 1e9), PARTS, PARTS, st.floats(0.0, 1e9), PARTS, PARTS),
    min_size=1,
    max_size=12,
)


@given(WINDOWS)
def test_a_belief_is_positive_and_is_infinite_only_before_the_first(
    windows: list[tuple[float, ...]],
) -> None:
    reports = two_jobs()
    for window in windows:
        a, b = window[:3], window[3:]
        reports.pass_time(0.6, a=a, b=b)  # type: ignore[arg-type]
        for belief in reports.estimator.beliefs().values():
            assert isfinite(belief.rate)
            assert belief.rate > 0.0


@given(WINDOWS, st.floats(1.0, 1e9))
def test_a_belief_is_never_below_what_a_lone_job_draws(
    windows: list[tuple[float, ...]], rate: float
) -> None:
    reports = two_jobs()
    for window in windows:
        reports.pass_time(0.6, a=window[:3], b=window[3:])  # type: ignore[arg-type]
    reports.begin("a")
    reports.pass_time(1.2, a=(rate, *PUSHING))
    assert reports.rate >= rate / (1.0 + CLOSE) * (1.0 - 1e-9)


@given(st.floats(1.0, 1e9), st.floats(1.0, 1e9))
def test_a_belief_rises_only_if_a_job_is_held_up(limit: float, drawn: float) -> None:
    reports = saturated(limit)
    before = reports.rate
    part = min(drawn, limit) / 2.0
    reports.pass_time(2.0, a=(part, 0.3, 0.0), b=(part, 0.3, 0.0))
    assert reports.rate <= before
