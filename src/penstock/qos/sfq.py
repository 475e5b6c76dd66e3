# SPDX-License-Identifier: MIT
"""Share throughput in proportion to the SLOs, at a fixed depth (SFQ(D), DSFQ).

Rule
    Start-time fair queueing. A request of application i with cost c (bytes) and weight
    t_i has the tags

        S = max(v, F' + d / t_i)     (start tag)
        F = S + c / t_i              (finish tag)

    where v is the virtual time (the start tag of the request sent last), F' the finish
    tag of the application's previous request, and d its service on other servers since
    that request (`penstock.qos.parts.remote_service`). The smallest start tag goes
    first; among equal tags, the tag that was assigned first.

Parameters
    depth
        D, requests at the storage at once; 0: any number. Default 8.

Properties
    O(log m) per request, with m applications that have queued requests. While i and j
    both have queued requests, the service W sent for them differs by at most one
    request each:

        |W_i / t_i - W_j / t_j| <= c_i / t_i + c_j / t_j,

    where c_i is the largest cost of a request of i. For completed service the bound is
    D + 1 times as large. No application starves. If a request fails or ends short, the
    unused part of its cost is subtracted from the cost of the application's next
    requests; the minimum cost is always charged, so that failed calls are not free.

Source
    Two-level scheduling, sections 2 and 3.1: SFQ(D) (Jin, Chase, Kaur 2004), DSFQ
    (Wang, Merchant 2007). Only the head of each application's queue has a tag. This
    gives the same order: while a request is queued, v does not pass the tags of the
    request before it.
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
    USES_LAYOUT,
    VIRTUAL_TIME,
    WAITING,
    SchedulerState,
    add_request,
    columns,
    has_room,
    next_number,
    queue_request,
    send_request,
    unqueue_request,
)

__all__ = [
    "KERNELS",
    "PARAMETERS",
    "arrive",
    "charge",
    "complete",
    "make",
    "next_request",
    "pop_by_start_tag",
    "push_by_start_tag",
    "start_tags",
    "tag_first_request",
    "take_delay_bytes",
]

PARAMETERS: Final = (depth_parameter(DEFAULT_DEPTH),)


@part
def start_tags(state: SchedulerState) -> Heap:
    """Return the heap of applications with queued requests by start tag."""
    return Heap(state.by_tag, state.tag_place, state.start_tag, state.number)


@part
def push_by_start_tag(state: SchedulerState, i: int, slot: int) -> None:
    """Queue a request of application `i`; the first one gets a start tag."""
    is_first = state.first[i] < 0
    queue_request(state, i, slot)
    if is_first:
        tag_first_request(state, i)


@part
def pop_by_start_tag(state: SchedulerState) -> int:
    """Remove, charge and return the request with the smallest start tag."""
    i = state.by_tag[1]
    slot = unqueue_request(state, i)
    charge(state, i, slot)
    if state.first[i] >= 0:
        tag_first_request(state, i)
    else:
        heap_remove(start_tags(state), i)
    return slot


@part
def tag_first_request(state: SchedulerState, i: int) -> None:
    """Assign S = max(v, F' + d / t_i) to the first queued request of `i`."""
    delay_bytes = take_delay_bytes(state, i)
    state.remote_bytes[i] += delay_bytes
    start_tag = state.finish_tag[i] + delay_bytes / state.weight[i]
    state.start_tag[i] = max(state.value[VIRTUAL_TIME], start_tag)
    state.number[i] = next_number(state)
    heap_put(start_tags(state), i)


@part
def take_delay_bytes(state: SchedulerState, i: int) -> float:
    """Return d of the next request of `i` and count it as used.

    With a layout of n servers d is n - 1 times the charge of its previous request.
    """
    if state.counter[USES_LAYOUT]:
        return float((state.layout_factor[i] - 1) * state.charged_bytes[i])
    delay_bytes = state.pending_bytes[i]
    state.pending_bytes[i] = 0.0
    return delay_bytes


@part
def charge(state: SchedulerState, i: int, slot: int) -> None:
    """Charge a request of `i` that leaves the queue: v = S, F = S + c / t_i."""
    state.counter[WAITING] -= 1
    start_tag = state.start_tag[i]
    if start_tag > state.value[VIRTUAL_TIME]:
        state.value[VIRTUAL_TIME] = start_tag
    cost_bytes = state.cost_bytes[slot]
    state.last_cost_bytes[i] = cost_bytes
    refund_bytes = min(state.unused_bytes[i], cost_bytes)
    state.unused_bytes[i] -= refund_bytes
    cost_bytes -= refund_bytes
    state.charged_bytes[i] = cost_bytes
    state.local_bytes[i] += cost_bytes
    state.finish_tag[i] = start_tag + cost_bytes / state.weight[i]


@kernel
def arrive(
    table: SchedulerState,
    application: int,
    kind: int,  # noqa: ARG001
    cost_bytes: int,
    now: float,
) -> int:
    """Queue a request; return its slot, or -1 if there is no room for it."""
    state = columns(table)
    slot = add_request(state, application, cost_bytes)
    if slot >= 0 and passes(state, slot, now):
        push_by_start_tag(state, application, slot)
    return slot


@kernel
def next_request(table: SchedulerState, now: float) -> int:
    """Return the request with the smallest start tag; -1 if none may be sent."""
    state = columns(table)
    passed = next_passed(state, now)
    while passed >= 0:
        push_by_start_tag(state, state.application[passed], passed)
        passed = next_passed(state, now)
    if state.counter[WAITING] == 0 or not has_room(state):
        return -1
    slot = pop_by_start_tag(state)
    send_request(state, slot, now)
    return slot


@kernel
def complete(table: SchedulerState, slot: int, moved_bytes: int, now: float) -> None:
    """Remove a completed request; its refund lowers the next charge."""
    state = columns(table)
    unused_bytes = finish_request(state, slot, moved_bytes, now)
    state.unused_bytes[state.application[slot]] += unused_bytes


KERNELS: Final = Kernels(arrive, next_request, complete)


def make(slos: Mapping[str, Slo], now: float, depth: float) -> KernelScheduler:  # noqa: ARG001
    """Return a scheduler that starts at `now`."""
    return KernelScheduler(KERNELS, slos, Guarantees(shares=True), depth=depth)
