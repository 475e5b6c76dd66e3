# SPDX-License-Identifier: MIT
"""Send the earliest deadline first, at a fixed depth (EDF).

Rule
    A request of application i that arrives at time a has the deadline a + l_i. The
    earliest deadline goes first; among equal deadlines, the request queued first.

Parameters
    depth
        Requests at the storage at once; 0: any number. Default 8.

Properties
    O(log n) per request, with n queued requests. On a storage that serves one request
    after the other, EDF meets all deadlines if any order does. Under overload all
    applications are late by the same time, because EDF does not know shares. No request
    starves: only requests that arrive less than l_i - min_j l_j later can overtake it.

Source
    Two-level scheduling, section 3.2 (its lower level, used alone).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.columns import Heap, heap_put, heap_remove
from penstock.kernels import kernel, part
from penstock.qos.credit.stage import finish_request, next_passed, passes
from penstock.qos.interface import Guarantees, Slo
from penstock.qos.scheduler import (
    DEFAULT_DEPTH,
    Kernels,
    KernelScheduler,
    depth_parameter,
)
from penstock.qos.state import (
    WAITING,
    SchedulerState,
    add_request,
    columns,
    has_room,
    next_number,
    send_request,
)

__all__ = [
    "KERNELS",
    "PARAMETERS",
    "arrive",
    "complete",
    "make",
    "next_request",
    "pop_earliest",
    "push_by_deadline",
]

PARAMETERS: Final = (depth_parameter(DEFAULT_DEPTH),)


@part
def _deadlines(state: SchedulerState) -> Heap:
    """Return the heap of requests by deadline."""
    return Heap(state.by_deadline, state.deadline_place, state.deadline_s, state.serial)


@part
def push_by_deadline(state: SchedulerState, slot: int) -> None:
    """Queue a request whose deadline is set, behind those with the same deadline."""
    state.serial[slot] = next_number(state)
    heap_put(_deadlines(state), slot)


@part
def pop_earliest(state: SchedulerState) -> int:
    """Remove and return the request with the earliest deadline."""
    slot = state.by_deadline[1]
    heap_remove(_deadlines(state), slot)
    return slot


@part
def _queue(state: SchedulerState, slot: int, now: float) -> None:
    """Queue a request that has credit, with the deadline now + l_i."""
    state.deadline_s[slot] = now + state.latency_s[state.application[slot]]
    push_by_deadline(state, slot)


@kernel
def arrive(
    table: SchedulerState,
    application: int,
    kind: int,  # noqa: ARG001
    cost_bytes: int,
    now: float,
) -> int:
    """Queue a request with the deadline now + l_i; return its slot, or -1."""
    state = columns(table)
    slot = add_request(state, application, cost_bytes)
    if slot >= 0 and passes(state, slot, now):
        _queue(state, slot, now)
    return slot


@kernel
def next_request(table: SchedulerState, now: float) -> int:
    """Return the request with the earliest deadline; -1 if none may be sent."""
    state = columns(table)
    passed = next_passed(state, now)
    while passed >= 0:
        _queue(state, passed, now)
        passed = next_passed(state, now)
    if state.counter[WAITING] == 0 or not has_room(state):
        return -1
    slot = pop_earliest(state)
    state.counter[WAITING] -= 1
    send_request(state, slot, now)
    return slot


@kernel
def complete(table: SchedulerState, slot: int, moved_bytes: int, now: float) -> None:
    """Remove a completed request."""
    finish_request(columns(table), slot, moved_bytes, now)


KERNELS: Final = Kernels(arrive, next_request, complete)


def make(slos: Mapping[str, Slo], now: float, depth: float) -> KernelScheduler:  # noqa: ARG001
    """Return a scheduler that starts at `now`."""
    return KernelScheduler(KERNELS, slos, Guarantees(deadlines=True), depth=depth)
