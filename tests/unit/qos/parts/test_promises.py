# SPDX-License-Identifier: MIT
"""The promise clock, and the order of requests."""

from __future__ import annotations

import pytest

from penstock.qos import Slo
from penstock.qos.parts.late_aware import LAG_S
from support.upper_level import UpperLevel

#: A request is 1/8 s of A's promise and 1/4 s of B's, exactly.
SLOS = {"a": Slo(1e6, 1.0), "b": Slo(0.5e6, 1.0)}
SIZE = 125_000


def new_queue() -> UpperLevel:
    return UpperLevel(SLOS)


def put(queue: UpperLevel, name: str, now: float, count: int = 1) -> None:
    for _ in range(count):
        queue.push(name, SIZE, now, now + 1.0)


def taken(queue: UpperLevel, now: float, *, has_room: bool = False) -> str:
    """Return the applications of all requests that may go now, in order."""
    order = ""
    while (slot := queue.pop(now, has_room=has_room)) >= 0:
        order += queue.name_of(slot)
    return order


def promise_s(queue: UpperLevel, name: str) -> float:
    """Return the promise clock of an application."""
    return queue.state.promise_s[queue.index_of(name)]


def test_an_idle_application_has_saved_one_second_of_its_promise() -> None:
    """A: 8 requests of 1/8 s, and one that begins at R = now."""
    queue = new_queue()
    put(queue, "a", 5.0, 40)
    assert taken(queue, 5.0) == "a" * 9
    assert taken(queue, 5.1) == ""
    assert taken(queue, 5.0 + 0.38) == "a" * 3


def test_the_application_that_is_owed_most_goes_first() -> None:
    """Both save 1 s; then each request moves A by 1/8 s and B by 1/4 s: 2 to 1."""
    queue = new_queue()
    put(queue, "a", 0.0, 40)
    put(queue, "b", 0.0, 40)
    order = taken(queue, 0.0)
    assert len(order) == 14
    assert order[:6].count("a") == 4
    assert order.count("a") == 9


def test_service_beyond_the_promise_does_not_move_the_clock() -> None:
    queue = new_queue()
    put(queue, "a", 0.0, 80)
    within = len(taken(queue, 0.0))
    for _ in range(30):
        assert queue.pop(0.0, has_room=True) >= 0
    assert within == 9
    assert promise_s(queue, "a") == pytest.approx(0.125)


def test_beyond_the_promises_start_tags_decide() -> None:
    """What both had within their promises counts in the tags."""
    queue = new_queue()
    put(queue, "a", 0.0, 90)
    put(queue, "b", 0.0, 60)
    taken(queue, 0.0)
    order = [queue.pop(0.0, has_room=True) for _ in range(30)]
    names = [queue.name_of(slot) for slot in order]
    assert names.count("a") == pytest.approx(20, abs=1)


def test_service_elsewhere_counts_for_the_promise() -> None:
    """0.5 MB are 0.5 s of A's promise; more than 1 s ahead is not counted."""
    queue = new_queue()
    put(queue, "a", 10.0)
    start = promise_s(queue, "a")
    queue.report("other", "a", 0.5e6, 10.0)
    assert promise_s(queue, "a") == pytest.approx(start + 0.5)
    queue.report("other", "a", 90e6, 10.0)
    assert promise_s(queue, "a") == pytest.approx(10.0 + LAG_S)
    assert queue.pop(10.0, has_room=False) < 0
    assert queue.pop(10.0, has_room=True) >= 0


def test_what_an_application_is_owed_is_bounded() -> None:
    queue = new_queue()
    put(queue, "a", 0.0, 50)
    assert queue.pop(100.0, has_room=False) >= 0
    assert promise_s(queue, "a") == pytest.approx(100.0 - 2 * LAG_S + 0.125)


def test_rivals_are_there_until_a_time() -> None:
    queue = new_queue()
    assert not queue.has_rivals(0.0)
    queue.scheduler.share_storage(2.0)
    assert queue.has_rivals(1.9)
    assert not queue.has_rivals(2.0)


def test_what_all_are_owed_is_forgiven_while_the_storage_is_short() -> None:
    queue = new_queue()
    put(queue, "a", 0.0, 5)
    put(queue, "b", 0.0, 5)
    for name, clock_s in (("a", 4.0), ("b", 7.0)):
        queue.state.promise_s[queue.index_of(name)] = clock_s
    queue.set_capacity(0.5, 10.0)
    assert promise_s(queue, "a") == pytest.approx(7.0)
    assert promise_s(queue, "b") == pytest.approx(10.0)


@pytest.mark.parametrize(("measured", "used"), [(0.94, 0.94), (0.96, 1.0), (1.5, 1.5)])
def test_95_per_cent_of_the_promises_count_as_enough(
    measured: float, used: float
) -> None:
    queue = new_queue()
    queue.set_capacity(measured, 0.0)
    assert queue.capacity_over_promises == used
