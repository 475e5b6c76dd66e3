# SPDX-License-Identifier: MIT
"""Share throughput by start tags, then send by deadline; feedback sets depth.

Rule
    Upper level (throughput). It admits requests to the lower level; how, depends on
    ``overload``.
    Lower level (latency). Admitted requests are sent in the order of their deadlines
    (`penstock.qos.edf`) while fewer than L requests are at the storage. Feedback sets L
    once per time window (`penstock.qos.parts.feedback`).

    The upper level with ``overload=hold``, the default: requests within the promise of
    their application are admitted while the lower level holds less than

        D_full = (sum_i t_i) x credit window,

    the others only while fewer than L requests are in the lower level, in the order of
    their start tags (`penstock.qos.parts.promises`). While the storage is never idle, L
    is the least depth that reaches full throughput (`penstock.qos.parts.saturation`),
    and late requests go last if it cannot keep all promises
    (`penstock.qos.parts.late_aware`).

    With ``overload=send``, the rule of the paper: requests are admitted in the order of
    their start tags (`penstock.qos.sfq`) while the credit D, common to all
    applications, is positive; each takes its cost from D. D is filled to D_full when
    the storage is spare (the lower level holds fewer than 0.9 times the queue threshold
    min_i L_RT_i) or when the credit window expires. Under overload the depth is
    infinite and all requests are sent: the throughput is the highest possible, but the
    scheduler no longer decides the order.

Parameters
    window
        Length of a time window (s). Default 0.5.
    credit
        Length of a credit window (s). 0, the default: ``window``, so that deadlines
        decide the order; but half of the shortest latency bound while the storage is
        never idle, so that admitted requests complete within that time.
    overload
        hold (default) or send.

Properties
    O(log n) per request. With hold an application that always has a request gets at
    least its t_i if the t_i add up to at most the capacity; the proof is in
    `penstock.qos.parts.promises`. With send it does not: D goes to whoever has more
    requests, and with an infinite depth the storage serves in order of arrival. Nor do
    reports or layouts change shares then, because no request waits in the upper level
    where start tags decide. No request starves: promises, start tags and deadlines grow
    with time, and late requests have reserved turns.

Source
    Two-level scheduling, section 3. Deviations:

    1. ``overload=hold``: with an infinite depth neither level decides anything.
    2. With hold each application has its own credit, and a deadline counts from the
       arrival; for a request that is late when it is admitted, from the admission.
       Otherwise an application that issues too much would always have the earliest
       deadlines.
    3. Spareness counts the whole lower level, including its EDF queue.
    4. Of each throughput t_i a server counts only the fraction that the application
       receives on this server in D_full.
    5. Overload ends when everything due can be completed in time
       (`penstock.qos.parts.feedback`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final

from penstock.kernels import interpreted, kernel, part
from penstock.qos.credit.stage import finish_request, next_passed, passes
from penstock.qos.edf import pop_earliest
from penstock.qos.interface import Guarantees, Slo
from penstock.qos.parts.admission import admit, full_credit_bytes, update_total
from penstock.qos.parts.feedback import (
    begin_window,
    completed_requests,
    decide_depth,
    group_samples,
    join_window,
    record_decision,
    record_slacks,
    record_time,
    window_statistics,
)
from penstock.qos.parts.promises import (
    count_remote_service,
    has_rivals,
    push_request,
    record_completion,
)
from penstock.qos.parts.saturation import set_holding_depth
from penstock.qos.scheduler import Kernels, KernelScheduler
from penstock.qos.sfq import push_by_start_tag
from penstock.qos.state import (
    APPLICATIONS,
    CHANGED,
    CREDIT_BYTES,
    CREDIT_ENDS_S,
    CREDIT_S,
    DECIDED_DEPTH,
    DECIDED_S,
    DEPTH,
    HOLD_UNTIL_S,
    HOLDS,
    IDLE_S,
    IDLE_SINCE_S,
    LATENCY_DEPTH,
    LATENCY_SHARE,
    LOWER_BYTES,
    MAX_OUTSTANDING,
    MOVED_BYTES,
    OUTSTANDING,
    RIVALS_SLACK,
    RIVALS_UNTIL_S,
    SATURATED,
    SATURATED_CREDIT_S,
    SPARE_THRESHOLD,
    THRESHOLD,
    USEFUL_DEPTH,
    USES_LAYOUT,
    WAITING,
    WAKE_S,
    WINDOW_ENDS_S,
    WINDOW_S,
    SchedulerState,
    add_request,
    columns,
    has_room,
    send_request,
)
from penstock.registry import Parameter

__all__ = [
    "FIRST_DEPTH",
    "KERNELS",
    "LOWER_LEVEL_SHARE",
    "PARAMETERS",
    "TwoLevel",
    "arrive",
    "complete",
    "make",
    "next_request",
]

#: Depth before the first measurement.
FIRST_DEPTH: Final = 8.0
#: Fraction of the latency bound for the lower level, where the upper holds requests.
LOWER_LEVEL_SHARE: Final = 0.5
#: The storage is saturated if it was busy for more than this fraction of a window.
_SATURATED_SHARE: Final = 0.98
#: Older service counts less by this factor per window in the local share of a promise.
_DECAY: Final = 0.9

PARAMETERS: Final = (
    Parameter("window", "length of a time window", 0.5, unit="s", low=1e-3),
    Parameter(
        "credit", "length of a credit window; 0: chosen from the latencies", 0.0, "s"
    ),
    Parameter(
        "overload",
        "hold excess requests back, or send all to the storage",
        "hold",
        choices=("hold", "send"),
    ),
)


# --- Requests ---------------------------------------------------------------------


@kernel
def arrive(
    table: SchedulerState,
    application: int,
    kind: int,  # noqa: ARG001
    cost_bytes: int,
    now: float,
) -> int:
    """Queue a request in the upper level.

    Return its slot, or -1 if there is no room for it.
    """
    state = columns(table)
    slot = add_request(state, application, cost_bytes)
    if slot >= 0 and passes(state, slot, now):
        _queue(state, slot, now)
    return slot


@part
def _queue(state: SchedulerState, slot: int, now: float) -> None:
    """Queue a request in the upper level, with the deadline now + l_i."""
    i = state.application[slot]
    state.deadline_s[slot] = now + state.latency_s[i]
    if state.counter[HOLDS]:
        push_request(state, i, slot, now)
    else:
        push_by_start_tag(state, i, slot)


@kernel
def next_request(table: SchedulerState, now: float) -> int:
    """Return the next request to send; -1 if none may be sent.

    At first, close a window that has ended, and admit requests to the lower level.
    """
    state = columns(table)
    passed = next_passed(state, now)
    while passed >= 0:
        _queue(state, passed, now)
        passed = next_passed(state, now)
    if state.counter[CHANGED] or now > state.value[DECIDED_S]:
        state.counter[CHANGED] = 0
        state.value[DECIDED_S] = now
        if now >= state.value[WINDOW_ENDS_S]:
            _close_window(state, now)
        if state.counter[WAITING] > 0:
            admit(state, now)
    if state.by_deadline[0] == 0 or not has_room(state):
        state.value[WAKE_S] = _next_wake_s(state, now)
        return -1
    if state.counter[OUTSTANDING] == 0:
        state.value[IDLE_S] += now - state.value[IDLE_SINCE_S]
    slot = pop_earliest(state)
    send_request(state, slot, now)
    state.counter[MAX_OUTSTANDING] = max(
        state.counter[MAX_OUTSTANDING], state.counter[OUTSTANDING]
    )
    return slot


@kernel
def complete(table: SchedulerState, slot: int, moved_bytes: int, now: float) -> None:
    """Record the time at the storage; refund the unused part of the cost."""
    state = columns(table)
    i = state.application[slot]
    state.counter[LOWER_BYTES] -= state.cost_bytes[slot]
    join_window(state, i)
    sent_s = state.sent_s[slot]
    record_time(state, i, now - sent_s, sent_s - state.admitted_s[slot])
    state.counter[MOVED_BYTES] += moved_bytes
    state.unused_bytes[i] += finish_request(state, slot, moved_bytes, now)
    if state.counter[OUTSTANDING] == 0:
        state.value[IDLE_SINCE_S] = now
    if state.counter[HOLDS]:
        record_completion(state, i, now)


@part
def _next_wake_s(state: SchedulerState, now: float) -> float:
    """Return when requests must be tried again: at the latest when the window ends.

    With hold, when held requests may go. With send, at the end of a credit window that
    holds requests up; one that has already expired is renewed by the next `_refill`.
    """
    value = state.value
    waiting = state.counter[WAITING]
    if waiting == 0 and state.counter[OUTSTANDING] + state.by_deadline[0] == 0:
        return inf
    if state.counter[HOLDS]:
        if waiting > 0:
            return min(value[WINDOW_ENDS_S], value[HOLD_UNTIL_S])
    elif waiting > 0 and now < value[CREDIT_ENDS_S] < value[WINDOW_ENDS_S]:
        return value[CREDIT_ENDS_S]
    return value[WINDOW_ENDS_S]


# --- Feedback at the end of a window ----------------------------------------------


@part
def _close_window(state: SchedulerState, now: float) -> None:
    """Set the depth from the statistics; the window may have ended long ago."""
    value = state.value
    length_s = value[WINDOW_S] + now - value[WINDOW_ENDS_S]
    past = window_statistics(state, now, length_s)
    state.counter[SATURATED] = past.busy_share > _SATURATED_SHARE
    is_alone = not has_rivals(state, now)
    for i in range(state.counter[APPLICATIONS]):
        state.local_bytes[i] *= _DECAY
        state.remote_bytes[i] *= _DECAY
        if is_alone:
            state.mount_part[i] = 1.0
    update_total(state)
    if completed_requests(state) > 0:
        group_samples(state)
        record_slacks(state, now)
        is_overloaded = value[DECIDED_DEPTH] == inf
        record_decision(state, decide_depth(state, past, is_overloaded))
        if state.counter[HOLDS]:
            set_holding_depth(state, past.busy_share * length_s, now)
        else:
            value[DEPTH] = value[DECIDED_DEPTH]
            value[SPARE_THRESHOLD] = value[THRESHOLD]
        if value[DEPTH] < inf:
            value[DEPTH] = float(int(value[DEPTH]))
    value[WINDOW_ENDS_S] = now + value[WINDOW_S]
    value[IDLE_SINCE_S] = max(value[IDLE_SINCE_S], now)
    value[IDLE_S] = 0.0
    begin_window(state)


# --- Control ----------------------------------------------------------------------


@kernel
def _set_latencies(table: SchedulerState, shortest_s: float) -> None:
    """Apply new SLOs, of which `shortest_s` is the shortest latency bound."""
    state = columns(table)
    credit_s = state.value[CREDIT_S]
    state.value[SATURATED_CREDIT_S] = (
        credit_s if credit_s > 0.0 else LOWER_LEVEL_SHARE * shortest_s
    )
    state.counter[CHANGED] = 1
    update_total(state)


@kernel
def _record_service(table: SchedulerState, application: int, now: float) -> None:
    """Count service elsewhere, which is pending, in tags and promise clock."""
    state = columns(table)
    if state.counter[HOLDS]:
        state.counter[CHANGED] = 1
        count_remote_service(state, application, now)


KERNELS: Final = Kernels(
    arrive, next_request, complete, (_set_latencies, _record_service)
)


class TwoLevel(KernelScheduler):
    """A two-level scheduler; see the module for the rule.

    Parameters
    ----------
    holds
        True for ``overload=hold``, False for ``overload=send``.
    """

    def __init__(
        self,
        slos: Mapping[str, Slo],
        now: float,
        window_s: float,
        credit_s: float,
        *,
        holds: bool = True,
    ) -> None:
        guarantees = Guarantees(
            promises=holds,
            shares=holds,
            latency=True,
        )
        first_values = {
            WINDOW_S: window_s,
            CREDIT_S: credit_s,
            WINDOW_ENDS_S: now + window_s,
            IDLE_SINCE_S: now,
            CREDIT_ENDS_S: now,
            LATENCY_SHARE: LOWER_LEVEL_SHARE if holds else 1.0,
            SPARE_THRESHOLD: FIRST_DEPTH,
            DECIDED_DEPTH: FIRST_DEPTH,
            THRESHOLD: FIRST_DEPTH,
            LATENCY_DEPTH: inf,
            USEFUL_DEPTH: inf,
        }
        super().__init__(KERNELS, {}, guarantees, depth=FIRST_DEPTH)
        for entry, value in first_values.items():
            self.columns.value[entry] = value
        self.columns.counter[HOLDS] = holds
        self.columns.counter[SATURATED] = 1
        self.set_slos(slos, now)

    @property
    def waiting(self) -> int:
        """Number of queued requests, on both levels."""
        return super().waiting + self.columns.by_deadline[0]

    @property
    def full_credit_bytes(self) -> float:
        """D_full: the sum of t_i over one credit window."""
        full: float = interpreted(full_credit_bytes)(self.columns)
        return full

    @property
    def credit_bytes(self) -> float:
        """D; with hold, what the lower level may still take of promised requests."""
        if self.columns.counter[HOLDS]:
            return self.full_credit_bytes - self.columns.counter[LOWER_BYTES]
        return self.columns.value[CREDIT_BYTES]

    def set_slos(self, slos: Mapping[str, Slo], now: float) -> None:
        """Replace the SLOs; tags and deadlines that are already set do not change."""
        super().set_slos(slos, now)
        shortest_s = min((slo.latency_s for slo in slos.values()), default=1.0)
        self._run(_set_latencies, shortest_s)

    def _count_remote_service(self, index: int, now: float) -> None:
        if self.columns.counter[HOLDS] and not self.columns.counter[USES_LAYOUT]:
            self._run(_record_service, index, now)

    def share_storage(self, until_s: float, slack: float = inf) -> None:
        """Count on requests of other nodes at the storage, until a time."""
        self.columns.value[RIVALS_UNTIL_S] = until_s
        self.columns.value[RIVALS_SLACK] = slack


def make(
    slos: Mapping[str, Slo],
    now: float,
    window: float,
    credit: float,
    overload: str,
) -> TwoLevel:
    """Return a scheduler that starts at `now` (s)."""
    return TwoLevel(
        slos,
        now,
        window,
        credit,
        holds=overload == "hold",
    )
