# SPDX-License-Identifier: MIT
"""The late-aware queue: late requests last, yielding, what is owed, no starvation."""

from __future__ import annotations

from math import inf

import pytest

from penstock.qos import Request, Slo
from penstock.qos.late_aware import LAG_S, LATE_TURN, ClassQueue
from penstock.qos.promises import PromiseQueue


def late_queue() -> PromiseQueue:
    """Return a queue for half the capacity needed; a request takes 10 ms below."""
    queue = PromiseQueue({"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)}, shared_storage=False)
    queue.capacity_over_promises = 0.5
    for name in "ab":
        queue.queue_of(name).lower_level_s = 0.01
    return queue


def put(queue: PromiseQueue, name: str, arrived: float, number: int) -> None:
    request = Request("write", 50_000, name, number)
    request.arrived_s, request.deadline_s = arrived, arrived + 0.1
    queue.push(request)


def test_a_request_that_can_be_in_time_goes_before_late_ones() -> None:
    queue = late_queue()
    for number, arrived in enumerate((0.0, 0.0, 0.95)):
        put(queue, "a", arrived, number)
    order = [queue.pop_at(1.0, has_room=True) for _ in range(3)]
    assert [r.pid for r in order if r] == [2, 0, 1]
    assert [r.deadline_s for r in order if r] == pytest.approx([1.05, 1.1, 1.1])


def test_an_application_whose_late_requests_pile_up_yields() -> None:
    queue = late_queue()
    put(queue, "a", 0.0, 0)
    queue.pop_at(0.0, has_room=True)
    for number in range(5):  # Their cost exceeds t l + one request.
        put(queue, "a", 0.0, number)
    for number in range(3):
        put(queue, "b", 1.0, 10 + number)
    first = [queue.pop_at(1.0, has_room=True) for _ in range(3)]
    assert [r and r.application for r in first] == ["b", "b", "b"]
    assert queue.pop_at(1.0, has_room=False) is None
    rest = [queue.pop_at(1.0, has_room=True) for _ in range(5)]
    assert [r and r.pid for r in rest] == [0, 1, 2, 3, 4]
    assert queue.pop_at(1.0, has_room=True) is None


def test_a_yielding_application_is_owed_at_most_the_lag() -> None:
    """B gets 1 s of its throughput, 20 requests, then A as much, to catch up."""
    queue = late_queue()
    put(queue, "a", 0.0, 0)
    queue.pop_at(0.0, has_room=True)
    for number in range(30):
        put(queue, "a", 0.0, number)
    for number in range(60):
        put(queue, "b", 9.95, number)
    order = ""
    for _ in range(40):
        request = queue.pop_at(10.0, has_room=True)
        assert request is not None
        order += request.application
    assert order.index("a") in range(19, 25)
    assert set(order[order.index("a") :]) == {"a"}
    assert len(order) - order.index("a") in range(16, 22)


def test_with_enough_capacity_no_request_is_late() -> None:
    queue = late_queue()
    queue.capacity_over_promises = 1.0
    for number, arrived in enumerate((0.0, 0.0, 0.95)):
        put(queue, "a", arrived, number)
    order = [queue.pop_at(1.0, has_room=False) for _ in range(3)]
    assert [r and r.pid for r in order] == [0, 1, 2]
    assert [r and r.deadline_s for r in order] == pytest.approx([0.1, 0.1, 1.05])


def test_one_turn_in_40_serves_a_late_request() -> None:
    queue = ClassQueue("a", Slo(1e6, 0.1))
    late, in_time = (Request("write", 50_000, "a", pid) for pid in (1, 2))
    queue.late.append(late)
    for turn in range(1, LATE_TURN):
        queue.requests.append(in_time)
        assert queue.take(5.0, late_last=True) is in_time, turn
    queue.requests.append(in_time)
    assert queue.take(5.0, late_last=True) is late
    assert late.deadline_s == pytest.approx(5.1)


def test_lateness_assumes_at_most_half_the_latency_below_the_upper_level() -> None:
    """A measured time of 10 s must not make every request late."""
    queue = ClassQueue("a", Slo(1e6, 0.1))
    queue.lower_level_s = 10.0
    for pid, deadline_s in enumerate((1.04, 1.06)):
        request = Request("write", 50_000, "a", pid)
        request.deadline_s = deadline_s
        queue.requests.append(request)
    queue.move_late_requests(1.0)
    assert [r.pid for r in queue.late] == [0]
    assert [r.pid for r in queue.requests] == [1]


def test_a_queue_that_catches_up_yields_again_only_when_nothing_is_owed() -> None:
    queue = ClassQueue("a", Slo(1e6, 0.1))
    queue.last_cost_bytes = 50_000
    queue.late.extend(Request("write", 50_000, "a") for _ in range(10))
    assert queue.yields(LAG_S)
    assert not queue.yields(LAG_S + 0.1)
    assert not queue.yields(0.5)
    assert queue.yields(0.0)


def test_an_empty_queue_has_no_next_request() -> None:
    queue = late_queue()
    put(queue, "a", 0.0, 7)
    request = queue.pop_at(0.0, has_room=True)
    assert request is not None
    assert request.pid == 7
    assert queue.pop_at(inf, has_room=True) is None
