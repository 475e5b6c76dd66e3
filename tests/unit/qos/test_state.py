# SPDX-License-Identifier: MIT
"""The tables of a scheduler: room for requests and applications, and growth."""

from __future__ import annotations

import pytest

from penstock.errors import InternalError
from penstock.kernels import interpreted, memory
from penstock.qos import MIN_COST_BYTES, Request, Slo, get_scheduler, state
from penstock.qos.scheduler import KernelScheduler
from penstock.qos.state import APPLICATIONS, REFUSED, new_state

SLOS = {"a": Slo(1e6, 0.1)}


def fifo() -> KernelScheduler:
    scheduler = get_scheduler("fifo:depth=1").make(SLOS, 0.0)
    assert isinstance(scheduler, KernelScheduler)
    scheduler.run_interpreted()
    return scheduler


def test_a_request_without_room_is_refused_and_counted() -> None:
    table = memory(new_state(requests=2, applications=1))
    add = interpreted(state.add_request)
    assert add(table, 0, 5000) == -1  # There is no application yet.
    table.counter[APPLICATIONS] = 1
    assert [add(table, 0, 5000) for _ in range(3)] == [0, 1, -1]
    assert [add(table, i, 5000) for i in (-1, 1)] == [-1, -1]
    assert table.counter[REFUSED] == 4


def test_the_slot_of_a_completed_request_is_used_again() -> None:
    table = memory(new_state(requests=2, applications=1))
    table.counter[APPLICATIONS] = 1
    add, free = interpreted(state.add_request), interpreted(state.free_request)
    first, second = add(table, 0, 0), add(table, 0, 9000)
    assert table.cost_bytes[first] == MIN_COST_BYTES
    assert free(table, second, 5000) == 4000
    assert add(table, 0, 0) == second


def test_in_a_simulation_the_tables_grow_and_nothing_is_lost() -> None:
    scheduler = fifo()
    requests = [Request("read", 1, f"job{k % 1500}") for k in range(5000)]
    for request in requests:
        scheduler.arrive(request, 0.0)
    sent = []
    while scheduler.waiting:
        (request,) = scheduler.dispatch(0.0)
        scheduler.complete(request, 1, 0.0)
        sent.append(request)
    assert sent == requests
    assert scheduler.refused == 0
    assert len(scheduler.served_bytes) == 1500


def test_the_tables_of_a_mount_do_not_grow() -> None:
    """Compiled code holds their addresses: requests beyond them pass unscheduled."""
    scheduler = fifo()
    scheduler.pointers()
    limit = state.APPLICATION_LIMIT
    indexes = [scheduler.index_of(f"job{k}") for k in range(limit)]
    assert indexes == [*range(1, limit), -1]
    assert scheduler.index_of("a") == 0
    scheduler.record_remote_service("other", {"unknown": 1e6}, 0.0)
    for _ in range(state.REQUEST_LIMIT):
        scheduler.arrive(Request("read", 1, "a"), 0.0)
    with pytest.raises(InternalError, match="cannot grow"):
        scheduler.arrive(Request("read", 1, "a"), 0.0)
