# SPDX-License-Identifier: MIT
"""The late-aware queue: late requests last, yielding, what is owed, no starvation."""

from __future__ import annotations

import pytest

from penstock.kernels import interpreted
from penstock.qos import Slo
from penstock.qos.parts import late_aware
from penstock.qos.parts.late_aware import LAG_S, LATE_TURN
from support.upper_level import UpperLevel

SIZE = 50_000


def late_queue() -> UpperLevel:
    """Return a queue for half the capacity needed; a request takes 10 ms below."""
    queue = UpperLevel({"a": Slo(1e6, 0.1), "b": Slo(1e6, 0.1)})
    queue.capacity_over_promises = 0.5
    for name in "ab":
        queue.state.lower_level_s[queue.index_of(name)] = 0.01
    return queue


def put(queue: UpperLevel, name: str, arrived: float, count: int = 1) -> list[int]:
    """Queue requests; return their slots."""
    return [queue.push(name, SIZE, arrived, arrived + 0.1) for _ in range(count)]


def pop(queue: UpperLevel, now: float, count: int) -> list[int]:
    """Return the next requests."""
    return [queue.pop(now, has_room=True) for _ in range(count)]


def test_a_request_that_can_be_in_time_goes_before_late_ones() -> None:
    queue = late_queue()
    first, second = put(queue, "a", 0.0, 2)
    (in_time,) = put(queue, "a", 0.95)
    order = pop(queue, 1.0, 3)
    assert order == [in_time, first, second]
    deadlines_s = [queue.state.deadline_s[slot] for slot in order]
    assert deadlines_s == pytest.approx([1.05, 1.1, 1.1])


def test_an_application_whose_late_requests_pile_up_yields() -> None:
    queue = late_queue()
    put(queue, "a", 0.0)
    pop(queue, 0.0, 1)
    late = put(queue, "a", 0.0, 5)  # Their cost exceeds t l + one request.
    in_time = put(queue, "b", 1.0, 3)
    assert pop(queue, 1.0, 3) == in_time
    assert queue.pop(1.0, has_room=False) < 0
    assert pop(queue, 1.0, 6) == [*late, -1]


def test_a_yielding_application_is_owed_at_most_the_lag() -> None:
    """B gets 1 s of its throughput, 20 requests, then A as much, to catch up."""
    queue = late_queue()
    put(queue, "a", 0.0)
    pop(queue, 0.0, 1)
    put(queue, "a", 0.0, 30)
    put(queue, "b", 9.95, 60)
    order = "".join(map(queue.name_of, pop(queue, 10.0, 40)))
    assert order.index("a") in range(19, 25)
    assert set(order[order.index("a") :]) == {"a"}
    assert len(order) - order.index("a") in range(16, 22)


def test_of_several_yielding_applications_the_longest_bound_goes_first() -> None:
    """Among equal bounds, the application that is owed most."""
    bounds_s = {"a": 0.1, "b": 0.2, "c": 0.2}
    queue = UpperLevel({name: Slo(1e6, bound) for name, bound in bounds_s.items()})
    queue.capacity_over_promises = 0.5
    for tag, name in enumerate("bca"):
        i = queue.index_of(name)
        queue.state.lower_level_s[i] = 0.01
        queue.state.finish_tag[i] = 0.01 * tag
        put(queue, name, 0.0, 9)
        queue.state.last_cost_bytes[i] = SIZE
    order = [queue.state.application[slot] for slot in pop(queue, 9.0, 27)]
    assert order[:2] == [queue.index_of("b"), queue.index_of("c")]
    assert order[-1] == queue.index_of("a")


def test_with_enough_capacity_no_request_is_late() -> None:
    queue = late_queue()
    queue.capacity_over_promises = 1.0
    slots = [*put(queue, "a", 0.0, 2), *put(queue, "a", 0.95)]
    assert [queue.pop(1.0, has_room=False) for _ in range(3)] == slots
    deadlines_s = [queue.state.deadline_s[slot] for slot in slots]
    assert deadlines_s == pytest.approx([0.1, 0.1, 1.05])


def test_one_turn_in_40_serves_a_late_request() -> None:
    queue = late_queue()
    (late,) = put(queue, "a", 0.0)
    interpreted(late_aware.move_late)(queue.state, 0, 5.0)
    take = interpreted(late_aware.take_request)
    for turn in range(1, LATE_TURN):
        (in_time,) = put(queue, "a", 5.0)
        assert take(queue.state, 0, 5.0, True) == in_time, turn
    put(queue, "a", 5.0)
    assert take(queue.state, 0, 5.0, True) == late
    assert queue.state.deadline_s[late] == pytest.approx(5.1)


def test_lateness_assumes_at_most_half_the_latency_below_the_upper_level() -> None:
    """A measured time of 10 s must not make every request late."""
    queue = late_queue()
    queue.state.lower_level_s[0] = 10.0
    late = queue.push("a", SIZE, 0.94, 1.04)
    in_time = queue.push("a", SIZE, 0.96, 1.06)
    interpreted(late_aware.move_late)(queue.state, 0, 1.0)
    assert (queue.state.late_first[0], queue.state.late_count[0]) == (late, 1)
    assert queue.state.first[0] == in_time


def test_a_queue_that_catches_up_yields_again_only_when_nothing_is_owed() -> None:
    queue = late_queue()
    put(queue, "a", 0.0, 10)
    queue.state.last_cost_bytes[0] = SIZE
    interpreted(late_aware.move_late)(queue.state, 0, 5.0)
    yields = interpreted(late_aware.yields)
    assert yields(queue.state, 0, LAG_S)
    assert not yields(queue.state, 0, LAG_S + 0.1)
    assert not yields(queue.state, 0, 0.5)
    assert yields(queue.state, 0, 0.0)


def test_an_empty_queue_has_no_next_request() -> None:
    queue = late_queue()
    (slot,) = put(queue, "a", 0.0)
    assert pop(queue, 0.0, 2) == [slot, -1]
