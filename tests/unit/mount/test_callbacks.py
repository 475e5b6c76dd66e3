# SPDX-License-Identifier: MIT
"""Schedulers written in Python, called by the data path: slots, errors."""

from __future__ import annotations

import logging
from collections import deque
from fractions import Fraction
from math import inf

import pytest

from penstock.mount.callbacks import ErrorLog, SchedulerCallbacks
from penstock.mount.limits import Limits
from penstock.qos import QosScheduler, Request
from support.native_mount import NativeGate, set_time


class LastFirst:
    """Sends the newest request first, one at a time."""

    def __init__(self) -> None:
        self.queue: deque[Request] = deque()
        self.seen: list[tuple[str, str, int]] = []
        self.completed: list[int] = []
        self.outstanding = 0

    @property
    def wake_s(self) -> float:
        return inf

    def arrive(self, request: Request, now: float) -> None:
        self.seen.append((request.kind, request.application, request.size_bytes))
        self.queue.appendleft(request)

    def dispatch(self, now: float) -> list[Request]:
        if self.outstanding or not self.queue:
            return []
        self.outstanding += 1
        return [self.queue.popleft()]

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        self.outstanding -= 1
        self.completed.append(moved_bytes)


class FailsLater(LastFirst):
    """Fails in one of its methods when it is told to."""

    failing = ""

    def _check(self, method: str) -> None:
        if self.failing == method:
            raise ZeroDivisionError(f"a bug in {method}")

    def arrive(self, request: Request, now: float) -> None:
        self._check("arrive")
        super().arrive(request, now)

    def dispatch(self, now: float) -> list[Request]:
        self._check("dispatch")
        return super().dispatch(now)

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        self._check("complete")
        super().complete(request, moved_bytes, now)

    @property
    def wake_s(self) -> float:
        self._check("wake_s")
        return inf


def gate_of(scheduler: object) -> NativeGate:
    set_time(0.0)
    made: QosScheduler = scheduler  # type: ignore[assignment]
    return NativeGate(made, Limits(), ["a", "b"])


def test_the_scheduler_sees_requests_and_decides_their_order() -> None:
    scheduler = LastFirst()
    gate = gate_of(scheduler)
    requests = [
        Request("read", 10, "a"),
        Request("write", 20, "b"),
        Request("sync", 0, "a"),
        Request("read", 30, "b"),
    ]
    for request in requests:
        gate.arrive(request)
    assert scheduler.seen == [
        ("read", "a", 10),
        ("write", "b", 20),
        ("sync", "a", 0),
        ("read", "b", 30),
    ]
    order = []
    for number in range(4):
        (request,) = gate.released()
        order.append(requests.index(request))
        gate.complete(request, number)
    assert order == [0, 3, 2, 1]
    assert scheduler.completed == [0, 1, 2, 3]


def test_a_scheduler_is_told_the_kind_of_a_request() -> None:
    """The numbers are those of the data path (enum kind of gate.h)."""
    scheduler = LastFirst()
    callbacks = SchedulerCallbacks(scheduler)  # type: ignore[arg-type]
    index = callbacks.index_of("a")
    for kind in range(5):
        callbacks._arrive(None, index, kind, 0, 0.0)
    requests = list(reversed(scheduler.queue))
    told = [(request.kind, request.is_urgent) for request in requests]
    kinds = ["read", "write", "sync", "metadata"]
    assert told == [*((kind, False) for kind in kinds), ("metadata", True)]
    assert [request.kind_number for request in requests] == list(range(5))


def test_slots_are_used_again() -> None:
    callbacks = SchedulerCallbacks(LastFirst())  # type: ignore[arg-type]
    index = callbacks.index_of("a")
    for _ in range(100):
        slot = callbacks._arrive(None, index, 1, 10, 0.0)
        assert slot == 0
        assert (callbacks._next(None, 0.0), callbacks._next(None, 0.0)) == (0, -1)
        callbacks._complete(None, slot, 10, 0.0)
    assert callbacks.index_of("b") == 1
    assert callbacks.index_of("a") == 0


@pytest.mark.parametrize("method", ["arrive", "dispatch", "complete", "wake_s"])
def test_a_scheduler_that_fails_is_logged_and_all_requests_go(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = FailsLater()
    gate = gate_of(scheduler)
    requests = [Request("write", 10, "a") for _ in range(6)]
    for request in requests[:5]:
        gate.arrive(request)
    (first,) = gate.released()
    scheduler.failing = method
    with caplog.at_level(logging.ERROR):
        if method == "arrive":
            gate.arrive(requests[5])
        gate.complete(first, 10)
        if gate.wake_s <= 1.0:
            set_time(1.0)
            gate.dispatch()
    assert len(gate.released()) == (5 if method == "arrive" else 4)
    assert gate.waiting == []
    assert caplog.text.count("ZeroDivisionError: a bug in") == 1
    late = Request("write", 10, "b")
    gate.arrive(late)
    assert gate.released() == [late]
    gate.complete(late, 10)


def test_an_error_ends_in_its_block_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors = ErrorLog("a rule")
    for _ in range(3):
        with errors:
            raise ValueError("wrong")
    assert errors.failed
    assert caplog.text.count("a rule failed") == 1


def test_a_wake_up_time_may_be_any_number(caplog: pytest.LogCaptureFixture) -> None:
    class Whole(LastFirst):
        wake_s = Fraction(5)  # type: ignore[assignment]

    gate = gate_of(Whole())
    gate.arrive(Request("write", 10, "a"))
    assert gate.wake_s == 5.0
    assert caplog.text == ""
