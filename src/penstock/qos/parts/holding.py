# SPDX-License-Identifier: MIT
"""Hold requests for an application that is short of its promise.

An application with few processes may have all its requests at the storage, where those
of others are in front. It is *short* if it has had requests for `BUSY_S`, and is owed
more than 0.1 s of its promise and more than two requests; then until it is owed
nothing. Meanwhile requests beyond a promise (`penstock.qos.parts.promises`) are held
while it has a request at the storage, and for at most `THINK_S` after its last answer,
in which a blocking process issues the next request. This is the only time in which the
storage can be idle although requests wait.

An application that cannot use the favour (its own processes are too slow) must not hold
others for ever: if it gains less than half of its promise in `TRIAL_S`, nothing is held
for it during `PAUSE_S`.

Nothing is held while the storage cannot keep all promises.
"""

from __future__ import annotations

from typing import Final

from penstock.columns import remove_from_set
from penstock.kernels import part
from penstock.qos.interface import THINK_S
from penstock.qos.state import (
    CAPACITY_OVER_PROMISES,
    HOLD_UNTIL_S,
    SchedulerState,
)

__all__ = [
    "BUSY_S",
    "PAUSE_S",
    "TRIAL_S",
    "is_held",
    "is_short_of_capacity",
]

#: An application wants more service if it has had requests for this time (s).
BUSY_S: Final = 0.2
#: Time in which an application must gain from requests that are held for it (s).
TRIAL_S: Final = 2.0
#: After a trial without gain nothing is held for the application for this time (s).
PAUSE_S: Final = 16.0
#: An application is short if it is owed more than this (s) and more than two requests.
_SHORT_S: Final = 0.1
#: Least gain in a trial, as a fraction of the promise.
_MIN_GAIN: Final = 0.5


@part
def is_short_of_capacity(state: SchedulerState) -> bool:
    """Return True if the storage cannot keep all promises: s < 1."""
    return state.value[CAPACITY_OVER_PROMISES] < 1.0


@part
def is_held(state: SchedulerState, i: int, now: float) -> bool:
    """Return True if the next request of `i` waits for another application."""
    held = False
    if state.unqueued[0] > 0 and not is_short_of_capacity(state):
        held = _waits_for_short(state, now)
    if held and state.promise_s[i] > now:
        _hold_until(state, state.promise_s[i])
    return held


@part
def _is_active(state: SchedulerState, i: int, now: float) -> bool:
    """Return True if `i` has a request at the storage or will issue one soon."""
    return state.at_storage[i] > 0 or now < state.completed_s[i] + THINK_S


@part
def _waits_for_short(state: SchedulerState, now: float) -> bool:
    """Return True if an application with requests at the storage is short."""
    held = False
    for position in range(state.unqueued[0], 0, -1):
        i = state.unqueued[position]
        if not _is_active(state, i, now):
            remove_from_set(state.unqueued, state.unqueued_place, i)
        elif _is_short(state, i, now) and _helps(state, i, now):
            held = True
            if state.at_storage[i] == 0:
                _hold_until(state, state.completed_s[i] + THINK_S)
    return held


@part
def _hold_until(state: SchedulerState, time_s: float) -> None:
    """Let held requests be tried again at a time, or earlier."""
    state.value[HOLD_UNTIL_S] = min(state.value[HOLD_UNTIL_S], time_s)


@part
def _is_short(state: SchedulerState, i: int, now: float) -> bool:
    """Return True if `i` is owed much, or was and still is owed."""
    if now < state.busy_since_s[i] + BUSY_S:
        return False
    least_s = max(_SHORT_S, 2 * state.last_cost_bytes[i] / state.weight[i])
    if state.short[i]:
        least_s = 0.0
    state.short[i] = now - state.promise_s[i] > least_s
    return state.short[i] > 0


@part
def _helps(state: SchedulerState, i: int, now: float) -> bool:
    """Return False if `i` does not gain from the requests that are held for it."""
    if now < state.pause_until_s[i]:
        return False
    length_s = now - state.trial_since_s[i]
    is_tried = now - state.favoured_s[i] <= TRIAL_S
    if not is_tried or length_s > TRIAL_S:
        gain_s = state.finish_tag[i] - state.trial_tag[i]
        state.trial_since_s[i] = now
        state.trial_tag[i] = state.finish_tag[i]
        share = min(1.0, state.value[CAPACITY_OVER_PROMISES])
        if is_tried and gain_s < _MIN_GAIN * share * length_s:
            state.pause_until_s[i] = now + PAUSE_S
            state.short[i] = 0
            state.promise_s[i] = max(state.promise_s[i], now)
    state.favoured_s[i] = now
    return now >= state.pause_until_s[i]
