# SPDX-License-Identifier: MIT
"""The limiter of the data path: rates, order, slack, changes of limits."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.mount.limits import Limits
from penstock.qos import Kind, Request
from support.native_mount import NativeLimiter

#: Most bandwidth that a pool holds while no request waits, in seconds of its rate.
SLACK_S = 0.020

KINDS = st.sampled_from(["read", "write"])
RATES = st.floats(1e3, 1e10)
ALTERNATING: tuple[Kind, ...] = ("read", "write", "read", "write")
#: A large clock value, whose rounding is coarse.
START = 1e6


class LimiterDriver:
    """Feeds arrivals to a limiter, calls it at its wake-ups, records what it sends."""

    def __init__(self, limits: Limits, start: float = START) -> None:
        self.now = start
        self.limits = limits
        self.limiter = NativeLimiter(limits, start)
        self.sent: list[tuple[float, Request]] = []

    def arrive(self, request: Request) -> None:
        self.limiter.arrive(request, self.now)
        self.dispatch()

    def dispatch(self) -> None:
        self.sent += [(self.now, r) for r in self.limiter.dispatch(self.now)]

    def run_until(self, end: float, late_s: float = 0.0) -> None:
        """Call the limiter at every wake-up before `end`, `late_s` too late."""
        while (wake := max(self.limiter.wake_s + late_s, self.now)) < end:
            self.now = wake
            self.dispatch()
        if end < inf:
            self.now = end

    def moved(self, kind: Kind | None = None) -> int:
        return sum(r.size_bytes for _, r in self.sent if kind in (None, r.kind))


def write(size: int) -> Request:
    return Request("write", size)


@st.composite
def schedules(draw: st.DrawFn) -> list[tuple[float, Request]]:
    """Return arrivals: gaps (s) and requests."""
    gaps = st.floats(0.0, 0.5)
    sizes = st.integers(0, 1 << 20)
    requests = st.builds(Request, KINDS, sizes)
    return draw(st.lists(st.tuples(gaps, requests), min_size=1, max_size=60))


@given(schedules(), RATES, RATES, RATES, st.floats(0.0, 0.02))
def test_requests_go_in_order_and_never_faster_than_a_limit(
    schedule: list[tuple[float, Request]],
    total: float,
    read: float,
    written: float,
    late_s: float,
) -> None:
    limits = Limits(total, read, written)
    drive = LimiterDriver(limits)
    for gap, request in schedule:
        drive.run_until(drive.now + gap, late_s)
        drive.arrive(request)
    drive.run_until(inf, late_s)
    arrived = [request for _, request in schedule]
    for kind in ("read", "write"):
        sent = [r for _, r in drive.sent if r.kind == kind]
        assert sent == [r for r in arrived if r.kind == kind]
    assert drive.limiter.waiting == 0
    _check_rate(drive.sent, total)
    _check_rate([x for x in drive.sent if x[1].kind == "read"], read)
    _check_rate([x for x in drive.sent if x[1].kind == "write"], written)


def _check_rate(sent: list[tuple[float, Request]], rate: float) -> None:
    """Up to any time, at most the rate times the time plus the slack was sent."""
    moved = 0
    for when, request in sent:
        moved += request.size_bytes
        most = rate * (when - START + SLACK_S)
        assert moved <= most * (1 + 1e-9) + rate * 1e-8


@given(
    st.lists(st.integers(1, 1 << 20), min_size=2, max_size=50),
    RATES,
    st.floats(0.0, 1.0),
)
def test_while_a_request_waits_no_bandwidth_is_lost_to_late_timers(
    sizes: list[int], rate: float, late_s: float
) -> None:
    drive = LimiterDriver(Limits(total=rate))
    for size in sizes:
        drive.arrive(write(size))
    drive.run_until(inf, late_s)
    assert drive.now - START <= sum(sizes) / rate + late_s + 1e-6


@given(st.integers(1, 8), st.integers(1, 1 << 20), RATES)
def test_writers_that_wait_for_each_answer_get_equal_shares(
    writers: int, size: int, rate: float
) -> None:
    drive = LimiterDriver(Limits(total=rate))
    counts = [0] * writers
    for pid in range(writers):
        drive.arrive(Request("write", size, pid=pid))
    for turn in range(100):
        if turn == len(drive.sent):
            drive.run_until(drive.limiter.wake_s + 1e-9)
        pid = drive.sent[turn][1].pid
        counts[pid] += 1
        drive.arrive(Request("write", size, pid=pid))
    assert max(counts) - min(counts) <= 1


@given(st.floats(0.0, SLACK_S), st.integers(1, 1 << 20))
def test_a_lone_writer_reaches_the_limit_though_every_timer_is_late(
    late_s: float, size: int
) -> None:
    rate = 100e6
    drive = LimiterDriver(Limits(total=rate))
    for _ in range(50):
        drive.arrive(write(size))
        if drive.limiter.waiting:
            drive.run_until(drive.limiter.wake_s + late_s + 1e-9, late_s)
    assert drive.now - START <= 50 * size / rate + late_s + 1e-6


def test_unused_bandwidth_is_not_saved_beyond_the_slack() -> None:
    drive = LimiterDriver(Limits(total=1000.0))
    drive.run_until(START + 3600.0)
    drive.arrive(write(1000))
    assert drive.sent == []
    assert drive.limiter.wake_s == pytest.approx(drive.now + 1.0 - SLACK_S)


def test_a_request_waits_for_its_size_over_the_rate() -> None:
    drive = LimiterDriver(Limits(total=1000.0), start=0.0)
    drive.arrive(write(500))
    drive.arrive(write(250))
    drive.run_until(inf)
    assert [when for when, _ in drive.sent] == pytest.approx([0.5, 0.75])


def test_reads_and_writes_share_the_total() -> None:
    drive = LimiterDriver(Limits(total=1000.0), start=0.0)
    for kind in ALTERNATING:
        drive.arrive(Request(kind, 100))
    drive.run_until(inf)
    assert [when for when, _ in drive.sent] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert [r.kind for _, r in drive.sent] == list(ALTERNATING)


def test_a_slow_kind_does_not_hold_up_the_other() -> None:
    drive = LimiterDriver(Limits(read=10.0, write=1000.0), start=0.0)
    kinds: tuple[Kind, ...] = ("read", "write", "write")
    for kind in kinds:
        drive.arrive(Request(kind, 100))
    drive.run_until(1.0)
    assert drive.moved("read") == 0
    assert drive.moved("write") == 200


def test_two_limits_at_once_are_both_reached() -> None:
    drive = LimiterDriver(Limits(total=1000.0, write=1000.0), start=0.0)
    for _ in range(4):
        drive.arrive(write(500))
    drive.run_until(inf)
    assert drive.now == pytest.approx(2.0)


def test_small_requests_do_not_overtake_a_large_one() -> None:
    drive = LimiterDriver(Limits(total=1000.0), start=0.0)
    drive.arrive(Request("read", 5000))
    for _ in range(10):
        drive.arrive(write(1))
    drive.run_until(4.9)
    assert drive.sent == []
    drive.run_until(5.1)
    assert drive.moved("read") == 5000


def test_a_changed_limit_holds_for_requests_that_wait() -> None:
    drive = LimiterDriver(Limits(total=1000.0), start=0.0)
    drive.arrive(write(1000))
    drive.run_until(0.5)
    drive.limiter.set_limits(Limits(total=5000.0), drive.now)
    drive.dispatch()
    assert drive.limiter.wake_s == pytest.approx(0.6)
    drive.limiter.set_limits(Limits(), drive.now)
    drive.dispatch()
    assert drive.moved() == 1000
    assert drive.limiter.wake_s == inf


def test_nothing_is_saved_while_there_is_no_limit() -> None:
    drive = LimiterDriver(Limits(), start=0.0)
    drive.arrive(write(10**9))
    assert drive.moved() == 10**9
    drive.limiter.set_limits(Limits(total=1000.0), 5.0)
    drive.now = 5.0
    drive.arrive(write(1000))
    assert drive.limiter.wake_s == pytest.approx(6.0)


def test_bytes_taken_and_not_moved_are_given_back() -> None:
    drive = LimiterDriver(Limits(total=1000.0), start=0.0)
    first = write(1000)
    drive.arrive(first)
    drive.arrive(write(1000))
    drive.run_until(1.1)
    drive.limiter.complete(first, 0, drive.now)
    drive.dispatch()
    assert drive.moved() == 2000


@pytest.mark.parametrize("before", [Limits(read=1e12), Limits(write=1e12)])
def test_bytes_never_taken_are_not_given_back(before: Limits) -> None:
    """A limit that is set while requests are under way that later end short."""
    limiter = NativeLimiter(before, 0.0)
    reads = [Request("read", 10**6) for _ in range(100)]
    for request in reads:
        limiter.arrive(request, 1.0)
    assert limiter.dispatch(1.0) == reads
    limiter.set_limits(Limits(total=1e6), 1.0)
    limiter.arrive(write(10**7), 1.0)
    assert limiter.dispatch(1.0) == []
    for request in reads:
        limiter.complete(request, 0, 1.0)
    assert limiter.dispatch(10.9) == []
    assert len(limiter.dispatch(11.1)) == 1


def test_bytes_taken_before_a_time_without_limit_are_not_given_back() -> None:
    drive = LimiterDriver(Limits(total=1e6), start=0.0)
    first = write(10**6)
    drive.arrive(first)
    drive.run_until(1.1)
    drive.limiter.set_limits(Limits(), drive.now)
    drive.limiter.set_limits(Limits(total=1e6), drive.now)
    drive.limiter.complete(first, 0, drive.now)
    drive.arrive(write(10**6))
    assert drive.limiter.wake_s == pytest.approx(2.1)
