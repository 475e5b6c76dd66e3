# SPDX-License-Identifier: MIT
"""First come, first served: order of arrival, with and without a depth."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from penstock.qos import Request, Slo, get_scheduler

SLOS = {"a": Slo(1e6, 0.1), "b": Slo(9e6, 0.001)}


def requests(applications: list[str]) -> list[Request]:
    return [Request("read", 1, name, pid) for pid, name in enumerate(applications)]


@given(st.lists(st.sampled_from(["a", "b", "unnamed"]), max_size=30))
def test_without_a_depth_requests_are_sent_at_once(applications: list[str]) -> None:
    scheduler = get_scheduler("fifo").make(SLOS, 0.0)
    arriving = requests(applications)
    for request in arriving:
        scheduler.arrive(request, 1.0)
    assert scheduler.dispatch(1.0) == arriving
    assert scheduler.outstanding == len(arriving)
    assert (scheduler.waiting, scheduler.wake_s) == (0, inf)


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=30), st.integers(1, 4))
def test_with_a_depth_the_order_is_the_same(
    applications: list[str], depth: int
) -> None:
    scheduler = get_scheduler(f"fifo:depth={depth}").make(SLOS, 0.0)
    arriving = requests(applications)
    for request in arriving:
        scheduler.arrive(request, 0.0)
    sent: list[Request] = []
    while scheduler.waiting:
        batch = scheduler.dispatch(0.0)
        assert 0 < len(batch) <= depth
        for request in batch:
            scheduler.complete(request, 1, 0.0)
        sent += batch
    assert sent == arriving
