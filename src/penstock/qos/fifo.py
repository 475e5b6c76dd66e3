# SPDX-License-Identifier: MIT
"""Send requests in order of arrival.

Rule
    First come, first served. The number of requests at the storage is not limited
    unless a depth is set. This is how a storage without a scheduler behaves.

Parameters
    depth
        Requests at the storage at once; 0, the default: any number.

Properties
    O(1) per request. The application that issues most requests gets most service.

Source
    The baseline ("native") of two-level scheduling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.kernels import kernel
from penstock.qos.credit.stage import finish_request, next_passed, passes
from penstock.qos.interface import Guarantees, Slo
from penstock.qos.scheduler import Kernels, KernelScheduler, depth_parameter
from penstock.qos.state import (
    WAITING,
    SchedulerState,
    add_request,
    columns,
    has_room,
    queue_request,
    send_request,
    unqueue_request,
)

__all__ = ["KERNELS", "PARAMETERS", "arrive", "complete", "make", "next_request"]

PARAMETERS: Final = (depth_parameter(0),)

#: The queue of all applications.
_QUEUE: Final = 0


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
        queue_request(state, _QUEUE, slot)
    return slot


@kernel
def next_request(table: SchedulerState, now: float) -> int:
    """Return the oldest queued request; -1 if there is none or no room for it."""
    state = columns(table)
    passed = next_passed(state, now)
    while passed >= 0:
        queue_request(state, _QUEUE, passed)
        passed = next_passed(state, now)
    if state.counter[WAITING] == 0 or not has_room(state):
        return -1
    slot = unqueue_request(state, _QUEUE)
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
    return KernelScheduler(KERNELS, slos, Guarantees(), depth=depth)
