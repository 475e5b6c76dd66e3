# SPDX-License-Identifier: MIT
"""The memory of a scheduler: tables of requests and applications in columns.

`SchedulerState` is a struct of columns (see `penstock.kernels`). All schedulers have
the same struct, and each uses the columns that it needs. A request has a row, its
*slot*, from its arrival to its completion. An application has a row, its *index*, for
ever.

The tables have a fixed size, because compiled code holds their addresses. A request for
which there is no slot is refused: the mount sends it unscheduled. The simulator makes
the tables larger (`larger_state`).

A kernel that is called from outside takes the state as `columns` expects it: the
address of its words if it is compiled, the struct itself if it is interpreted.

Units: ``_s`` seconds, ``_bytes`` bytes. Tags are in seconds of the application's
throughput.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final, NamedTuple, cast

from penstock.columns import append_to_list, pop_from_list
from penstock.kernels import Floats, Ints, kernel, kinds, part, unpacker
from penstock.qos.interface import MIN_COST_BYTES

__all__ = [
    "APPLICATION_LIMIT",
    "REQUEST_LIMIT",
    "SAMPLE_LIMIT",
    "SchedulerState",
    "add_request",
    "columns",
    "count_waiting",
    "free_request",
    "has_room",
    "larger_state",
    "new_state",
    "next_number",
    "queue_request",
    "send_request",
    "unqueue_request",
    "wake_s",
]

#: Requests and applications for which the tables of a new scheduler have room.
REQUEST_LIMIT: Final = 4096
APPLICATION_LIMIT: Final = 1024
#: Times at the storage that are kept per window (`penstock.qos.parts.feedback`).
SAMPLE_LIMIT: Final = 1 << 15
#: Depths 2**level that `penstock.qos.parts.saturation` tries.
LEVELS: Final = 11

# Entries of `SchedulerState.value`.
DEPTH: Final = 0  # most requests at the storage at once; inf: no limit
WAKE_S: Final = 1  # when `next_request` must be called again; inf: never
DECIDED_S: Final = 2  # time of the last decision which requests are admitted
VIRTUAL_TIME: Final = 3  # v: start tag of the request sent last
OTHERS_BYTES_PER_S: Final = 4  # throughput of an application without an SLO
WINDOW_S: Final = 5  # length of a time window
CREDIT_S: Final = 6  # length of a credit window; 0: chosen from the latencies
SATURATED_CREDIT_S: Final = 7  # the same while the storage is never idle
LATENCY_SHARE: Final = 8  # fraction of the latency bounds for the lower level
WINDOW_ENDS_S: Final = 9
IDLE_SINCE_S: Final = 10
IDLE_S: Final = 11  # idle time of the storage in this window
TOTAL_BYTES_PER_S: Final = 12  # sum of the t_i on this server
THRESHOLD: Final = 13  # queue threshold of the paper
DUE_DEPTH: Final = 14  # L_0
USEFUL_DEPTH: Final = 15  # L_U
LATENCY_DEPTH: Final = 16  # min_i L_RT_i
DECIDED_DEPTH: Final = 17  # L of the feedback; inf under overload
CREDIT_BYTES: Final = 18  # D of the paper
CREDIT_ENDS_S: Final = 19  # end of the credit window
SPARE_THRESHOLD: Final = 20  # the storage is spare below 0.9 times this
CAPACITY_OVER_PROMISES: Final = 21  # s of `penstock.qos.parts.promises`
HOLD_UNTIL_S: Final = 22  # when requests that are held may go; inf: none is held
PACE_BYTES: Final = 23  # bytes moved at the present depth since the last pace
PACE_BUSY_S: Final = 24  # busy time at the present depth since the last pace
RIVALS_UNTIL_S: Final = 25  # until when other nodes send to the same storage
LEASE_ENDS_S: Final = 26  # until when granted rates hold; inf: there are none
PASS_S: Final = 27  # when a request that waits for credit may pass; inf: none waits
RIVALS_SLACK: Final = 28  # least slack factor of the applications of other nodes
SHARED_DEPTH: Final = 29  # depth that their latency bounds allow; inf: any

# Entries of `SchedulerState.counter`.
APPLICATIONS: Final = 0  # rows in use
FREE: Final = 1  # first slot of the list of free slots; -1: none
USED: Final = 2  # slots that were ever used
REFUSED: Final = 3  # requests for which there was no room
WAITING: Final = 4  # requests that wait in the queue, or in the upper level
OUTSTANDING: Final = 5  # requests at the storage
NUMBER: Final = 6  # last serial number
CHANGED: Final = 7  # 1 if something has happened since the last decision
SERVED: Final = 8  # applications that have been served
USES_LAYOUT: Final = 9  # 1 if service elsewhere is inferred from the layout
HOLDS: Final = 10  # 1 with overload=hold, 0 with overload=send
SATURATED: Final = 11  # 1 if the storage was never idle in the last window
LOWER_BYTES: Final = 12  # cost of the requests in the lower level and at the storage
MAX_OUTSTANDING: Final = 13  # largest number at the storage in this window
MOVED_BYTES: Final = 14  # bytes moved in this window
CLASSES: Final = 15  # applications with requests in this window
SAMPLES: Final = 16  # entries of `sample_s`
STRIDE: Final = 17  # one completion in so many is sampled
PACE_LEVEL: Final = 18  # log2 of the present depth
PACE_ANSWERS: Final = 19  # answers at the present depth since the last pace
PACES: Final = 20  # paces measured
BLOCKED: Final = 21  # requests that wait for credit
STUCK: Final = 22  # requests at the storage of applications that are stuck
URGENT: Final = 23  # urgent metadata operations at the storage


class SchedulerState(NamedTuple):
    """The variables of a scheduler."""

    request_limit: int
    application_limit: int
    value: Floats
    counter: Ints

    # By request.
    application: Ints
    """Index of its application."""
    cost_bytes: Ints
    """Bytes charged: max(size, `MIN_COST_BYTES`)."""
    deadline_s: Floats
    admitted_s: Floats
    """When the upper level admitted it."""
    sent_s: Floats
    serial: Ints
    """Serial number: among equal deadlines the lower one goes first."""
    link: Ints
    """Next request in the list that it is in."""
    by_deadline: Ints
    """Heap of requests by deadline: the queue of edf, the lower level of two-level."""
    deadline_place: Ints
    urgent: Ints
    """1 for an urgent metadata operation (`penstock.qos.metadata`)."""

    # By application: its SLO and its service.
    weight: Floats
    """t_i (bytes/s)."""
    latency_s: Floats
    """l_i."""
    has_slo: Ints
    """1 if it is named in the SLOs."""
    served_bytes: Ints
    """Cost of its requests that were sent, minus refunds."""
    served: Ints
    """The applications that were served, in the order of their first service."""

    # By application: credit (`penstock.qos.credit.stage`).
    granted_rate: Floats
    """What it may draw until the lease ends (bytes/s); inf: no limit."""
    cap_rate: Floats
    """What it may draw at most (bytes/s); inf: no limit."""
    level_bytes: Floats
    """Credit that it has saved; below 0 it has drawn too much."""
    filled_s: Floats
    """Time at which `level_bytes` was computed (s)."""
    blocked_first: Ints
    """First request of the list of those that wait for credit; -1: none."""
    blocked_last: Ints
    blocked: Ints
    """Requests that wait for credit."""
    blocked_set: Ints
    """Set of applications that have requests without credit."""
    blocked_place: Ints
    mount_part: Floats
    """Part of its rate on this storage that this mount has."""
    passed_bytes: Ints
    """Cost of its requests that have passed, minus refunds."""
    done_bytes: Ints
    """Cost of its requests that are complete, minus refunds."""
    present: Ints
    """Requests that have arrived and are not complete."""
    busy_s: Floats
    """Time with at least one request, up to `changed_s`."""
    present_s: Floats
    """Time that its requests were here, added over requests, up to `changed_s`."""
    changed_s: Floats
    """When its last request arrived or completed."""

    # By application: start tags (`penstock.qos.sfq`).
    first: Ints
    """First request of the list of queued requests; -1: none is queued."""
    last: Ints
    start_tag: Floats
    """S of its first queued request."""
    number: Ints
    """Serial number of its start tag."""
    finish_tag: Floats
    """F' of its next request."""
    last_cost_bytes: Ints
    """Cost of the request sent last."""
    unused_bytes: Ints
    """Refunds that are not yet subtracted from the cost of later requests."""
    charged_bytes: Ints
    """Cost of the request sent last, minus the refunds subtracted from it."""
    local_bytes: Floats
    """Service on this server, less what was long ago."""
    remote_bytes: Floats
    """Service on other servers as far as it is known, less what was long ago."""
    pending_bytes: Floats
    """Reported service on other servers that is not yet in a tag."""
    layout_factor: Ints
    """Number of servers that hold its files."""
    by_tag: Ints
    """Heap of applications with queued requests by start tag."""
    tag_place: Ints

    # By application: promises (`penstock.qos.parts.promises`).
    promise_s: Floats
    """R_i: until when its service keeps its promise."""
    promise_key: Floats
    """R_i when it entered `by_promise`."""
    by_promise: Ints
    """Heap of applications by `promise_key`, while the storage is not short."""
    promise_place: Ints
    at_storage: Ints
    """Requests that were taken and are not complete."""
    busy_since_s: Floats
    """Since when it has always had a request."""
    completed_s: Floats
    """Time of its last completion."""
    short: Ints
    """1 if it is owed too much, or was and is still owed."""
    unqueued: Ints
    """Set of applications without a queued request that were served before."""
    unqueued_place: Ints
    favoured_s: Floats
    """When requests were last held for it."""
    trial_since_s: Floats
    trial_tag: Floats
    """Its finish tag at the begin of the trial."""
    pause_until_s: Floats

    # By application: metadata operations (`penstock.qos.metadata`).
    stuck: Ints
    """1 if its operations at the storage do not count towards the depth."""
    urgent_first: Ints
    """Entry 0: first operation of the list of urgent ones; -1: none is queued."""
    urgent_last: Ints

    # By application: late requests (`penstock.qos.parts.late_aware`).
    late_first: Ints
    """First request of the list of late requests; -1: none."""
    late_last: Ints
    late_count: Ints
    lower_level_s: Floats
    """Mean time of its requests in the lower level; -inf: no request is late."""
    catching_up: Ints
    turns: Ints
    """Number of requests taken."""
    by_owed: Ints
    """Heap of the applications that yield, by start tag."""
    owed_place: Ints

    # By application: the time window (`penstock.qos.parts.feedback`).
    classes: Ints
    """Applications with requests in this window, in order of their first one."""
    in_window: Ints
    """1 if it is one of them."""
    bound_s: Floats
    """D_i: its latency bound in the lower level."""
    queue_time_s: Floats
    """Sum of the times that its completed requests spent in the EDF queue."""
    admitted: Ints
    """Requests that entered the EDF queue."""
    completed: Ints
    """Requests that the storage completed."""
    sampled: Ints
    """Its entries of `sample_s`."""
    sample_end: Ints
    """End of its entries of `sorted_s`."""
    slack: Floats
    """E_i of the last window with completions; inf: none yet."""
    slack_s: Floats
    """When that window ended."""

    # Samples of this window, working memory, and paces by level.
    sample_s: Floats
    """Times at the storage."""
    sample_application: Ints
    sorted_s: Floats
    """The samples, application after application."""
    scratch: Floats
    partials: Floats
    """Working memory of `penstock.columns.exact_sum`."""
    pace_bytes_per_s: Floats
    """Moving average by level; 0: not measured."""
    pace_requests_per_s: Floats


#: The struct at an address (compiled), or the struct itself (interpreted).
columns: Final = unpacker(SchedulerState)

_BY_REQUEST: Final = (
    *("application", "cost_bytes", "deadline_s", "admitted_s", "sent_s", "serial"),
    *("link", "by_deadline", "deadline_place", "urgent"),
)
#: Columns whose entries are not 0 at first.
_FIRST_VALUES: Final = {
    **dict.fromkeys(("first", "last", "late_first", "late_last"), -1),
    **dict.fromkeys(("blocked_first", "blocked_last"), -1),
    **dict.fromkeys(("urgent_first", "urgent_last"), -1),
    **dict.fromkeys(("promise_s", "busy_since_s", "completed_s", "favoured_s"), -inf),
    **dict.fromkeys(("trial_since_s", "pause_until_s"), -inf),
    **dict.fromkeys(("lower_level_s", "changed_s"), -inf),
    **dict.fromkeys(("granted_rate", "cap_rate", "slack"), inf),
    **dict.fromkeys(("layout_factor", "mount_part"), 1),
    "slack_s": -inf,
}


def new_state(
    requests: int = REQUEST_LIMIT, applications: int = APPLICATION_LIMIT
) -> SchedulerState:
    """Return the state of a scheduler without requests and applications."""
    import numpy as np  # noqa: PLC0415 - a mount without promises needs no NumPy

    sizes = dict.fromkeys(_BY_REQUEST, requests + 1)
    sizes |= {"value": SHARED_DEPTH + 1, "counter": URGENT + 1, "partials": 64}
    sizes |= dict.fromkeys(("urgent_first", "urgent_last"), 1)
    sizes |= dict.fromkeys(("pace_bytes_per_s", "pace_requests_per_s"), LEVELS)
    sizes |= dict.fromkeys(("sample_s", "sample_application", "sorted_s"), SAMPLE_LIMIT)
    limits = {"request_limit": requests, "application_limit": applications}
    state: dict[str, Any] = dict(limits)
    for name, kind in kinds(SchedulerState).items():
        if name not in limits:
            dtype = np.int64 if kind == "Ints" else np.float64
            # Heaps and sets need one entry more, for the number of their items.
            state[name] = np.zeros(sizes.get(name, applications + 1), dtype)
            if name in _FIRST_VALUES:
                state[name][:] = _FIRST_VALUES[name]
    state["counter"][[FREE, STRIDE]] = (-1, 1)
    state["value"][[WAKE_S, HOLD_UNTIL_S, LEASE_ENDS_S, PASS_S]] = inf
    state["value"][[RIVALS_SLACK, SHARED_DEPTH]] = inf
    state["value"][[DECIDED_S, RIVALS_UNTIL_S]] = -inf
    state["value"][CAPACITY_OVER_PROMISES] = 1.0
    return SchedulerState(**cast(Any, state))


def larger_state(state: SchedulerState) -> SchedulerState:
    """Return the same state with room for twice as many requests and applications."""
    larger = new_state(2 * state.request_limit, 2 * state.application_limit)
    for old, new in zip(cast(Any, state), larger, strict=True):
        if not isinstance(old, int):
            cast(Any, new)[: len(old)] = old
    return larger


# --- Requests ---------------------------------------------------------------------


@part
def add_request(state: SchedulerState, application: int, cost_bytes: int) -> int:
    """Return the slot of a new request; -1 if there is no room for it."""
    counter = state.counter
    slot = -1
    if 0 <= application < counter[APPLICATIONS]:
        if counter[FREE] >= 0:
            slot = counter[FREE]
            counter[FREE] = state.link[slot]
        elif counter[USED] < state.request_limit:
            slot = counter[USED]
            counter[USED] += 1
    if slot < 0:
        counter[REFUSED] += 1
        return -1
    state.application[slot] = application
    state.cost_bytes[slot] = max(cost_bytes, MIN_COST_BYTES)
    return slot


@part
def count_waiting(state: SchedulerState) -> None:
    """Count a request that enters the queue."""
    state.counter[WAITING] += 1
    state.counter[CHANGED] = 1


@part
def next_number(state: SchedulerState) -> int:
    """Return a serial number: among equals the lower number goes first."""
    state.counter[NUMBER] += 1
    return state.counter[NUMBER]


@part
def queue_request(state: SchedulerState, queue: int, slot: int) -> None:
    """Add a request at the end of queue `queue`."""
    append_to_list(state.first, state.last, state.link, queue, slot)


@part
def unqueue_request(state: SchedulerState, queue: int) -> int:
    """Remove and return the first request of queue `queue`."""
    return pop_from_list(state.first, state.link, queue)


@part
def send_request(state: SchedulerState, slot: int, now: float) -> None:
    """Count a request that is sent to the storage."""
    i = state.application[slot]
    state.counter[OUTSTANDING] += 1
    state.sent_s[slot] = now
    if state.served_bytes[i] == 0:
        state.served[state.counter[SERVED]] = i
        state.counter[SERVED] += 1
    state.served_bytes[i] += state.cost_bytes[slot]


@part
def free_request(state: SchedulerState, slot: int, moved_bytes: int) -> int:
    """Remove a completed request; return its refund, the unused part of its cost."""
    cost_bytes = state.cost_bytes[slot]
    unused_bytes = cost_bytes - min(cost_bytes, max(moved_bytes, MIN_COST_BYTES))
    state.served_bytes[state.application[slot]] -= unused_bytes
    state.counter[OUTSTANDING] -= 1
    state.counter[CHANGED] = 1
    state.link[slot] = state.counter[FREE]
    state.counter[FREE] = slot
    return unused_bytes


@part
def has_room(state: SchedulerState) -> bool:
    """Return True if fewer than L requests are at the storage."""
    return state.counter[OUTSTANDING] < state.value[DEPTH]


@kernel
def wake_s(table: SchedulerState) -> float:
    """Return when `next_request` must be called again (s); inf: never."""
    value = columns(table).value
    return min(value[WAKE_S], value[PASS_S])
