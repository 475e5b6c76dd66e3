# SPDX-License-Identifier: MIT
"""The gate of the data path: scheduler and limiter together, on a clock of the test.

The same arrivals go through the gate (C, function pointers) and through a plain event
loop over a scheduler and a limiter: both must decide the same at the same times.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.mount.limits import DATA_KINDS, Limits
from penstock.qos import (
    SCHEDULERS,
    Credit,
    Kind,
    QosScheduler,
    Request,
    Slo,
    get_scheduler,
)
from penstock.qos.credit.front import with_credit
from support.native_mount import NativeGate, NativeLimiter, set_time

RATE = 1e6
SLOS = {"tight": Slo(0.2 * RATE, 0.05), "bulk": Slo(0.7 * RATE, 2.0)}
NAMES = ("tight", "bulk", "unknown")
START_S = 5.0
LEASE_S = 1.5
SLACK_S = 0.020


class Cascade:
    """A scheduler in front of a limiter, as objects."""

    def __init__(self, scheduler: QosScheduler, limiter: NativeLimiter) -> None:
        self.scheduler, self.limiter = scheduler, limiter

    @property
    def wake_s(self) -> float:
        return min(self.scheduler.wake_s, self.limiter.wake_s)

    def dispatch(self, now: float) -> list[Request]:
        to_send = []
        for request in self.scheduler.dispatch(now):
            if request.kind in DATA_KINDS:
                self.limiter.arrive(request, now)
            else:
                to_send.append(request)
        return to_send + self.limiter.dispatch(now)

    def complete(self, request: Request, now: float) -> None:
        if request.kind in DATA_KINDS:
            self.limiter.complete(request, request.size_bytes, now)
        self.scheduler.complete(request, request.size_bytes, now)


#: Time after the start (ms), application, kind, size.
Arrival = tuple[int, str, Any, int]


def arrivals_of(*kinds: str) -> st.SearchStrategy[list[Arrival]]:
    return st.lists(
        st.tuples(
            st.integers(0, 3000),
            st.sampled_from(NAMES),
            st.sampled_from(kinds),
            st.integers(1, 200_000),
        ),
        min_size=1,
        max_size=60,
        unique_by=lambda arrival: arrival[0],
    )


#: Times (ms) and sizes for which the closing time of a window matters.
WINDOWS = ((0, 1), (501, 32_200), (1000, 1), (1560, 20_701), (1561, 1))
#: Service time of the storage behind the limit, by kind.
SERVICE_S = {"metadata": 0.06}
SHORT_S = 0.000_3
METADATA = "penstock.qos.metadata:depth=3"


def request_of(arrival: Arrival) -> Request:
    _, application, kind, size = arrival
    if kind in ("metadata", "urgent"):
        return Request("metadata", 0, application, is_urgent=kind == "urgent")
    return Request(kind, 0 if kind == "sync" else size, application)


def play(
    arrivals: list[Arrival],
    arrive: Callable[[Request, float], None],
    complete: Callable[[Request, float], None],
    sent_now: Callable[[float], list[Request]],
    wake_s: Callable[[], float],
) -> dict[int, float]:
    """Run an event loop; return the time at which each request is sent."""
    requests = [request_of(arrival) for arrival in arrivals]
    numbers = {request: number for number, request in enumerate(requests)}
    events: list[tuple[float, int, bool]] = []
    for number, arrival in enumerate(arrivals):
        heappush(events, (START_S + arrival[0] / 1e3, number, True))
    sent: dict[int, float] = {}
    while len(sent) < len(arrivals):
        now = min(wake_s(), events[0][0] if events else inf)
        set_time(now)
        if events and events[0][0] <= now:
            _, number, is_arrival = heappop(events)
            (arrive if is_arrival else complete)(requests[number], now)
        for request in sent_now(now):
            sent[numbers[request]] = now
            end_s = now + SERVICE_S.get(request.kind, SHORT_S)
            heappush(events, (end_s, numbers[request], False))
    return sent


def new_scheduler(name: str) -> QosScheduler:
    """Return a scheduler whose "bulk" has little credit for the first half."""
    scheduler = get_scheduler(name).make(SLOS, START_S)
    if name != METADATA:
        with_credit(scheduler).set_credit(
            Credit({"bulk": 0.3 * RATE}), LEASE_S, START_S
        )
    return scheduler


def by_gate(
    scheduler: str, limits: Limits, arrivals: list[Arrival]
) -> dict[int, float]:
    set_time(START_S)
    gate = NativeGate(new_scheduler(scheduler), limits, NAMES)

    def sent_now(now: float) -> list[Request]:
        if gate.wake_s <= now:
            gate.dispatch()
        return gate.released()

    return play(
        arrivals,
        lambda request, _: gate.arrive(request),
        lambda request, _: gate.complete(request, request.size_bytes),
        sent_now,
        lambda: gate.wake_s,
    )


def by_objects(
    scheduler: str, limits: Limits, arrivals: list[Arrival]
) -> dict[int, float]:
    made = new_scheduler(scheduler)
    cascade = Cascade(made, NativeLimiter(limits, START_S))
    return play(
        arrivals,
        made.arrive,
        cascade.complete,
        cascade.dispatch,
        lambda: cascade.wake_s,
    )


@pytest.mark.parametrize(
    "limits", [Limits(total=RATE), Limits()], ids=["limit", "none"]
)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@settings(max_examples=20, deadline=None)
@given(arrivals=arrivals_of("read", "write", "sync"))
@example(arrivals=[(t, "tight", "read", size) for t, size in WINDOWS])
def test_the_gate_decides_like_the_objects_of_the_simulator(
    scheduler: str, limits: Limits, arrivals: list[Arrival]
) -> None:
    actual = by_gate(scheduler, limits, arrivals)
    expected = by_objects(scheduler, limits, arrivals)
    assert actual == pytest.approx(expected, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(arrivals=arrivals_of("metadata", "metadata", "urgent"))
def test_metadata_is_ordered_like_the_objects_of_the_simulator(
    arrivals: list[Arrival],
) -> None:
    # Many arrive at once, and some are so slow that their application is stuck.
    dense = [(time // 10, *rest) for time, *rest in arrivals]
    actual = by_gate(METADATA, Limits(), dense)
    assert actual == pytest.approx(by_objects(METADATA, Limits(), dense), abs=1e-9)


def test_requests_in_the_limiter_are_outstanding_for_the_scheduler() -> None:
    set_time(0.0)
    scheduler = get_scheduler("fifo:depth=2").make(SLOS, 0.0)
    gate = NativeGate(scheduler, Limits(total=1000.0), NAMES)
    for _ in range(5):
        gate.arrive(Request("write", 1000, "bulk"))
    assert gate.released() == []
    assert (scheduler.outstanding, scheduler.waiting) == (2, 3)
    assert (gate.waiting_of(None), gate.waiting_of("bulk")) == (5, 5)
    assert gate.wake_s == pytest.approx(1.0)


@pytest.mark.parametrize(("kind", "passes"), [("sync", True), ("write", False)])
def test_only_requests_that_move_data_pass_the_limiter(
    kind: Kind, passes: bool
) -> None:
    set_time(0.0)
    scheduler = get_scheduler("fifo").make(SLOS, 0.0)
    gate = NativeGate(scheduler, Limits(total=1000.0), NAMES)
    request = Request(kind, 1000 if kind == "write" else 0, "bulk")
    gate.arrive(request)
    assert gate.released() == ([request] if passes else [])


def test_many_writers_move_exactly_the_limit() -> None:
    set_time(0.0)
    gate = NativeGate(None, Limits(total=100e3))
    left = 1000
    for _ in range(100):
        gate.arrive(Request("write", 1000))
    while left:
        now = gate.wake_s
        set_time(now)
        gate.dispatch()
        for request in gate.released():
            gate.complete(request, 1000)
            left -= 1
            if left >= 100:
                gate.arrive(Request("write", 1000))
    assert now == pytest.approx(10.0, abs=2 * SLACK_S)


def test_a_changed_limit_holds_for_requests_that_wait() -> None:
    set_time(0.0)
    gate = NativeGate(None, Limits(total=1.0))
    request = Request("write", 1000)
    gate.arrive(request)
    set_time(1.0)
    assert gate.released() == []
    gate.set_limits(Limits())
    assert gate.released() == [request]


def test_a_closed_gate_refuses_requests_that_wait_and_later_ones() -> None:
    set_time(0.0)
    gate = NativeGate(get_scheduler("sfq").make(SLOS, 0.0), Limits(total=1.0), NAMES)
    requests = [Request("write", 1000, "bulk") for _ in range(3)]
    for request in requests[:2]:
        gate.arrive(request)
    gate.close()
    gate.arrive(requests[2])
    assert [gate.state(request) for request in requests] == [2, 2, 2]
