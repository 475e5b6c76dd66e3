# SPDX-License-Identifier: MIT
"""Block the requests of an application that has used up its credit.

Every scheduler passes its requests through this stage before it queues them. Two rates
may limit an application: the allocator of all mounts (`penstock.qos.credit`) grants one
to applications that are ahead of their share, for a lease; and the administrator may
set a cap. The lower one counts. The level of the application fills at this rate r, up
to `BURST_S` seconds of it. A request passes if the level is not negative, and takes its
cost, so a large request passes like a small one and is paid for afterwards.
Applications without a rate pass at once.

When the lease ends, granted rates end: a mount that hears nothing more loses its share
at worst, never service.

A scheduler calls `passes` at each arrival, `next_passed` before it decides, and
`finish_request` at each completion.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.columns import add_to_set, append_to_list, pop_from_list, remove_from_set
from penstock.kernels import kernel, part
from penstock.qos.interface import THINK_S
from penstock.qos.state import (
    APPLICATIONS,
    BLOCKED,
    LEASE_ENDS_S,
    PASS_S,
    SchedulerState,
    columns,
    count_waiting,
    free_request,
)

__all__ = [
    "BURST_S",
    "MIN_BYTES_PER_S",
    "finish_request",
    "next_passed",
    "passes",
    "set_cap",
    "set_grant",
]

#: Most credit that an application saves, in seconds of its rate.
BURST_S: Final = 0.05
#: Least rate: even the smallest gives a request a time at which it passes.
MIN_BYTES_PER_S: Final = 1.0
#: The level may be below 0 by this time (s) of the rate, for the rounding of the clock.
_TOLERANCE_S: Final = 1e-6


# --- Requests ---------------------------------------------------------------------


@part
def passes(state: SchedulerState, slot: int, now: float) -> bool:
    """Let a new request into the queue, or block it until there is credit."""
    i = state.application[slot]
    if state.present[i] > 0 or now - state.changed_s[i] < THINK_S:
        _count_time(state, i, now)
    state.changed_s[i] = now
    state.present[i] += 1
    if state.blocked[i] == 0 and _has_credit(state, i, now):
        _draw(state, i, slot)
        return True
    append_to_list(state.blocked_first, state.blocked_last, state.link, i, slot)
    state.blocked[i] += 1
    state.counter[BLOCKED] += 1
    add_to_set(state.blocked_set, state.blocked_place, i)
    state.value[PASS_S] = -inf
    return False


@part
def next_passed(state: SchedulerState, now: float) -> int:
    """Return the next blocked request that now has credit; -1 if there is none."""
    if now < state.value[PASS_S]:
        return -1
    if now >= state.value[LEASE_ENDS_S]:
        _end_lease(state, now)
    pass_s = inf
    for position in range(1, state.blocked_set[0] + 1):
        i = state.blocked_set[position]
        if _has_credit(state, i, now):
            return _pop_blocked(state, i)
        rate = _rate(state, i)
        pass_s = min(pass_s, state.filled_s[i] - state.level_bytes[i] / rate)
    if state.blocked_set[0] > 0:
        pass_s = min(pass_s, state.value[LEASE_ENDS_S])
    state.value[PASS_S] = pass_s
    return -1


@part
def finish_request(
    state: SchedulerState, slot: int, moved_bytes: int, now: float
) -> int:
    """Remove a completed request; return its refund, the unused part of its cost."""
    i = state.application[slot]
    unused_bytes = free_request(state, slot, moved_bytes)
    _count_time(state, i, now)
    state.present[i] -= 1
    state.changed_s[i] = now
    state.done_bytes[i] += state.cost_bytes[slot] - unused_bytes
    if unused_bytes > 0:
        state.passed_bytes[i] -= unused_bytes
        state.level_bytes[i] += unused_bytes
        state.value[PASS_S] = min(state.value[PASS_S], now)
    return unused_bytes


@part
def _count_time(state: SchedulerState, i: int, now: float) -> None:
    """Count the time since the last change as busy, and for every request of `i`."""
    passed_s = now - state.changed_s[i]
    state.busy_s[i] += passed_s
    state.present_s[i] += passed_s * state.present[i]


@part
def _pop_blocked(state: SchedulerState, i: int) -> int:
    """Remove and return the first blocked request of `i`, which has credit."""
    slot = pop_from_list(state.blocked_first, state.link, i)
    state.blocked[i] -= 1
    state.counter[BLOCKED] -= 1
    if state.blocked[i] == 0:
        remove_from_set(state.blocked_set, state.blocked_place, i)
    _draw(state, i, slot)
    return slot


# --- Credit -----------------------------------------------------------------------


@part
def _rate(state: SchedulerState, i: int) -> float:
    """Return what `i` may draw (bytes/s); inf: no limit."""
    return min(state.granted_rate[i], state.cap_rate[i])


@part
def _has_credit(state: SchedulerState, i: int, now: float) -> bool:
    """Return True if the next request of `i` may pass."""
    rate = _rate(state, i)
    if rate == inf:
        return True
    _fill(state, i, now)
    return state.level_bytes[i] >= -_TOLERANCE_S * rate


@part
def _fill(state: SchedulerState, i: int, now: float) -> None:
    """Add the credit of a limited application since the last call."""
    rate = _rate(state, i)
    filled_bytes = state.level_bytes[i] + rate * (now - state.filled_s[i])
    state.level_bytes[i] = min(filled_bytes, rate * BURST_S)
    state.filled_s[i] = now


@part
def _draw(state: SchedulerState, i: int, slot: int) -> None:
    """Take the cost of a request that passes."""
    state.level_bytes[i] -= state.cost_bytes[slot]
    state.passed_bytes[i] += state.cost_bytes[slot]
    count_waiting(state)


@part
def _end_lease(state: SchedulerState, now: float) -> None:
    """End all granted rates."""
    state.value[LEASE_ENDS_S] = inf
    for i in range(state.counter[APPLICATIONS]):
        if state.granted_rate[i] < inf:
            _set_rates(state, i, inf, state.cap_rate[i], now)


@part
def _set_rates(
    state: SchedulerState, i: int, granted: float, cap: float, now: float
) -> None:
    """Change the rates of `i`.

    An application that had a rate keeps its debt; one that had none begins at 0.
    """
    if _rate(state, i) == inf:
        state.level_bytes[i] = 0.0
        state.filled_s[i] = now
    else:
        _fill(state, i, now)
    state.granted_rate[i] = granted
    state.cap_rate[i] = cap
    state.value[PASS_S] = min(state.value[PASS_S], now)


# --- Control ----------------------------------------------------------------------


@kernel
def set_grant(table: SchedulerState, application: int, rate: float, now: float) -> None:
    """Set the granted rate of an application (bytes/s); inf: no limit."""
    state = columns(table)
    _set_rates(state, application, rate, state.cap_rate[application], now)


@kernel
def set_cap(table: SchedulerState, application: int, rate: float, now: float) -> None:
    """Set what an application may draw at most (bytes/s); inf: no limit."""
    state = columns(table)
    _set_rates(state, application, state.granted_rate[application], rate, now)
