# SPDX-License-Identifier: MIT
"""The main loop of the simulator: `run` computes every simulated number.

An application alternates work phases and I/O operations. An operation is striped over
the application's storage targets; its part on one target is called a *flow*. Flows
are independent of each other. An operation completes when its last flow is done
(target allocation, section 3.2.2). With a single target, the case of bandwidth
sharing, an application has one flow, and both have the same index.

One iteration of the loop handles one *instant*: the earliest time at which a flow is
done, a work phase ends (the application then posts its next operation), or a wake-up
that the policy has asked for is due. Events at equal times belong to the same instant.
Times that are equal in exact arithmetic may differ in doubles. So the instant also
takes in the events that follow within 2^-40 (1e-12) of the simulated time, some
thousand times the rounding error (`penstock.policies.rounding.instant_end`). They
happen at the time of the first one. Events are handled in this order:

1. The clock is set to the instant. All later steps see the new time.
2. Wake-ups and flows that are done: by target index, within a target by application
   index. A wake-up comes before the flows of its target.
3. Work phases that end: by time, then by application index.
4. ONE decision of the policy for every target at which an event has happened,
   if the target has flows to serve. The targets are independent, so the order of their
   decisions does not matter. A decision holds until the next event at its target.

In steps 2 and 3 an application continues at once with what takes no time: a work phase
of length 0 and an operation of volume 0 end at the instant at which they begin, before
the next application is handled.

For m applications, N targets, and k flows of the applications on the targets that need
a decision, an instant costs O(k + log m + log N), plus the time of the policy.
Applications in a work phase and all other targets cost nothing.
"""

from __future__ import annotations

from math import inf
from typing import Any

from penstock.kernels import inlined, kernel, unpacker
from penstock.policies.ask import (
    CAPACITY_EXCEEDED,
    LAWFUL,
    RATE_NEGATIVE,
    RATE_OVER_CAP,
    TOLERANCE,
    WAKE_IN_THE_PAST,
    is_over,
    is_past,
)
from penstock.policies.rounding import instant_end, is_full
from penstock.policies.view import Allocate, View
from penstock.sim.containers import (
    activate,
    deactivate,
    pop_undecided,
    pop_working,
    push_working,
    request_decision,
    set_due,
)
from penstock.sim.state import (
    ACTIVE,
    APPLICATION_ENDED,
    COMPLETION,
    DECISIONS,
    DONE,
    END_OF_APPLICATION,
    ENDED,
    EVENTS,
    FAULTY_INDEX,
    GRANTED,
    LOGGED,
    NOW,
    PAUSED,
    POST,
    PROGRESS_NOT_CONSERVED,
    RECORD_LIMIT,
    TIME_WENT_BACK,
    UNDECIDED,
    WAKE_UP,
    WINDOW_OPEN,
    WORKING,
    EngineInput,
    State,
)

__all__ = ["run", "run_compiled", "start", "start_compiled"]


# This is the main loop of the simulator. Each iteration handles one instant.
@kernel
def run(inputs: EngineInput, state: State, allocate: Allocate, budget: int) -> int:
    """Advance the simulation by at most `budget` instants; return why it stopped.

    The result is a status of `penstock.sim.state`: `PAUSED`, `DONE` or an error. All
    progress is in `state`; after `PAUSED`, another call continues from there.
    """
    clock, counter = state.clock, state.counter
    for _ in range(budget):
        now = next_instant(state)
        until = instant_end(now, inputs.origin)
        if counter[WINDOW_OPEN] == 0 and now >= inputs.window_begin:
            open_window(inputs, state)
        if until >= inputs.window_end:
            close_window(inputs, state, inputs.window_end)
            return DONE
        if inputs.validate and now < clock[NOW]:
            return TIME_WENT_BACK
        clock[NOW] = now
        if state.due[1] <= until:
            handle_due_targets(inputs, state, until)
        while counter[WORKING] > 0 and state.work_end[state.working[0]] <= until:
            end_work(inputs, state, pop_working(state))
        if counter[FAULTY_INDEX] >= 0:
            return APPLICATION_ENDED
        if inputs.until_first_end and counter[ENDED] > 0:
            close_window(inputs, state, now)
            return DONE
        # If applications have only ended, no target needs a decision, and the last
        # decisions still hold.
        while counter[UNDECIDED] > 0:
            target = pop_undecided(state)
            status = decide(inputs, state, allocate, target)
            if status != LAWFUL:
                return status
        if counter[LOGGED] >= RECORD_LIMIT or counter[GRANTED] >= RECORD_LIMIT:
            return PAUSED
    return PAUSED


@kernel
def start(inputs: EngineInput, state: State) -> None:
    """Put every application at the beginning of its first work phase."""
    for i in range(inputs.applications):
        state.position[i] = inputs.first[i]
        begin_work(inputs, state, i, inputs.start[i])


@inlined
def next_instant(state: State) -> float:
    """Return the time of the next instant (s)."""
    instant = state.due[1]
    if state.counter[WORKING] > 0:
        instant = min(instant, state.work_end[state.working[0]])
    return instant


# --- Phases of an application ---------------------------------------------------


@inlined
def begin_work(inputs: EngineInput, state: State, i: int, now: float) -> None:
    """Begin the current work phase of application `i` at `now` (s)."""
    state.work_end[i] = now + inputs.work[state.position[i]]
    push_working(state, i)


@inlined
def end_work(inputs: EngineInput, state: State, i: int) -> None:
    """End the work phase of application `i` and begin what follows it."""
    if not post(inputs, state, i):
        end_operation(inputs, state, i)


@inlined
def post(inputs: EngineInput, state: State, i: int) -> bool:
    """Post the operation that follows the current work phase of application `i`.

    Return False if the operation has volume 0 and so is already complete. After its
    last work phase the application ends instead.
    """
    now = state.clock[NOW]
    here = state.position[i]
    volume = inputs.volume[here]
    state.work_done[i] += inputs.work[here]
    state.work_end[i] = inf
    if volume == END_OF_APPLICATION:
        state.finished[i] = now
        state.counter[ENDED] += 1
        if now < inputs.ends_before:
            state.counter[FAULTY_INDEX] = i
        return True
    log(inputs, state, POST, i)
    for f in range(inputs.first_flow[i], inputs.first_flow[i + 1]):
        state.posted[f] = now
        state.volume[f] = volume * inputs.portion[f]
        state.work_before[f] = inputs.work[here]
        state.rate[f] = 0.0
        state.share[f] = 0.0
        state.since[f] = now
        state.remaining_then[f] = state.volume[f]
        state.lost_then[f] = state.lost[f]
        state.completion[f] = inf
        request_decision(state, inputs.target[f])
        if volume > 0.0:
            state.unfinished[i] += 1
            activate(inputs, state, f)
    return volume > 0.0


@inlined
def handle_due_targets(inputs: EngineInput, state: State, until: float) -> None:
    """Handle the targets with a wake-up or a done flow up to `until`, by target index.

    `due` is a tree of minima in an array: entry 1 is the root, the children of entry
    j are entries 2 j and 2 j + 1, and the leaves are the targets.
    """
    due, leaves = state.due, inputs.leaves
    entry = 1
    while entry > 0 and due[1] <= until:
        if due[entry] <= until and entry < leaves:
            entry = 2 * entry
            continue
        if due[entry] <= until:
            handle_due_target(inputs, state, entry - leaves, until)
        # Go to the next subtree to the right; entry 0: there is none.
        while entry % 2 == 1:
            entry = entry // 2
        if entry > 0:
            entry += 1


@inlined
def handle_due_target(
    inputs: EngineInput, state: State, target: int, until: float
) -> None:
    """Request a decision; log the wake-up and finish the done flows that are due."""
    request_decision(state, target)
    if state.wake[target] <= until:
        log(inputs, state, WAKE_UP, -1)
    if state.next_completion[target] <= until:
        finish_flows(inputs, state, target, until)


@inlined
def finish_flows(inputs: EngineInput, state: State, target: int, until: float) -> None:
    """Finish the flows on `target` that are done by `until`, by application index."""
    now = state.clock[NOW]
    begin = inputs.first_entry[target]
    position = 0
    while position < state.flow_count[target]:
        f = state.flows_to_serve[begin + position]
        if state.completion[f] > until:
            position += 1
            continue
        # From now on the flow loses time, until the last flow of its operation
        # is done.
        state.lost_then[f] = loss(state, f, now)
        state.since[f] = now
        state.rate[f] = 0.0
        state.share[f] = 0.0
        state.remaining_then[f] = 0.0
        state.wanted[f] = 0.0
        state.completion[f] = inf
        record_grant(inputs, state, f)
        deactivate(inputs, state, target, position)
        i = inputs.owner[f]
        state.unfinished[i] -= 1
        if state.unfinished[i] == 0:
            record_loss(inputs, state, i, now)
            end_operation(inputs, state, i)


@inlined
def end_operation(inputs: EngineInput, state: State, i: int) -> None:
    """Complete the operation of application `i` and begin what follows it.

    The loop also completes all following operations of volume 0 that come after work
    of length 0.
    """
    posted = False
    while not posted:
        here = state.position[i]
        volume = inputs.volume[here]
        log(inputs, state, COMPLETION, i)
        state.transferred[i] += volume
        for f in range(inputs.first_flow[i], inputs.first_flow[i + 1]):
            # What precedes the first operation is not an iteration: see `View`.
            if state.operations[f] > 0:
                state.iterations[f] += 1
                length = inputs.work[here] + volume / inputs.bandwidth[i]
                state.iteration_time[f] += length
            state.operations[f] += 1
        state.position[i] = here + 1
        if inputs.work[here + 1] > 0.0:
            begin_work(inputs, state, i, state.clock[NOW])
            return
        posted = post(inputs, state, i)


# --- The decision of the policy -------------------------------------------------


@inlined
def decide(inputs: EngineInput, state: State, allocate: Allocate, target: int) -> int:
    """Ask the policy how to share `target` from now on; return a status."""
    state.wake[target] = inf
    state.next_completion[target] = inf
    state.counter[ACTIVE] = state.flow_count[target]
    status = LAWFUL
    if state.counter[ACTIVE] > 0:
        observe(inputs, state, target)
        state.wake[target] = allocate(view(inputs, state), state.wanted)
        status = grant(inputs, state, target)
    set_due(inputs, state, target)
    if (
        inputs.validate
        and status == LAWFUL
        and not progress_is_conserved(inputs, state)
    ):
        return PROGRESS_NOT_CONSERVED
    return status


@inlined
def observe(inputs: EngineInput, state: State, target: int) -> None:
    """Update the flows on `target` to now, and make them the active ones."""
    now = state.clock[NOW]
    begin = inputs.first_entry[target]
    for position in range(state.counter[ACTIVE]):
        f = state.flows_to_serve[begin + position]
        state.active[position] = f
        moved = state.rate[f] * (now - state.since[f])
        state.remaining[f] = max(state.remaining_then[f] - moved, 0.0)
        state.lost[f] = application_loss(inputs, state, inputs.owner[f], now)
        state.wanted[f] = 0.0


@inlined
def loss(state: State, f: int, now: float) -> float:
    """Return the time that flow `f` alone has lost by now (s).

    This is the time that the application lost before the current operation, plus the
    integral of 1 - alpha over the operation, where alpha is the rate as a fraction of
    the cap.
    """
    return state.lost_then[f] + (now - state.since[f]) * (1.0 - state.share[f])


@inlined
def application_loss(inputs: EngineInput, state: State, i: int, now: float) -> float:
    """Return the time that application `i` has lost by now: the mean of its flows (s).

    All flows of an application have the same volume and the same cap. So the mean of
    their alphas is the fraction of b_i at which the application transfers.
    """
    begin, end = inputs.first_flow[i], inputs.first_flow[i + 1]
    total = loss(state, begin, now)
    if end - begin == 1:
        return total
    for f in range(begin + 1, end):
        total += loss(state, f, now)
    return total / (end - begin)


@inlined
def record_loss(inputs: EngineInput, state: State, i: int, now: float) -> None:
    """Store the time that application `i` has lost at the end of its operation."""
    lost = application_loss(inputs, state, i, now)
    for f in range(inputs.first_flow[i], inputs.first_flow[i + 1]):
        state.lost[f] = lost


@inlined
def view(inputs: EngineInput, state: State) -> View:
    """Return the view for a policy, of the target that `observe` has updated."""
    return View(
        state.clock[NOW],
        inputs.capacity,
        inputs.window_begin,
        inputs.window_end,
        inputs.dedicated_events,
        inputs.entries,
        state.counter[ACTIVE],
        inputs.parameters,
        state.active,
        inputs.cap,
        state.remaining,
        state.volume,
        state.posted,
        inputs.release,
        state.lost,
        inputs.nodes,
        state.operations,
        state.iterations,
        state.iteration_time,
        state.work_before,
        inputs.period,
        inputs.user,
        inputs.group,
        state.key,
        state.order,
        state.scratch,
    )


@inlined
def grant(inputs: EngineInput, state: State, target: int) -> int:
    """Check the rates that the policy wants and let them hold from now on.

    Return `LAWFUL`, or how the policy broke its contract (`penstock.policies.ask`).
    A flow is updated only when its rate changes. So a flow with a constant rate is
    done exactly at the time that was computed first, without rounding errors.
    """
    now = state.clock[NOW]
    state.counter[DECISIONS] += 1
    total = 0.0
    earliest = inf
    for position in range(state.counter[ACTIVE]):
        f = state.active[position]
        cap = inputs.cap[f]
        rate = state.wanted[f]
        if is_full(rate, cap):
            if is_over(rate, cap):
                state.counter[FAULTY_INDEX] = f
                return RATE_OVER_CAP
            # Rounding may have put the rate above the cap, or just below it: then an
            # application that was never delayed would lose time.
            rate = cap
        elif rate < 0.0:
            state.counter[FAULTY_INDEX] = f
            return RATE_NEGATIVE
        total += rate
        if rate != state.rate[f]:
            state.lost_then[f] = loss(state, f, now)
            state.since[f] = now
            state.remaining_then[f] = state.remaining[f]
            state.rate[f] = rate
            state.share[f] = rate / cap
            state.completion[f] = now + state.remaining[f] / rate if rate > 0.0 else inf
            record_grant(inputs, state, f)
        earliest = min(earliest, state.completion[f])
    state.next_completion[target] = earliest
    if is_over(total, inputs.capacity):
        return CAPACITY_EXCEEDED
    if is_past(state.wake[target], now):
        return WAKE_IN_THE_PAST
    return LAWFUL


# --- The measured window --------------------------------------------------------


@inlined
def open_window(inputs: EngineInput, state: State) -> None:
    """Store the work and volume that were done when the window begins."""
    begin = inputs.window_begin
    state.counter[WINDOW_OPEN] = 1
    for i in range(inputs.applications):
        state.begin_work[i] = state.work_done[i] + partial_work(inputs, state, i, begin)
        state.begin_transferred[i] = state.transferred[i]
        if state.unfinished[i] > 0:
            state.begin_transferred[i] += partial_volume(inputs, state, i, begin)
    for target in range(inputs.targets):
        state.occupied[target] = 0.0
        state.occupied_since[target] = begin


@inlined
def close_window(inputs: EngineInput, state: State, end: float) -> None:
    """End the run at `end` (s); phases that are not complete count pro rata."""
    state.clock[NOW] = end
    for i in range(inputs.applications):
        state.work_done[i] += partial_work(inputs, state, i, end)
        if state.unfinished[i] > 0:
            state.transferred[i] += partial_volume(inputs, state, i, end)
            record_loss(inputs, state, i, end)
    for target in range(inputs.targets):
        if state.flow_count[target] > 0:
            state.occupied[target] += end - state.occupied_since[target]


@inlined
def partial_work(inputs: EngineInput, state: State, i: int, now: float) -> float:
    """Return the part of the current work phase that application `i` has done (s)."""
    return max(inputs.work[state.position[i]] - (state.work_end[i] - now), 0.0)


@inlined
def partial_volume(inputs: EngineInput, state: State, i: int, now: float) -> float:
    """Return the volume that the current operation of `i` has transferred (bytes)."""
    volume = 0.0
    for f in range(inputs.first_flow[i], inputs.first_flow[i + 1]):
        left = state.remaining_then[f] - state.rate[f] * (now - state.since[f])
        volume += (state.volume[f] - max(left, 0.0)) * inputs.unit[f]
    return volume


@inlined
def progress_is_conserved(inputs: EngineInput, state: State) -> bool:
    """Check: work + volume / b_i + lost time = age, for every active application.

    Return False, and the flow in `FAULTY_INDEX`, if this does not hold.
    """
    now = state.clock[NOW]
    for position in range(state.counter[ACTIVE]):
        f = state.active[position]
        i = inputs.owner[f]
        age = now - inputs.release[f]
        done = state.transferred[i] + partial_volume(inputs, state, i, now)
        progress = state.work_done[i] + done / inputs.bandwidth[i]
        lost = application_loss(inputs, state, i, now)
        gap = abs(progress + lost - age)
        if lost < 0.0 or gap > TOLERANCE * max(age, 1.0):
            state.counter[FAULTY_INDEX] = f
            return False
    return True


# --- The record -----------------------------------------------------------------


@inlined
def log(inputs: EngineInput, state: State, kind: int, i: int) -> None:
    """Count an event of application `i`; log it if a record is kept."""
    if kind != WAKE_UP:
        state.counter[EVENTS] += 1
    if inputs.record:
        entry = state.counter[LOGGED]
        state.log_time[entry] = state.clock[NOW]
        state.log_kind[entry] = kind
        state.log_application[entry] = i
        state.counter[LOGGED] = entry + 1


@inlined
def record_grant(inputs: EngineInput, state: State, f: int) -> None:
    """Log the new rate of flow `f`, if a record is kept."""
    if inputs.record:
        entry = state.counter[GRANTED]
        state.grant_time[entry] = state.clock[NOW]
        state.grant_application[entry] = inputs.owner[f]
        state.grant_target[entry] = inputs.target[f]
        state.grant_rate[entry] = state.rate[f] * inputs.unit[f]
        state.counter[GRANTED] = entry + 1


# --- Entry points of the compiled engine ----------------------------------------

_input = unpacker(EngineInput)
_state = unpacker(State)


@kernel
def run_compiled(inputs: Any, state: Any, allocate: Allocate, budget: int) -> int:
    """Call `run` with structs as words of `penstock.kernels.compiler.addresses`."""
    return run(_input(inputs), _state(state), allocate, budget)


@kernel
def start_compiled(inputs: Any, state: Any) -> None:
    """Call `start` with structs as words of `penstock.kernels.compiler.addresses`."""
    start(_input(inputs), _state(state))
