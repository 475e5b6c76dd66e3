# SPDX-License-Identifier: MIT
"""THE event loop: every simulated number of penstock comes out of `run`.

One turn of the loop is one *instant*: the earliest time at which an operation
completes, a work phase ends (and an operation is posted), or a wake-up that the
policy asked for is due. What happens at equal times, in this order:

1. the clock moves, before anything else sees it;
2. completions, by application index; what follows at once (a work phase of
   length 0, an operation of volume 0) belongs to the completion;
3. posts, by application index, likewise;
4. ONE decision of the policy, if any application is active. It holds until the
   next instant.

An instant with k active applications out of m costs O(k + log m), plus the
policy. Applications in a work phase are not touched.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final

from penstock.kernels import kernel, unpacker
from penstock.policies.view import Allocate, View
from penstock.sim.state import (
    ACTIVE,
    APPLICATION_ENDED,
    CAPACITY_EXCEEDED,
    COMPLETION,
    CULPRIT,
    DECISIONS,
    DONE,
    END_OF_APPLICATION,
    EVENTS,
    GRANTED,
    LOGGED,
    NEXT_COMPLETION,
    NOW,
    PAUSED,
    POST,
    PROGRESS_NOT_CONSERVED,
    RATE_NEGATIVE,
    RATE_OVER_CAP,
    RECORD_LIMIT,
    TIME_WENT_BACK,
    WAKE,
    WAKE_IN_THE_PAST,
    WAKE_UP,
    WINDOW_OPEN,
    WORKING,
    Program,
    State,
)

__all__ = ["run", "run_compiled", "start", "start_compiled"]

#: Relative excess over a cap or over B that rounding may cause.
TOLERANCE: Final = 1e-9


@kernel
def run(program: Program, state: State, allocate: Allocate, budget: int) -> int:
    """Advance the simulation by at most `budget` instants; return why it stopped.

    Nothing is kept but in `state`: calling again goes on where this call paused.
    """
    clock, counter = state.clock, state.counter
    # This is the main loop: one turn, one instant.
    for _ in range(budget):
        now = next_instant(state)
        if counter[WINDOW_OPEN] == 0 and now >= program.window_begin:
            open_window(program, state)
        if now >= program.window_end:
            close_window(program, state)
            return DONE
        if program.validate and now < clock[NOW]:
            return TIME_WENT_BACK
        clock[NOW] = now
        woken = now >= clock[WAKE]
        happened = counter[EVENTS]
        if woken:
            log(program, state, WAKE_UP, -1)
        if now >= clock[NEXT_COMPLETION]:
            complete_operations(program, state)
        while counter[WORKING] > 0 and state.work_end[state.working[0]] <= now:
            end_work(program, state, pop_working(state))
        if counter[CULPRIT] >= 0:
            return APPLICATION_ENDED
        if counter[EVENTS] == happened and not woken:
            # Only ends of applications: what was decided still holds.
            continue
        clock[WAKE] = inf
        clock[NEXT_COMPLETION] = inf
        if counter[ACTIVE] > 0:
            observe(state)
            clock[WAKE] = allocate(view(program, state), state.wanted)
            status = grant(program, state)
            if status != PAUSED:
                return status
        if program.validate and not progress_is_conserved(program, state):
            return PROGRESS_NOT_CONSERVED
        if counter[LOGGED] >= RECORD_LIMIT or counter[GRANTED] >= RECORD_LIMIT:
            return PAUSED
    return PAUSED


@kernel
def start(program: Program, state: State) -> None:
    """Set every application to the begin of its first work phase."""
    for i in range(program.applications):
        state.position[i] = program.first[i]
        begin_work(program, state, i, program.start[i])


@kernel
def next_instant(state: State) -> float:
    """Return when something happens next (s)."""
    instant = min(state.clock[NEXT_COMPLETION], state.clock[WAKE])
    if state.counter[WORKING] > 0:
        instant = min(instant, state.work_end[state.working[0]])
    return instant


# --- Phases: what an application does next ------------------------------------


@kernel
def begin_work(program: Program, state: State, i: int, now: float) -> None:
    """Put `i` among the working applications."""
    state.work_end[i] = now + program.work[state.position[i]]
    push_working(state, i)


@kernel
def end_work(program: Program, state: State, i: int) -> None:
    """End the work phase of `i` and begin what follows."""
    if not post(program, state, i):
        end_operation(program, state, i)


@kernel
def post(program: Program, state: State, i: int) -> bool:
    """Post the operation after the work of `i`; False if it has no volume.

    After its last work phase the application ends instead.
    """
    now = state.clock[NOW]
    here = state.position[i]
    volume = program.volume[here]
    state.work_done[i] += program.work[here]
    state.work_end[i] = inf
    if volume == END_OF_APPLICATION:
        state.finished[i] = now
        if now < program.ends_before:
            state.counter[CULPRIT] = i
        return True
    log(program, state, POST, i)
    state.posted[i] = now
    state.volume[i] = volume
    state.work_before[i] = program.work[here]
    state.rate[i] = 0.0
    state.share[i] = 0.0
    state.since[i] = now
    state.remaining_then[i] = volume
    state.lost_then[i] = state.lost[i]
    state.completion[i] = inf
    if volume > 0.0:
        activate(state, i)
    return volume > 0.0


@kernel
def complete_operations(program: Program, state: State) -> None:
    """Complete the operations that are due, by application index."""
    now = state.clock[NOW]
    position = 0
    while position < state.counter[ACTIVE]:
        i = state.active[position]
        if state.completion[i] > now:
            position += 1
            continue
        elapsed = now - state.since[i]
        state.lost[i] = state.lost_then[i] + elapsed * (1.0 - state.share[i])
        state.rate[i] = 0.0
        state.wanted[i] = 0.0
        record_grant(program, state, i)
        deactivate(state, position)
        end_operation(program, state, i)


@kernel
def end_operation(program: Program, state: State, i: int) -> None:
    """Account for the completed operation of `i` and begin what follows.

    Operations of volume 0 after work of length 0 complete at once, in a row.
    """
    posted = False
    while not posted:
        here = state.position[i]
        volume = program.volume[here]
        log(program, state, COMPLETION, i)
        state.transferred[i] += volume
        # Operations before any work are not iterations.
        if state.iterations[i] > 0 or program.work[here] > 0.0:
            state.iterations[i] += 1
            state.iteration_time[i] += program.work[here] + volume / program.cap[i]
        state.position[i] = here + 1
        if program.work[here + 1] > 0.0:
            begin_work(program, state, i, state.clock[NOW])
            return
        posted = post(program, state, i)


# --- The decision: what the policy sees, and what it is granted ----------------


@kernel
def observe(state: State) -> None:
    """Bring `remaining` and `lost` of the active applications up to now."""
    now = state.clock[NOW]
    for position in range(state.counter[ACTIVE]):
        i = state.active[position]
        elapsed = now - state.since[i]
        moved = state.rate[i] * elapsed
        state.remaining[i] = max(state.remaining_then[i] - moved, 0.0)
        state.lost[i] = state.lost_then[i] + elapsed * (1.0 - state.share[i])
        state.wanted[i] = 0.0


@kernel
def view(program: Program, state: State) -> View:
    """Return what a policy may see now."""
    return View(
        state.clock[NOW],
        program.capacity,
        program.window_begin,
        program.window_end,
        program.dedicated_events,
        program.applications,
        state.counter[ACTIVE],
        program.parameters,
        state.active,
        program.cap,
        state.remaining,
        state.volume,
        state.posted,
        program.release,
        state.lost,
        program.nodes,
        state.iterations,
        state.iteration_time,
        state.work_before,
        program.period,
        program.user,
        program.group,
        state.key,
        state.order,
        state.scratch,
    )


@kernel
def grant(program: Program, state: State) -> int:
    """Hold the rates that the policy wants from now on, if they are lawful.

    Only a change of rate settles an operation: one that is served at a constant
    rate completes exactly when it was first said to.
    """
    now = state.clock[NOW]
    state.counter[DECISIONS] += 1
    total = 0.0
    earliest = inf
    for position in range(state.counter[ACTIVE]):
        i = state.active[position]
        cap = program.cap[i]
        rate = state.wanted[i]
        if not rate <= cap:
            if not rate <= cap * (1.0 + TOLERANCE):
                state.counter[CULPRIT] = i
                return RATE_OVER_CAP
            rate = cap
        if rate < 0.0:
            state.counter[CULPRIT] = i
            return RATE_NEGATIVE
        total += rate
        if rate != state.rate[i]:
            state.since[i] = now
            state.remaining_then[i] = state.remaining[i]
            state.lost_then[i] = state.lost[i]
            state.rate[i] = rate
            state.share[i] = rate / cap
            state.completion[i] = now + state.remaining[i] / rate if rate > 0.0 else inf
            record_grant(program, state, i)
        earliest = min(earliest, state.completion[i])
    state.clock[NEXT_COMPLETION] = earliest
    if total > program.capacity * (1.0 + TOLERANCE):
        return CAPACITY_EXCEEDED
    if not state.clock[WAKE] > now:
        return WAKE_IN_THE_PAST
    return PAUSED


# --- The window: what is measured ----------------------------------------------


@kernel
def open_window(program: Program, state: State) -> None:
    """Note work done and volume transferred at the begin of the window."""
    begin = program.window_begin
    state.counter[WINDOW_OPEN] = 1
    for i in range(program.applications):
        state.begin_work[i] = state.work_done[i] + partial_work(
            program, state, i, begin
        )
        state.begin_transferred[i] = state.transferred[i]
    for position in range(state.counter[ACTIVE]):
        i = state.active[position]
        state.begin_transferred[i] += partial_volume(state, i, begin)


@kernel
def close_window(program: Program, state: State) -> None:
    """Cut the run at the end of the window; partial phases count pro rata."""
    end = program.window_end
    state.clock[NOW] = end
    for i in range(program.applications):
        state.work_done[i] += partial_work(program, state, i, end)
    for position in range(state.counter[ACTIVE]):
        i = state.active[position]
        state.transferred[i] += partial_volume(state, i, end)
        elapsed = end - state.since[i]
        state.lost[i] = state.lost_then[i] + elapsed * (1.0 - state.share[i])


@kernel
def partial_work(program: Program, state: State, i: int, now: float) -> float:
    """Return how much of its current work phase `i` has done (s)."""
    return max(program.work[state.position[i]] - (state.work_end[i] - now), 0.0)


@kernel
def partial_volume(state: State, i: int, now: float) -> float:
    """Return how much of its current operation active `i` has done (bytes)."""
    left = state.remaining_then[i] - state.rate[i] * (now - state.since[i])
    return state.volume[i] - max(left, 0.0)


@kernel
def progress_is_conserved(program: Program, state: State) -> bool:
    """Tell whether work + volume / b + lost time is the age, for every application."""
    now = state.clock[NOW]
    for position in range(state.counter[ACTIVE]):
        i = state.active[position]
        age = now - program.release[i]
        done = state.transferred[i] + partial_volume(state, i, now)
        progress = state.work_done[i] + done / program.cap[i]
        gap = abs(progress + state.lost[i] - age)
        if state.lost[i] < 0.0 or gap > TOLERANCE * max(age, 1.0):
            state.counter[CULPRIT] = i
            return False
    return True


# --- Containers ------------------------------------------------------------------


@kernel
def activate(state: State, i: int) -> None:
    """Insert `i` into the ascending list of active applications."""
    slot = state.counter[ACTIVE]
    state.counter[ACTIVE] = slot + 1
    while slot > 0 and state.active[slot - 1] > i:
        state.active[slot] = state.active[slot - 1]
        slot -= 1
    state.active[slot] = i


@kernel
def deactivate(state: State, position: int) -> None:
    """Remove the application at `position` from the list of active ones."""
    last = state.counter[ACTIVE] - 1
    state.counter[ACTIVE] = last
    for slot in range(position, last):
        state.active[slot] = state.active[slot + 1]


@kernel
def push_working(state: State, i: int) -> None:
    """Add `i` to the heap of working applications."""
    slot = state.counter[WORKING]
    state.counter[WORKING] = slot + 1
    heap = state.working
    while slot > 0:
        parent = (slot - 1) // 2
        if not ends_before(state, i, heap[parent]):
            break
        heap[slot] = heap[parent]
        slot = parent
    heap[slot] = i


@kernel
def pop_working(state: State) -> int:
    """Remove and return the application whose work ends first."""
    heap = state.working
    size = state.counter[WORKING] - 1
    state.counter[WORKING] = size
    first = heap[0]
    i = heap[size]
    slot = 0
    while True:
        child = 2 * slot + 1
        if child >= size:
            break
        if child + 1 < size and ends_before(state, heap[child + 1], heap[child]):
            child += 1
        if not ends_before(state, heap[child], i):
            break
        heap[slot] = heap[child]
        slot = child
    heap[slot] = i
    return first


@kernel
def ends_before(state: State, i: int, j: int) -> bool:
    """Tell whether the work of `i` ends before that of `j`; ties by index."""
    return state.work_end[i] < state.work_end[j] or (
        state.work_end[i] == state.work_end[j] and i < j
    )


# --- Record ----------------------------------------------------------------------


@kernel
def log(program: Program, state: State, kind: int, i: int) -> None:
    """Count an event, and keep it if a record is asked for."""
    if kind != WAKE_UP:
        state.counter[EVENTS] += 1
    if program.record:
        entry = state.counter[LOGGED]
        state.log_time[entry] = state.clock[NOW]
        state.log_kind[entry] = kind
        state.log_application[entry] = i
        state.counter[LOGGED] = entry + 1


@kernel
def record_grant(program: Program, state: State, i: int) -> None:
    """Keep the change of the bandwidth that `i` holds, if a record is asked for."""
    if program.record:
        entry = state.counter[GRANTED]
        state.grant_time[entry] = state.clock[NOW]
        state.grant_application[entry] = i
        state.grant_rate[entry] = state.rate[i]
        state.counter[GRANTED] = entry + 1


# --- Compiled entry ----------------------------------------------------------------

_program = unpacker(Program)
_state = unpacker(State)


@kernel
def run_compiled(program: Any, state: Any, allocate: Allocate, budget: int) -> int:
    """`run` for the words of `penstock.kernels.addresses`."""
    return run(_program(program), _state(state), allocate, budget)


@kernel
def start_compiled(program: Any, state: Any) -> None:
    """`start` for the words of `penstock.kernels.addresses`."""
    start(_program(program), _state(state))
