# SPDX-License-Identifier: MIT
"""Earliest deadline first, and order of arrival among equal deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.qos import Request, Slo, get_scheduler

LATENCY = {"a": 0.1, "b": 0.3, "c": 0.5}
SLOS = {name: Slo(1e6, latency) for name, latency in LATENCY.items()}


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.1, 0.2])), max_size=40
    )
)
def test_requests_go_by_deadline_then_by_arrival(
    script: list[tuple[str, float]],
) -> None:
    scheduler = get_scheduler("edf:depth=1").make(SLOS, 0.0)
    blocker = Request("write", 1, "a")
    scheduler.arrive(blocker, 0.0)
    scheduler.dispatch(0.0)
    now, due = 0.0, []
    for number, (application, gap) in enumerate(script):
        now += gap
        request = Request("read", 1, application, number)
        scheduler.arrive(request, now)
        due.append((now + LATENCY[application], number))
    order = []
    request = blocker
    for _ in script:
        scheduler.complete(request, 1, now)
        (request,) = scheduler.dispatch(now)
        order.append(request.pid)
    assert order == [number for _, number in sorted(due)]


def test_a_changed_latency_holds_for_later_arrivals() -> None:
    scheduler = get_scheduler("edf:depth=1").make(SLOS, 0.0)
    first, second, third = (Request("read", 1, name) for name in "aab")
    scheduler.arrive(first, 0.0)
    assert scheduler.dispatch(0.0) == [first]
    scheduler.set_slos({"a": Slo(1e6, 2.0), "b": Slo(1e6, 1.0)}, 1.0)
    scheduler.arrive(second, 1.0)
    scheduler.arrive(third, 1.0)
    scheduler.complete(first, 1, 1.0)
    assert scheduler.dispatch(1.0) == [third]
