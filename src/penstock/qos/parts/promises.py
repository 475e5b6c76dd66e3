# SPDX-License-Identifier: MIT
"""Keep promises first, then share what is left by start tags.

The upper level of the two-level scheduler with ``overload=hold``. It serves an
application that has had less than its promise t_i before all others, and shares the
remaining bandwidth by start tags (`penstock.qos.sfq`).

Promise clock. R_i is the time until which the service of application i so far keeps its
promise. While R_i <= now the application is *within its promise*: its requests go
first, the smallest R_i before the others, and each moves the clock,

    R_i = R_i + c / r_i,    r_i = t_i min(1.01, s),

with c the cost of the request (bytes) and s (`CAPACITY_OVER_PROMISES`) the measured
capacity of the storage divided by the sum of the t_i (1 % more than promised, if there
is as much, makes up for whole requests). While R_i > now its requests are *beyond its
promise*. They are sent only while the storage has room, in the order of their start
tags, and do not move the clock: using bandwidth that others leave costs nothing later.
Service d on other servers moves the clock by d / r_i, to at most now + `LAG_S`. So a
promise is one of total service. An application that was idle has saved at most `LAG_S`
seconds of its promise, and one that is served too little is owed at most twice that.

Why an application that always has a request here gets t_i if sum t_i <= capacity: its
clock stands still unless it is served, and it goes before every request that is beyond
a promise. Requests within promises need at most sum t_i, so they find bandwidth.

Requests beyond a promise may be held for an application with few requests
(`penstock.qos.parts.holding`). While s < 1 late requests go last
(`penstock.qos.parts.late_aware`).

Source: not in two-level scheduling, whose credit is common to all applications and goes
to the one with most requests.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.columns import (
    Heap,
    add_to_set,
    heap_put,
    heap_remove,
    remove_from_set,
)
from penstock.kernels import part
from penstock.qos.interface import THINK_S
from penstock.qos.parts.holding import is_held, is_short_of_capacity
from penstock.qos.parts.late_aware import (
    LAG_S,
    has_requests,
    move_late,
    take_request,
    yields,
)
from penstock.qos.sfq import charge, start_tags, take_delay_bytes
from penstock.qos.state import (
    APPLICATIONS,
    CAPACITY_OVER_PROMISES,
    RIVALS_UNTIL_S,
    VIRTUAL_TIME,
    SchedulerState,
    next_number,
    queue_request,
)

__all__ = [
    "count_remote_service",
    "has_rivals",
    "pop_request",
    "push_request",
    "record_completion",
    "set_capacity",
]

#: Promises are kept with this margin, if the storage has it.
_MARGIN: Final = 1.01
#: The capacity is enough if it is this fraction of the sum of the throughputs.
_ENOUGH: Final = 0.95


@part
def _promises(state: SchedulerState) -> Heap:
    """Return the heap of applications with queued requests by promise clock."""
    return Heap(state.by_promise, state.promise_place, state.promise_key, state.number)


@part
def _yielding(state: SchedulerState) -> Heap:
    """Return the heap of applications that yield, by start tag."""
    return Heap(state.by_owed, state.owed_place, state.start_tag, state.number)


# --- Arrivals, completions and reports --------------------------------------------


@part
def push_request(state: SchedulerState, i: int, slot: int, now: float) -> None:
    """Queue a request of application `i` that has just arrived; its deadline is set."""
    is_first = not has_requests(state, i)
    queue_request(state, i, slot)
    if is_first:
        remove_from_set(state.unqueued, state.unqueued_place, i)
        if state.at_storage[i] == 0 and now >= state.completed_s[i] + THINK_S:
            state.busy_since_s[i] = now
            saved_s = 0.0 if is_short_of_capacity(state) else LAG_S
            state.promise_s[i] = max(state.promise_s[i], now - saved_s)
        start_tag = _backlogged_start_tag(state, i, now)
        state.start_tag[i] = max(state.value[VIRTUAL_TIME], start_tag)
    if is_first or state.owed_place[i] > 0:
        _enter(state, i)


@part
def record_completion(state: SchedulerState, i: int, now: float) -> None:
    """Record that the storage has completed a request of application `i`."""
    state.at_storage[i] -= 1
    state.completed_s[i] = now


@part
def count_remote_service(state: SchedulerState, i: int, now: float) -> None:
    """Move the tags and the promise clock of `i` by its reported service."""
    start_tag = _backlogged_start_tag(state, i, now)
    moved_s = start_tag - state.finish_tag[i]
    state.finish_tag[i] = start_tag
    if moved_s != 0.0 and has_requests(state, i) and state.owed_place[i] == 0:
        state.start_tag[i] += moved_s
        _enter(state, i)


@part
def has_rivals(state: SchedulerState, now: float) -> bool:
    """Return True if schedulers of other nodes send to the same storage."""
    return now < state.value[RIVALS_UNTIL_S]


# --- Order ------------------------------------------------------------------------


@part
def pop_request(state: SchedulerState, now: float, room: bool) -> int:  # noqa: FBT001
    """Remove and return the next request; -1 if none may go now.

    Without `room` only requests within a promise may go.
    """
    if is_short_of_capacity(state):
        i = _next_late_last(state, now, room)
    else:
        i = _next_promised(state, now)
        if i < 0 and room:
            i = _next_by_tag(state, now)
    return -1 if i < 0 else _take(state, i, now)


@part
def _next_promised(state: SchedulerState, now: float) -> int:
    """Return the application that is owed most; -1: none is owed."""
    if state.by_promise[0] == 0:
        return -1
    i = state.by_promise[1]
    return -1 if state.promise_key[i] > now else i


@part
def _next_by_tag(state: SchedulerState, now: float) -> int:
    """Return the application with the smallest start tag; -1: it is held."""
    if state.by_tag[0] == 0:
        return _next_yielding(state, now)
    i = state.by_tag[1]
    return -1 if is_held(state, i, now) else i


@part
def _next_late_last(state: SchedulerState, now: float, room: bool) -> int:  # noqa: FBT001
    """Return the application with the smallest start tag that does not yield.

    Without room it must have had less than its share.
    """
    i = _next_owed(state)
    while i < 0 and state.by_tag[0] > 0:
        first = state.by_tag[1]
        if is_held(state, first, now) if room else state.promise_s[first] > now:
            return -1
        if not _begins_to_yield(state, first, now):
            i = first
    if i < 0 and room:
        i = _next_yielding(state, now)
    return i


@part
def _begins_to_yield(state: SchedulerState, i: int, now: float) -> bool:
    """Let application `i` yield if it must; return True if it does."""
    move_late(state, i, now)
    if not yields(state, i, state.value[VIRTUAL_TIME] - state.start_tag[i]):
        return False
    heap_remove(start_tags(state), i)
    heap_remove(_promises(state), i)
    state.number[i] = next_number(state)
    heap_put(_yielding(state), i)
    return True


@part
def _next_owed(state: SchedulerState) -> int:
    """Return the yielding application that is owed most, if it is more than `LAG_S`."""
    if state.by_owed[0] == 0:
        return -1
    i = state.by_owed[1]
    if state.value[VIRTUAL_TIME] - state.start_tag[i] <= LAG_S:
        return -1
    state.catching_up[i] = 1
    return i


@part
def _next_yielding(state: SchedulerState, now: float) -> int:
    """Return the yielding application with the longest latency bound; -1: it is held.

    Its late requests are the least late, and those with tighter bounds stay in time.
    Among equal bounds, the application that is owed most.
    """
    best = -1
    for position in range(1, state.by_owed[0] + 1):
        i = state.by_owed[position]
        if best < 0 or _is_preferred(state, i, best):
            best = i
    if best >= 0 and is_held(state, best, now):
        return -1
    return best


@part
def _is_preferred(state: SchedulerState, i: int, other: int) -> bool:
    """Return True if the yielding application `i` goes before another one."""
    if state.latency_s[i] != state.latency_s[other]:
        return state.latency_s[i] > state.latency_s[other]
    if state.start_tag[i] != state.start_tag[other]:
        return state.start_tag[i] < state.start_tag[other]
    return state.number[i] < state.number[other]


@part
def set_capacity(state: SchedulerState, over_promises: float, now: float) -> None:
    """Set s, the measured capacity divided by the sum of the t_i.

    A capacity of 95 % of the sum counts as enough, because it is measured in whole
    requests. If it is less, all are owed more and more: what all are owed is
    forgiven, so that the clocks tell which application had less than its share.
    """
    enough = over_promises >= _ENOUGH
    state.value[CAPACITY_OVER_PROMISES] = (
        max(1.0, over_promises) if enough else over_promises
    )
    latest_s = -inf
    for i in range(state.counter[APPLICATIONS]):
        if has_requests(state, i):
            latest_s = max(latest_s, state.promise_s[i])
    for i in range(state.counter[APPLICATIONS]):
        if has_requests(state, i):
            if not enough and now - latest_s > 0.0:
                state.promise_s[i] += now - latest_s
            if enough or state.owed_place[i] == 0:
                _enter(state, i)


@part
def _take(state: SchedulerState, i: int, now: float) -> int:
    """Remove, charge and return the next request of application `i`."""
    slot = take_request(state, i, now, is_short_of_capacity(state))
    charge(state, i, slot)
    state.at_storage[i] += 1
    if state.promise_s[i] <= now:
        since_s = max(state.promise_s[i], now - 2 * LAG_S)
        state.promise_s[i] = since_s + state.charged_bytes[i] / _promised_rate(state, i)
    if has_requests(state, i):
        state.start_tag[i] = _backlogged_start_tag(state, i, now)
        _enter(state, i)
    else:
        heap_remove(_yielding(state), i)
        heap_remove(start_tags(state), i)
        heap_remove(_promises(state), i)
        add_to_set(state.unqueued, state.unqueued_place, i)
    return slot


@part
def _enter(state: SchedulerState, i: int) -> None:
    """Put application `i`, which has requests and does not yield, into the heaps."""
    heap_remove(_yielding(state), i)
    state.number[i] = next_number(state)
    heap_put(start_tags(state), i)
    if is_short_of_capacity(state):
        heap_remove(_promises(state), i)
    else:
        state.promise_key[i] = state.promise_s[i]
        heap_put(_promises(state), i)


@part
def _promised_rate(state: SchedulerState, i: int) -> float:
    """Return r_i (bytes/s); of a promise at several mounts, the part of this one."""
    local_weight = state.weight[i] * state.mount_part[i]
    return local_weight * min(state.value[CAPACITY_OVER_PROMISES], _MARGIN)


@part
def _backlogged_start_tag(state: SchedulerState, i: int, now: float) -> float:
    """Return F' + d / t_i, and move the promise clock by d / r_i."""
    delay_bytes = take_delay_bytes(state, i)
    if delay_bytes == 0.0:
        return state.finish_tag[i]
    state.remote_bytes[i] += delay_bytes
    moved_s = state.promise_s[i] + delay_bytes / _promised_rate(state, i)
    most_s = max(state.promise_s[i], now + LAG_S)
    state.promise_s[i] = min(moved_s, most_s)
    return state.finish_tag[i] + delay_bytes / state.weight[i]
