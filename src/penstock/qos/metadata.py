# SPDX-License-Identifier: MIT
"""Share metadata operations in proportion to the SLOs, at a fixed depth.

A mount orders its metadata operations (look-ups, creation, removal ...) by this
scheduler, beside the scheduler of reads and writes.

Rule
    Start-time fair queueing as in `penstock.qos.sfq`: the application with the smallest
    start tag goes first, while fewer than D operations are at the storage. All
    operations cost the same, so applications that always have operations waiting are
    served in proportion to the throughputs t_i of their SLOs.

    Operations may wait for a lock of the storage, e.g. of a folder, for any time. So
    that other applications do not wait with them:

    1. An application has at most D - 1 operations at the storage (1 if D = 1). While it
       has that many, it takes no part in the order.
    2. An application is stuck if it has operations at the storage, and none of them was
       completed for `STUCK_S`. Its operations do not count towards D until one is
       completed.
    3. An urgent operation is sent at once. It does not count in rules 1 and 2, nor
       towards D. The mount says that an operation is urgent if the kernel has locked a
       folder for it that another application uses, too.

       Its application pays for it: the next turn comes later. An application pays for
       at most `MAX_DEBT` urgent operations. If no application waits for its turn, the
       virtual time becomes the start tag of the urgent operation, so there is nothing
       to pay later.

Parameters
    depth
        D, operations at the storage at once; 0: any number. Default 8.

Properties
    O(log m) per operation, with m applications that have queued operations, and O(n)
    for n applications while D operations are at the storage. An application with at
    least one operation waiting, and with fewer than D - 1 at the storage, waits for at
    most `STUCK_S`, plus its turn, however many urgent operations others send. Its turn
    comes after at most (`MAX_DEBT` + 1) t_j / t_i + 1 operations of each application j
    that always has operations waiting, however many urgent operations it has sent
    itself.

    p programs that wait for each answer have at most p of the D operations at the
    storage. Their application gets the least of its share, p / (D + 1) and (D - 1) / D
    of the service (a single program: up to 1 / D), beside one that always has
    operations waiting.

    Over several servers nothing is shared: every mount orders its own operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from penstock.columns import append_to_list, heap_remove, pop_from_list
from penstock.kernels import kernel, part
from penstock.qos.interface import URGENT_KIND, Guarantees, Slo
from penstock.qos.scheduler import (
    DEFAULT_DEPTH,
    Kernels,
    KernelScheduler,
    depth_parameter,
)
from penstock.qos.sfq import (
    pop_by_start_tag,
    start_tags,
    tag_first_request,
    take_delay_bytes,
)
from penstock.qos.state import (
    APPLICATIONS,
    DEPTH,
    OUTSTANDING,
    STUCK,
    URGENT,
    VIRTUAL_TIME,
    WAITING,
    WAKE_S,
    SchedulerState,
    add_request,
    columns,
    count_waiting,
    free_request,
    queue_request,
    send_request,
)

__all__ = [
    "KERNELS",
    "MAX_DEBT",
    "PARAMETERS",
    "STUCK_S",
    "MetadataScheduler",
    "arrive",
    "complete",
    "make",
    "next_request",
]

PARAMETERS: Final = (depth_parameter(DEFAULT_DEPTH),)

#: Without a completion for so long (s), the operations of an application are stuck.
STUCK_S: Final = 0.1
#: Most urgent operations for which an application pays with later ones.
MAX_DEBT: Final = 1000
#: Weight of an application that the driver has not named.
_FIRST_WEIGHT: Final = 1.0


@part
def _may_hold_more(state: SchedulerState, i: int) -> bool:
    """Return True if `i` may have one more operation at the storage."""
    return state.at_storage[i] == 0 or state.at_storage[i] < state.value[DEPTH] - 1


@part
def _has_room(state: SchedulerState) -> bool:
    """Return True if fewer than D operations that count are at the storage."""
    left_out = state.counter[STUCK] + state.counter[URGENT]
    return state.counter[OUTSTANDING] - left_out < state.value[DEPTH]


@part
def _update_tag(state: SchedulerState, i: int) -> None:
    """Give the queue of `i` a start tag, or remove it while rule 1 forbids to send."""
    if state.first[i] < 0 or not _may_hold_more(state, i):
        heap_remove(start_tags(state), i)
    elif state.tag_place[i] == 0:
        tag_first_request(state, i)


@part
def _mark_stuck(state: SchedulerState, now: float) -> float:
    """Mark the applications that are stuck; return when another one will be (s)."""
    wake_s = inf
    for i in range(state.counter[APPLICATIONS]):
        if state.at_storage[i] == 0 or state.stuck[i] > 0:
            continue
        stuck_s = state.completed_s[i] + STUCK_S
        if stuck_s <= now:
            state.stuck[i] = 1
            state.counter[STUCK] += state.at_storage[i]
        else:
            wake_s = min(wake_s, stuck_s)
    return wake_s


@part
def _charge_urgent(state: SchedulerState, i: int, cost_bytes: int) -> None:
    """Charge application `i` for an urgent operation, within its largest debt."""
    if state.tag_place[i] > 0:
        # The operation that waits keeps its turn, and the next one pays.
        debt_bytes = state.pending_bytes[i] + cost_bytes
        state.pending_bytes[i] = min(debt_bytes, float(MAX_DEBT * cost_bytes))
        return
    service_s = cost_bytes / state.weight[i]
    debt_s = take_delay_bytes(state, i) / state.weight[i]
    start_tag = max(state.value[VIRTUAL_TIME], state.finish_tag[i] + debt_s)
    if state.by_tag[0] == 0:
        state.value[VIRTUAL_TIME] = start_tag
    latest = state.value[VIRTUAL_TIME] + MAX_DEBT * service_s
    state.finish_tag[i] = min(start_tag + service_s, latest)


@part
def _pop_urgent(state: SchedulerState) -> int:
    """Remove, charge and return the first urgent operation."""
    slot = pop_from_list(state.urgent_first, state.link, 0)
    state.counter[WAITING] -= 1
    _charge_urgent(state, state.application[slot], state.cost_bytes[slot])
    return slot


@part
def _send(state: SchedulerState, slot: int, now: float) -> None:
    """Count an operation that is sent to the storage."""
    i = state.application[slot]
    send_request(state, slot, now)
    if state.urgent[slot] > 0:
        state.counter[URGENT] += 1
        return
    if state.at_storage[i] == 0:
        state.completed_s[i] = now
    state.at_storage[i] += 1
    state.counter[STUCK] += state.stuck[i]
    _update_tag(state, i)


@kernel
def arrive(
    table: SchedulerState,
    application: int,
    kind: int,
    cost_bytes: int,  # noqa: ARG001
    now: float,  # noqa: ARG001
) -> int:
    """Queue an operation; return its slot, or -1 if there is no room for it."""
    state = columns(table)
    slot = add_request(state, application, 0)
    if slot < 0:
        return -1
    count_waiting(state)
    state.urgent[slot] = 1 if kind == URGENT_KIND else 0
    if kind == URGENT_KIND:
        append_to_list(state.urgent_first, state.urgent_last, state.link, 0, slot)
    else:
        queue_request(state, application, slot)
        _update_tag(state, application)
    return slot


@kernel
def next_request(table: SchedulerState, now: float) -> int:
    """Return the next operation to send; -1 if none may be sent."""
    state = columns(table)
    state.value[WAKE_S] = inf
    if state.urgent_first[0] >= 0:
        slot = _pop_urgent(state)
    else:
        if state.by_tag[0] > 0 and not _has_room(state):
            state.value[WAKE_S] = _mark_stuck(state, now)
        if state.by_tag[0] == 0 or not _has_room(state):
            return -1
        slot = pop_by_start_tag(state)
    _send(state, slot, now)
    return slot


@kernel
def complete(table: SchedulerState, slot: int, moved_bytes: int, now: float) -> None:
    """Remove a completed operation; its application is not stuck any more."""
    state = columns(table)
    i = state.application[slot]
    free_request(state, slot, moved_bytes)
    if state.urgent[slot] > 0:
        state.counter[URGENT] -= 1
        return
    if state.stuck[i] > 0:
        state.stuck[i] = 0
        state.counter[STUCK] -= state.at_storage[i]
    state.at_storage[i] -= 1
    state.completed_s[i] = now
    _update_tag(state, i)


KERNELS: Final = Kernels(arrive, next_request, complete)


class MetadataScheduler(KernelScheduler):
    """Orders metadata operations; a driver may number applications itself."""

    def __init__(self, slos: Mapping[str, Slo], depth: float) -> None:
        super().__init__(KERNELS, slos, Guarantees(shares=True), depth=depth)

    def set_weight(self, index: int, throughput_bytes_per_s: float) -> None:
        """Set the weight of the application that the driver calls `index`."""
        count = self.columns.counter[APPLICATIONS]
        for unknown in range(count, index):
            self.columns.weight[unknown] = _FIRST_WEIGHT
        self.columns.weight[index] = throughput_bytes_per_s
        self.columns.counter[APPLICATIONS] = max(count, index + 1)


def make(slos: Mapping[str, Slo], now: float, depth: float) -> MetadataScheduler:  # noqa: ARG001
    """Return a scheduler that starts at `now`."""
    return MetadataScheduler(slos, depth)
