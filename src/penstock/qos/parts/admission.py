# SPDX-License-Identifier: MIT
"""The upper level of the two-level scheduler: which requests pass to the lower level.

The docstring of `penstock.qos.two_level` states the rule, for ``overload=hold`` and for
``overload=send``.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.columns import exact_sum
from penstock.kernels import part
from penstock.qos.edf import push_by_deadline
from penstock.qos.parts.feedback import join_window
from penstock.qos.parts.promises import pop_request
from penstock.qos.sfq import pop_by_start_tag
from penstock.qos.state import (
    APPLICATIONS,
    CREDIT_BYTES,
    CREDIT_ENDS_S,
    CREDIT_S,
    DEPTH,
    HOLD_UNTIL_S,
    HOLDS,
    LOWER_BYTES,
    OTHERS_BYTES_PER_S,
    OUTSTANDING,
    SATURATED,
    SATURATED_CREDIT_S,
    SPARE_THRESHOLD,
    TOTAL_BYTES_PER_S,
    WAITING,
    WINDOW_S,
    SchedulerState,
)

__all__ = ["SPARE_SHARE", "admit", "full_credit_bytes", "update_total"]

#: The storage is spare below this fraction of the queue threshold.
SPARE_SHARE: Final = 0.9


@part
def admit(state: SchedulerState, now: float) -> None:
    """Admit waiting requests to the lower level, as far as its credit goes."""
    if state.counter[HOLDS]:
        _admit_promised(state, now)
    else:
        _admit_by_credit(state, now)


@part
def _admit_promised(state: SchedulerState, now: float) -> None:
    """Admit requests within promises while D is positive, others while L allows."""
    state.value[HOLD_UNTIL_S] = inf
    full_bytes = full_credit_bytes(state)
    while state.counter[WAITING] > 0:
        room = _in_lower_level(state) < state.value[DEPTH]
        if not room and state.counter[LOWER_BYTES] >= full_bytes:
            break
        slot = pop_request(state, now, room)
        if slot < 0:
            break
        if state.deadline_s[slot] < now:
            latency_s = state.latency_s[state.application[slot]]
            state.deadline_s[slot] = now + latency_s
        _pass_down(state, slot, now)


@part
def _admit_by_credit(state: SchedulerState, now: float) -> None:
    """Admit requests in the order of their start tags while D is positive."""
    while state.counter[WAITING] > 0:
        if state.value[CREDIT_BYTES] <= 0.0 and not _refill(state, now):
            break
        slot = pop_by_start_tag(state)
        state.value[CREDIT_BYTES] -= state.cost_bytes[slot]
        _pass_down(state, slot, now)


@part
def _refill(state: SchedulerState, now: float) -> bool:
    """Fill D if the storage is spare or the credit window has expired.

    Return True if D is positive.
    """
    value = state.value
    full_bytes = full_credit_bytes(state)
    if _in_lower_level(state) < SPARE_SHARE * value[SPARE_THRESHOLD]:
        value[CREDIT_BYTES] = full_bytes
    elif now >= value[CREDIT_ENDS_S]:
        value[CREDIT_ENDS_S] = now + _credit_window_s(state)
        value[CREDIT_BYTES] = min(full_bytes, value[CREDIT_BYTES] + full_bytes)
    return value[CREDIT_BYTES] > 0.0


@part
def _pass_down(state: SchedulerState, slot: int, now: float) -> None:
    """Admit a request: put it into the lower level."""
    i = state.application[slot]
    state.counter[LOWER_BYTES] += state.cost_bytes[slot]
    state.admitted_s[slot] = now
    join_window(state, i)
    state.admitted[i] += 1
    push_by_deadline(state, slot)


@part
def _in_lower_level(state: SchedulerState) -> int:
    """Return the number of requests in the lower level and at the storage."""
    return state.counter[OUTSTANDING] + state.by_deadline[0]


@part
def full_credit_bytes(state: SchedulerState) -> float:
    """Return D_full: the sum of t_i over one credit window."""
    return state.value[TOTAL_BYTES_PER_S] * _credit_window_s(state)


@part
def _credit_window_s(state: SchedulerState) -> float:
    """Return the length of a credit window."""
    if state.counter[SATURATED]:
        return state.value[SATURATED_CREDIT_S]
    if state.value[CREDIT_S] > 0.0:
        return state.value[CREDIT_S]
    return state.value[WINDOW_S]


@part
def update_total(state: SchedulerState) -> None:
    """Update the sum of t_i on this server; with send, cut D to D_full.

    An SLO covers the service of all servers and mounts; only the local fraction counts.
    """
    count = 0
    for i in range(state.counter[APPLICATIONS]):
        if state.has_slo[i]:
            share = _local_share(state, i) * state.mount_part[i]
            state.scratch[count] = state.weight[i] * share
            count += 1
    total = exact_sum(state.scratch, 0, count, state.partials)
    if total == 0.0:
        total = state.value[OTHERS_BYTES_PER_S]
    state.value[TOTAL_BYTES_PER_S] = total
    if not state.counter[HOLDS]:
        state.value[CREDIT_BYTES] = min(
            state.value[CREDIT_BYTES], full_credit_bytes(state)
        )


@part
def _local_share(state: SchedulerState, i: int) -> float:
    """Return the fraction of the application's service that is on this server."""
    total_bytes = state.local_bytes[i] + state.remote_bytes[i]
    return 1.0 if total_bytes == 0.0 else state.local_bytes[i] / total_bytes
