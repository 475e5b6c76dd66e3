# SPDX-License-Identifier: MIT
"""Metadata operations: shares, operations that hang, urgent operations."""

from __future__ import annotations

from collections import Counter
from math import inf

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.qos import Request, Slo
from penstock.qos.metadata import MAX_DEBT, STUCK_S, MetadataScheduler
from penstock.qos.state import REQUEST_LIMIT

SLOS = {"a": Slo(3e6, 1.0), "b": Slo(1e6, 1.0), "c": Slo(1e6, 1.0)}


class Storage:
    """Operations at the storage, which the test completes."""

    def __init__(self, depth: int) -> None:
        self.scheduler = MetadataScheduler(SLOS, depth)
        self.scheduler.run_interpreted()
        self.under_way: list[Request] = []

    def arrive(
        self, applications: str, now: float = 0.0, *, is_urgent: bool = False
    ) -> str:
        """Let one operation per letter arrive; return whose operations are sent."""
        for name in applications:
            request = Request("metadata", 0, name, is_urgent=is_urgent)
            self.scheduler.arrive(request, now)
        return self.send(now)

    def send(self, now: float = 0.0) -> str:
        sent = self.scheduler.dispatch(now)
        self.under_way += sent
        return "".join(request.application for request in sent)

    def complete(self, application: str, now: float = 0.0) -> str:
        """Complete the oldest operation of an application; return those sent."""
        request = next(r for r in self.under_way if r.application == application)
        self.under_way.remove(request)
        self.scheduler.complete(request, 0, now)
        return self.send(now)


def test_operations_below_the_depth_go_at_once() -> None:
    storage = Storage(8)
    assert Counter(storage.arrive("aabbcc")) == Counter("aabbcc")
    assert storage.scheduler.wake_s == inf


@pytest.mark.parametrize("depth", [1, 4, 8])
def test_applications_are_served_in_the_ratio_of_their_throughputs(depth: int) -> None:
    storage = Storage(depth)
    storage.arrive("a" * 400 + "b" * 400)
    served = Counter("")
    while served.total() < 200:
        first = storage.under_way[0].application
        served.update(first)
        storage.complete(first)
    assert served["a"] / served["b"] == pytest.approx(3.0, abs=0.5)


def test_one_operation_at_a_time_alternates_with_many() -> None:
    storage = Storage(1)
    storage.arrive("c" * 50)
    order = ""
    for _ in range(10):
        storage.arrive("b")
        order += storage.complete(storage.under_way[0].application)
    assert "cc" not in order


def test_an_application_never_has_all_places_at_the_storage() -> None:
    storage = Storage(4)
    assert storage.arrive("a" * 10) == "aaa"
    assert storage.arrive("b") == "b"
    # Its operations go on as soon as one is complete.
    assert storage.complete("a") == "a"


def test_operations_that_hang_do_not_count_after_a_while() -> None:
    storage = Storage(2)
    assert storage.arrive("ab") == "ab"
    assert storage.arrive("c", 0.01) == ""
    wake_s = storage.scheduler.wake_s
    assert wake_s == pytest.approx(STUCK_S)
    assert storage.send(wake_s) == "c"
    assert storage.complete("c", wake_s) == ""
    assert storage.arrive("c", wake_s + 1.0) == "c"


def test_an_application_that_hangs_gets_no_more_places() -> None:
    storage = Storage(3)
    assert storage.arrive("aaaa") == "aa"
    assert storage.arrive("bb") == "b"
    assert storage.arrive("a", 5.0) == "b"
    assert storage.scheduler.outstanding == 4
    # Now it counts again, so that only its own next operation goes.
    assert storage.complete("a", 5.0) == "a"


def test_urgent_operations_go_at_once_and_are_charged_while_others_wait() -> None:
    storage = Storage(8)
    storage.arrive("aaaaaaab")
    assert storage.arrive("b" * 9) == ""
    assert storage.arrive("cccc", is_urgent=True) == "cccc"
    storage.arrive("c")
    assert "".join(storage.complete("a") for _ in range(7)) == "bbbbcbb"


def test_urgent_operations_are_not_charged_later_if_nobody_waited() -> None:
    storage = Storage(8)
    storage.arrive("c" * 900, is_urgent=True)
    assert storage.arrive("ccccbbbb") == "bcbcbcbc"


def test_urgent_operations_do_not_hide_that_their_application_is_stuck() -> None:
    storage = Storage(2)
    assert storage.arrive("ca") == "ca"
    storage.arrive("c", is_urgent=True)
    storage.arrive("b")
    urgent = storage.under_way.pop()
    storage.scheduler.complete(urgent, 0, STUCK_S)
    assert storage.send(STUCK_S) == "b"


def test_an_operation_that_waits_keeps_its_turn() -> None:
    storage = Storage(8)
    storage.arrive("aaaaaaab")
    assert storage.arrive("b" * 9 + "cc") == ""
    storage.arrive("c" * 900, is_urgent=True)
    # The second operation of c pays for the urgent ones.
    assert "".join(storage.complete("a") for _ in range(7)) == "bcbbbbb"


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 2 * MAX_DEBT), st.integers(0, MAX_DEBT)
        ),
        max_size=3,
    )
)
@example([(0, 2 * MAX_DEBT, 0)])
@example([(2, 2 * MAX_DEBT, 0)])
def test_the_next_turn_comes_soon_after_any_number_of_urgent_operations(
    steps: list[tuple[int, int, int]],
) -> None:
    storage = Storage(4)
    # The three operations of a hang, and those of b and c share the fourth place.
    assert Counter(storage.arrive("aaabb")) == Counter("aaab")
    order = "b"

    def take_turn() -> None:
        nonlocal order
        storage.arrive("b")
        order += storage.complete(order[-1])

    for ordinary, urgent, turns in steps:
        storage.arrive("c" * ordinary)
        storage.arrive("c" * urgent, is_urgent=True)
        storage.under_way = [r for r in storage.under_way if not r.is_urgent]
        for _ in range(turns):
            take_turn()
    storage.arrive("c")
    begin = len(order)
    while order.count("c") < 1 + sum(ordinary for ordinary, _, _ in steps):
        take_turn()
        assert len(order[begin:].rsplit("c", maxsplit=1)[-1]) <= MAX_DEBT + 2


def test_urgent_operations_that_wait_stay_urgent_while_the_tables_grow() -> None:
    storage = Storage(1)
    for application in ["b", *["c"] * REQUEST_LIMIT]:
        request = Request("metadata", 0, application, is_urgent=application == "b")
        storage.scheduler.arrive(request, 0.0)
    assert storage.send() == "bc"


def test_a_driver_may_number_the_applications() -> None:
    scheduler = MetadataScheduler({}, 2)
    scheduler.set_weight(2, 5e6)
    scheduler.set_weight(0, 1e6)
    assert list(scheduler.columns.weight[:3]) == [1e6, 1.0, 5e6]


@settings(max_examples=50, deadline=None)
@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 2))),
)
def test_every_operation_is_sent_once_and_none_is_left(
    depth: int, steps: list[tuple[str, bool, int]]
) -> None:
    storage, sent = Storage(depth), ""
    for name, is_urgent, completed in steps:
        sent += storage.arrive(name, is_urgent=is_urgent)
        for _ in range(min(completed, len(storage.under_way))):
            sent += storage.complete(storage.under_way[0].application)
        ordinary = (r for r in storage.under_way if not r.is_urgent)
        at_storage = Counter(request.application for request in ordinary)
        assert at_storage.total() <= depth
        assert max(at_storage.values(), default=0) <= max(1, depth - 1)
    while storage.under_way:
        sent += storage.complete(storage.under_way[0].application)
    assert Counter(sent) == Counter(name for name, _, _ in steps)
    assert storage.scheduler.waiting == storage.scheduler.outstanding == 0
