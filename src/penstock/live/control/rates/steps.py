# SPDX-License-Identifier: MIT
"""Kernels that apply the simulator's engine to live jobs, whose future is unknown.

The controller does not have its own code for lost time, active jobs or remaining
volumes. These kernels call those of `penstock.sim.engine` on an `EngineInput` and a
`State` of the simulator, with one storage target and one flow per job. Therefore the
controller decides exactly what the simulator decides, bit by bit.

A job has two entries in the columns of phases: its present work and operation, and the
end of the application. Between its operations the engine sees the job as an application
that has ended; a post moves it back to its first entry.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.kernels import kernel
from penstock.policies.rounding import is_full
from penstock.sim.containers import deactivate, pop_undecided, request_decision, set_due
from penstock.sim.engine import end_operation, grant, loss, observe, record_loss
from penstock.sim.engine import post as post_operation
from penstock.sim.state import (
    ACTIVE,
    GRANTED,
    LOGGED,
    NOW,
    UNDECIDED,
    EngineInput,
    State,
)

__all__ = [
    "begin_decision",
    "end_decision",
    "find_overdue",
    "finish",
    "post",
    "raise_volume",
    "update_operation",
]

#: A volume that proves too small is taken to be this part of the true one.
_DONE_PART: Final = 0.5


@kernel
def post(
    inputs: EngineInput, state: State, i: int, now: float, work: float, volume: float
) -> None:
    """Post an operation of job `i` after `work` seconds of work."""
    state.clock[NOW] = now
    state.counter[LOGGED] = 0
    state.position[i] = inputs.first[i]
    inputs.work[state.position[i]] = work
    inputs.volume[state.position[i]] = volume
    post_operation(inputs, state, i)


@kernel
def finish(
    inputs: EngineInput, state: State, i: int, at: float, volume: float, least: float
) -> None:
    """End the operation of job `i`, which had moved `volume` bytes `at` its end.

    `at` may lie in the past: the end of a phase is known only after a gap. The time
    counted as lost since then is given back, but the lost time does not fall below
    `least`, the time lost at the post.
    """
    state.clock[NOW] = at
    state.counter[LOGGED] = 0
    inputs.volume[inputs.first[i]] = volume
    request_decision(state, 0)
    if state.unfinished[i] > 0:
        state.lost_then[i] = max(loss(state, i, at), least)
        state.since[i] = at
        state.rate[i] = 0.0
        state.share[i] = 0.0
        state.remaining_then[i] = 0.0
        state.completion[i] = inf
        state.unfinished[i] = 0
        position = 0
        while state.flows_to_serve[position] != i:
            position += 1
        deactivate(inputs, state, 0, position)
        record_loss(inputs, state, i, at)
    end_operation(inputs, state, i)


@kernel
def update_operation(
    inputs: EngineInput, state: State, i: int, now: float, remaining: float, cap: float
) -> None:
    """Set what remains of the operation of job `i`, and its cap, from now on."""
    rate = state.rate[i]
    state.lost_then[i] = loss(state, i, now)
    state.since[i] = now
    state.remaining_then[i] = remaining
    state.share[i] = 1.0 if is_full(rate, cap) else rate / cap
    state.completion[i] = now + remaining / rate if rate > 0.0 else inf
    inputs.cap[i] = cap


@kernel
def begin_decision(inputs: EngineInput, state: State, now: float) -> int:
    """Update the active jobs to now; return their number if the policy must decide.

    Return -1 if nothing has happened: the last decision still holds.
    """
    state.clock[NOW] = now
    state.counter[GRANTED] = 0
    earliest = inf
    for position in range(state.flow_count[0]):
        f = state.flows_to_serve[position]
        if state.completion[f] <= now:
            raise_volume(state, f, now)
        earliest = min(earliest, state.completion[f])
    if state.wake[0] <= now:
        request_decision(state, 0)
    if state.counter[UNDECIDED] == 0:
        state.next_completion[0] = earliest
        set_due(inputs, state, 0)
        return -1
    pop_undecided(state)
    state.wake[0] = inf
    state.next_completion[0] = inf
    set_due(inputs, state, 0)
    state.counter[ACTIVE] = state.flow_count[0]
    observe(inputs, state, 0)
    return state.flow_count[0]


@kernel
def raise_volume(state: State, f: int, now: float) -> None:
    """Double the volume of `f`, which should be complete, until something remains.

    This is not an event: the policy sees the new volume at its next decision.
    """
    while state.completion[f] <= now:
        more = max(state.volume[f], 1.0) * (1.0 / _DONE_PART - 1.0)
        state.volume[f] += more
        state.remaining_then[f] += more
        state.completion[f] = state.since[f] + state.remaining_then[f] / state.rate[f]


@kernel
def end_decision(inputs: EngineInput, state: State, wake: float) -> int:
    """Grant the rates in `State.wanted` if they keep the contract; return a status."""
    state.wake[0] = wake
    status = grant(inputs, state, 0)
    set_due(inputs, state, 0)
    return status


@kernel
def find_overdue(state: State, now: float) -> int:
    """Find the jobs whose operations should be complete; return their number.

    They are the first entries of the working memory `State.order`, ascending.
    """
    count = 0
    for position in range(state.flow_count[0]):
        f = state.flows_to_serve[position]
        if state.completion[f] <= now:
            state.order[count] = f
            count += 1
    return count
