# SPDX-License-Identifier: MIT
"""A scheduler in front of a limiter: order, total rate, wake-ups, syncs."""

from __future__ import annotations

from math import inf

import pytest

from penstock.mount.cascade import Cascade
from penstock.mount.limiter import Limiter, Limits
from penstock.qos import Kind, QosScheduler, Request, Slo, get_scheduler

SLOS = {"a": Slo(1e6, 0.1), "b": Slo(1e6, 10.0)}


def cascade(scheduler: str, limits: Limits) -> tuple[QosScheduler, Limiter, Cascade]:
    ordering, limiter = get_scheduler(scheduler).make(SLOS, 0.0), Limiter(limits, 0.0)
    return ordering, limiter, Cascade(ordering, limiter)


def test_requests_in_the_limiter_are_outstanding_for_the_scheduler() -> None:
    scheduler, limiter, both = cascade("fifo:depth=2", Limits(total=1000.0))
    for pid in range(5):
        both.arrive(Request("write", 1000, "a", pid), 0.0)
    assert both.dispatch(0.0) == []
    assert (scheduler.outstanding, scheduler.waiting, limiter.waiting) == (2, 3, 2)
    assert both.wake_s == pytest.approx(1.0)


def test_the_scheduler_reorders_what_is_not_yet_in_the_limiter() -> None:
    """Depth 1: of the requests that wait, the tight deadline goes first."""
    _, _, both = cascade("edf:depth=1", Limits(total=1000.0))
    for pid, application in enumerate("bba"):
        both.arrive(Request("write", 1000, application, pid), 0.0)
        both.dispatch(0.0)
    order = []
    for second in (1.0, 2.0, 3.0):
        (request,) = both.dispatch(second)
        order.append(request.pid)
        both.complete(request, 1000, second)
        both.dispatch(second)
    assert order == [0, 2, 1]


@pytest.mark.parametrize(("kind", "passes"), [("sync", True), ("write", False)])
def test_only_requests_that_move_data_pass_the_limiter(
    kind: Kind, passes: bool
) -> None:
    _, limiter, both = cascade("fifo", Limits(total=1000.0))
    request = Request(kind, 1000, "a")
    both.arrive(request, 0.0)
    assert both.dispatch(0.0) == ([request] if passes else [])
    assert limiter.waiting == (0 if passes else 1)


def test_without_a_limit_the_wake_up_is_that_of_the_scheduler() -> None:
    scheduler, _, both = cascade("two-level", Limits())
    both.arrive(Request("write", 1000, "a"), 0.0)
    assert len(both.dispatch(0.0)) == 1
    assert both.wake_s == scheduler.wake_s < inf


def test_a_completion_reaches_scheduler_and_limiter() -> None:
    """A request that moved nothing gives its bytes back to the limiter."""
    scheduler, _, both = cascade("fifo", Limits(total=1000.0))
    first, second = Request("read", 1000, "a"), Request("read", 1000, "a")
    both.arrive(first, 0.0)
    both.arrive(second, 0.0)
    both.dispatch(0.0)
    assert both.dispatch(1.0) == [first]
    both.complete(first, 0, 1.0)
    assert scheduler.outstanding == 1
    assert both.dispatch(1.0) == [second]
