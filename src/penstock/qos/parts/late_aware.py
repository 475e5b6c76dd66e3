# SPDX-License-Identifier: MIT
"""The requests of one application, late ones last while the storage is short.

The functions here belong to `penstock.qos.parts.promises`. There, s is the measured
capacity of the storage divided by the sum of the throughputs t_i.

While s >= 1 the storage can keep all promises, and nothing is treated as late.

While s < 1 some requests must be late. If all applications wait equally, all are
late. So some requests wait longer, and the others are in time: a 95th percentile
ignores 5 % of the requests. The rules are:

1. A request is *late* when it can no longer be answered before its deadline. It moves
   to the late queue of its application, behind the requests that can be in time.
2. An application that has only late requests *yields* its turn, if they have piled up:
   if their cost exceeds t_i l_i plus one request; within l_i no more arrives while
   the application keeps to t_i.
3. A yielding application keeps its promise clock and its start tag, so the service
   that it missed is owed to it: its next request that can be in time goes before those
   of applications that are owed less. An application that is owed more than `LAG_S`
   seconds of its throughput does not yield until it has caught up. So shares hold
   except for `LAG_S`, and late requests are sent in batches.
4. Late requests are also sent when no other application has a request and the storage
   has room, and in every `LATE_TURN`-th turn of their application. So none starves.

A late request gets a new deadline, now + l_i, when it is sent.

Source: not in two-level scheduling; this is our extension for ``overload=hold``.
"""

from __future__ import annotations

from typing import Final

from penstock.columns import append_to_list, pop_from_list
from penstock.kernels import part
from penstock.qos.state import SchedulerState, unqueue_request

__all__ = ["LAG_S", "LATE_TURN", "has_requests", "move_late", "take_request", "yields"]

#: An application may fall behind its share by this many seconds of its throughput.
LAG_S: Final = 1.0
#: Serve one late request in every 40 turns of an application: 2.5 %, half of what a
#: 95th percentile ignores.
LATE_TURN: Final = 40
#: Upper bound, as a fraction of l_i, of the time in the lower level that is assumed
#: when a request is tested for lateness.
_MAX_LOWER_LEVEL_SHARE: Final = 0.5


@part
def has_requests(state: SchedulerState, i: int) -> bool:
    """Return True if application `i` has queued requests, in time or late."""
    return state.first[i] >= 0 or state.late_first[i] >= 0


@part
def move_late(state: SchedulerState, i: int, now: float) -> None:
    """Move the requests of `i` that can no longer be in time to its late queue."""
    earliest_s = now + min(
        state.lower_level_s[i], _MAX_LOWER_LEVEL_SHARE * state.latency_s[i]
    )
    while state.first[i] >= 0 and state.deadline_s[state.first[i]] < earliest_s:
        slot = unqueue_request(state, i)
        append_to_list(state.late_first, state.late_last, state.link, i, slot)
        state.late_count[i] += 1


@part
def yields(state: SchedulerState, i: int, owed_s: float) -> bool:
    """Return True if `i` yields its turn (rules 2 and 3 of the module).

    `owed_s` is the service that it is owed, in seconds of its throughput.
    """
    if state.first[i] >= 0:
        return False
    allowed_s = 0.0 if state.catching_up[i] else LAG_S
    state.catching_up[i] = owed_s > allowed_s
    if state.catching_up[i]:
        return False
    late_bytes = state.late_count[i] * state.last_cost_bytes[i]
    usual_bytes = state.weight[i] * state.latency_s[i] + state.last_cost_bytes[i]
    return late_bytes > usual_bytes


@part
def take_request(state: SchedulerState, i: int, now: float, late_last: bool) -> int:  # noqa: FBT001
    """Remove and return the next request of `i`; a late one gets a new deadline.

    With `late_last`, late requests go last, except in every `LATE_TURN`-th turn.
    """
    state.turns[i] += 1
    in_time_first = late_last and state.turns[i] % LATE_TURN != 0
    if state.first[i] >= 0 and (in_time_first or state.late_first[i] < 0):
        return unqueue_request(state, i)
    slot = pop_from_list(state.late_first, state.link, i)
    state.late_count[i] -= 1
    state.deadline_s[slot] = now + state.latency_s[i]
    return slot
