# SPDX-License-Identifier: MIT
"""THE event loop: every simulated number of penstock comes out of `run`.

An application's operations are striped over its storage targets: a *flow* is the
part of an operation that goes to one target. Flows are independent; the operation
completes with the last of them (papers/2 section 3.2.2). With a single target,
the case of papers/1, flow and application are the same.

One turn of the loop is one *instant*: the earliest time at which a flow is done, a
work phase ends (and an operation is posted), or a wake-up that the policy asked
for is due. What happens at equal times, in this order:

1. the clock moves, before anything else sees it;
2. wake-ups and flows that are done, by target, then by application; what follows
   at once (a work phase of length 0, an operation of volume 0) belongs to it;
3. posts, by application index, likewise;
4. ONE decision of the policy for every target that was touched, if it has any
   flow to serve. It holds until that target is touched again.

An instant costs O(k + log m + log N) for m applications, N targets and k flows of
the applications on the targets that are touched, plus the policy. Applications in
a work phase and all other targets are not looked at.
"""

from __future__ import annotations

from math import inf
from typing import Any

from penstock.kernels import inlined, kernel, unpacker
from penstock.policies.ask import (
    CAPACITY_EXCEEDED,
    RATE_NEGATIVE,
    RATE_OVER_CAP,
    TOLERANCE,
    WAKE_IN_THE_PAST,
    is_over,
    is_past,
)
from penstock.policies.view import Allocate, View
from penstock.sim.state import (
    ACTIVE,
    APPLICATION_ENDED,
    COMPLETION,
    CULPRIT,
    DECISIONS,
    DONE,
    END_OF_APPLICATION,
    ENDED,
    EVENTS,
    GRANTED,
    LOGGED,
    NOW,
    PAUSED,
    POST,
    PROGRESS_NOT_CONSERVED,
    RECORD_LIMIT,
    TIME_WENT_BACK,
    TOUCHED,
    WAKE_UP,
    WINDOW_OPEN,
    WORKING,
    Program,
    State,
)

__all__ = ["run", "run_compiled", "start", "start_compiled"]


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
            close_window(program, state, program.window_end)
            return DONE
        if program.validate and now < clock[NOW]:
            return TIME_WENT_BACK
        clock[NOW] = now
        touch_due_targets(program, state)
        while counter[WORKING] > 0 and state.work_end[state.working[0]] <= now:
            end_work(program, state, pop_working(state))
        if counter[CULPRIT] >= 0:
            return APPLICATION_ENDED
        if program.until_first_end and counter[ENDED] > 0:
            close_window(program, state, now)
            return DONE
        # None is touched if there were only ends of applications: what was
        # decided still holds.
        while counter[TOUCHED] > 0:
            target = pop_touched(state)
            status = decide(program, state, allocate, target)
            if status != PAUSED:
                return status
        if counter[LOGGED] >= RECORD_LIMIT or counter[GRANTED] >= RECORD_LIMIT:
            return PAUSED
    return PAUSED


@kernel
def start(program: Program, state: State) -> None:
    """Set every application to the begin of its first work phase."""
    for i in range(program.applications):
        state.position[i] = program.first[i]
        begin_work(program, state, i, program.start[i])


@inlined
def next_instant(state: State) -> float:
    """Return when something happens next (s)."""
    instant = state.due[1]
    if state.counter[WORKING] > 0:
        instant = min(instant, state.work_end[state.working[0]])
    return instant


# --- Phases: what an application does next ------------------------------------


@inlined
def begin_work(program: Program, state: State, i: int, now: float) -> None:
    """Put `i` among the working applications."""
    state.work_end[i] = now + program.work[state.position[i]]
    push_working(state, i)


@inlined
def end_work(program: Program, state: State, i: int) -> None:
    """End the work phase of `i` and begin what follows."""
    if not post(program, state, i):
        end_operation(program, state, i)


@inlined
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
        state.counter[ENDED] += 1
        if now < program.ends_before:
            state.counter[CULPRIT] = i
        return True
    log(program, state, POST, i)
    for f in range(program.first_flow[i], program.first_flow[i + 1]):
        state.posted[f] = now
        state.volume[f] = volume * program.portion[f]
        state.work_before[f] = program.work[here]
        state.rate[f] = 0.0
        state.share[f] = 0.0
        state.since[f] = now
        state.remaining_then[f] = state.volume[f]
        state.lost_then[f] = state.lost[f]
        state.completion[f] = inf
        touch(state, program.target[f])
        if volume > 0.0:
            state.unfinished[i] += 1
            activate(program, state, f)
    return volume > 0.0


@inlined
def touch_due_targets(program: Program, state: State) -> None:
    """Touch the targets that asked to be woken or on which a flow is done, in order.

    `due` is a tree of minima: entry 1 is the root, the children of entry j are
    entries 2 j and 2 j + 1, and the leaves are the targets.
    """
    now = state.clock[NOW]
    due, leaves = state.due, program.leaves
    entry = 1
    while entry > 0 and due[1] <= now:
        if due[entry] <= now and entry < leaves:
            entry = 2 * entry
            continue
        if due[entry] <= now:
            touch_due_target(program, state, entry - leaves)
        # The next subtree to the right; 0 when there is none.
        while entry % 2 == 1:
            entry = entry // 2
        if entry > 0:
            entry += 1


@inlined
def touch_due_target(program: Program, state: State, target: int) -> None:
    """Wake `target` or finish its flows that are done, whichever is due."""
    now = state.clock[NOW]
    touch(state, target)
    if state.wake[target] <= now:
        log(program, state, WAKE_UP, -1)
    if state.next_completion[target] <= now:
        finish_flows(program, state, target)


@inlined
def finish_flows(program: Program, state: State, target: int) -> None:
    """Finish the flows that are done on `target`, by application index."""
    now = state.clock[NOW]
    begin = program.first_user[target]
    position = 0
    while position < state.users[target]:
        f = state.flow[begin + position]
        if state.completion[f] > now:
            position += 1
            continue
        # From here on it loses time, until the last flow of the operation is done.
        state.lost_then[f] = loss(state, f, now)
        state.since[f] = now
        state.rate[f] = 0.0
        state.share[f] = 0.0
        state.remaining_then[f] = 0.0
        state.wanted[f] = 0.0
        state.completion[f] = inf
        record_grant(program, state, f)
        deactivate(program, state, target, position)
        i = program.owner[f]
        state.unfinished[i] -= 1
        if state.unfinished[i] == 0:
            settle_loss(program, state, i, now)
            end_operation(program, state, i)


@inlined
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
        state.operations[i] += 1
        for f in range(program.first_flow[i], program.first_flow[i + 1]):
            # Operations before any work are not iterations.
            if state.iterations[f] > 0 or program.work[here] > 0.0:
                state.iterations[f] += 1
                length = program.work[here] + volume / program.bandwidth[i]
                state.iteration_time[f] += length
        state.position[i] = here + 1
        if program.work[here + 1] > 0.0:
            begin_work(program, state, i, state.clock[NOW])
            return
        posted = post(program, state, i)


# --- The decision: what the policy sees, and what it is granted ----------------


@inlined
def decide(program: Program, state: State, allocate: Allocate, target: int) -> int:
    """Ask the policy how to share `target` from now on."""
    state.wake[target] = inf
    state.next_completion[target] = inf
    state.counter[ACTIVE] = state.users[target]
    status = PAUSED
    if state.counter[ACTIVE] > 0:
        observe(program, state, target)
        state.wake[target] = allocate(view(program, state), state.wanted)
        status = grant(program, state, target)
    set_due(program, state, target)
    if (
        program.validate
        and status == PAUSED
        and not progress_is_conserved(program, state)
    ):
        return PROGRESS_NOT_CONSERVED
    return status


@inlined
def observe(program: Program, state: State, target: int) -> None:
    """Bring the flows on `target` up to now, and show them as the active ones."""
    now = state.clock[NOW]
    begin = program.first_user[target]
    for position in range(state.counter[ACTIVE]):
        f = state.flow[begin + position]
        state.active[position] = f
        moved = state.rate[f] * (now - state.since[f])
        state.remaining[f] = max(state.remaining_then[f] - moved, 0.0)
        state.lost[f] = application_loss(program, state, program.owner[f], now)
        state.wanted[f] = 0.0


@inlined
def loss(state: State, f: int, now: float) -> float:
    """Return the time lost by now as flow `f` alone would have it (s).

    What the application had lost before the operation, plus the integral of
    1 - alpha since.
    """
    return state.lost_then[f] + (now - state.since[f]) * (1.0 - state.share[f])


@inlined
def application_loss(program: Program, state: State, i: int, now: float) -> float:
    """Return the time that `i` has lost by now in an operation: its flows' mean (s).

    Its flows carry equal parts at equal caps, so that the mean of their alphas is
    the fraction of b_i at which the application moves.
    """
    begin, end = program.first_flow[i], program.first_flow[i + 1]
    total = loss(state, begin, now)
    for f in range(begin + 1, end):
        total += loss(state, f, now)
    return total / (end - begin)


@inlined
def settle_loss(program: Program, state: State, i: int, now: float) -> None:
    """Keep the time that `i` has lost, at the end of its operation."""
    lost = application_loss(program, state, i, now)
    for f in range(program.first_flow[i], program.first_flow[i + 1]):
        state.lost[f] = lost


@inlined
def view(program: Program, state: State) -> View:
    """Return what a policy may see now, of the target that `observe` shows."""
    return View(
        state.clock[NOW],
        program.capacity,
        program.window_begin,
        program.window_end,
        program.dedicated_events,
        program.entries,
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


@inlined
def grant(program: Program, state: State, target: int) -> int:
    """Hold the rates that the policy wants from now on, if they are lawful.

    Only a change of rate settles a flow: one that is served at a constant rate is
    done exactly when it was first said to be.
    """
    now = state.clock[NOW]
    state.counter[DECISIONS] += 1
    total = 0.0
    earliest = inf
    for position in range(state.counter[ACTIVE]):
        f = state.active[position]
        cap = program.cap[f]
        rate = state.wanted[f]
        if is_over(rate, cap):
            state.counter[CULPRIT] = f
            return RATE_OVER_CAP
        if rate < 0.0:
            state.counter[CULPRIT] = f
            return RATE_NEGATIVE
        # Rounding may have put the rate above the cap.
        rate = min(rate, cap)
        total += rate
        if rate != state.rate[f]:
            state.lost_then[f] = loss(state, f, now)
            state.since[f] = now
            state.remaining_then[f] = state.remaining[f]
            state.rate[f] = rate
            state.share[f] = rate / cap
            state.completion[f] = now + state.remaining[f] / rate if rate > 0.0 else inf
            record_grant(program, state, f)
        earliest = min(earliest, state.completion[f])
    state.next_completion[target] = earliest
    if is_over(total, program.capacity):
        return CAPACITY_EXCEEDED
    if is_past(state.wake[target], now):
        return WAKE_IN_THE_PAST
    return PAUSED


# --- The window: what is measured ----------------------------------------------


@inlined
def open_window(program: Program, state: State) -> None:
    """Note what was done at the begin of the window."""
    begin = program.window_begin
    state.counter[WINDOW_OPEN] = 1
    for i in range(program.applications):
        state.begin_work[i] = state.work_done[i] + partial_work(
            program, state, i, begin
        )
        state.begin_transferred[i] = state.transferred[i]
        if state.unfinished[i] > 0:
            state.begin_transferred[i] += partial_volume(program, state, i, begin)
    for target in range(program.targets):
        state.occupied[target] = 0.0
        state.occupied_since[target] = begin


@inlined
def close_window(program: Program, state: State, end: float) -> None:
    """Cut the run at the end of the window; partial phases count pro rata."""
    state.clock[NOW] = end
    for i in range(program.applications):
        state.work_done[i] += partial_work(program, state, i, end)
        if state.unfinished[i] > 0:
            state.transferred[i] += partial_volume(program, state, i, end)
            settle_loss(program, state, i, end)
    for target in range(program.targets):
        if state.users[target] > 0:
            state.occupied[target] += end - state.occupied_since[target]


@inlined
def partial_work(program: Program, state: State, i: int, now: float) -> float:
    """Return how much of its current work phase `i` has done (s)."""
    return max(program.work[state.position[i]] - (state.work_end[i] - now), 0.0)


@inlined
def partial_volume(program: Program, state: State, i: int, now: float) -> float:
    """Return how much of its current operation `i` has transferred (bytes)."""
    volume = 0.0
    for f in range(program.first_flow[i], program.first_flow[i + 1]):
        left = state.remaining_then[f] - state.rate[f] * (now - state.since[f])
        volume += (state.volume[f] - max(left, 0.0)) * program.unit[f]
    return volume


@inlined
def progress_is_conserved(program: Program, state: State) -> bool:
    """Tell whether work + volume / b + lost time is the age, for the active ones."""
    now = state.clock[NOW]
    for position in range(state.counter[ACTIVE]):
        f = state.active[position]
        i = program.owner[f]
        age = now - program.release[f]
        done = state.transferred[i] + partial_volume(program, state, i, now)
        progress = state.work_done[i] + done / program.bandwidth[i]
        lost = application_loss(program, state, i, now)
        gap = abs(progress + lost - age)
        if lost < 0.0 or gap > TOLERANCE * max(age, 1.0):
            state.counter[CULPRIT] = f
            return False
    return True


# --- Containers ------------------------------------------------------------------


@inlined
def activate(program: Program, state: State, f: int) -> None:
    """Insert flow `f` into the ascending list of its target."""
    target = program.target[f]
    begin = program.first_user[target]
    if state.users[target] == 0:
        state.occupied_since[target] = state.clock[NOW]
    slot = begin + state.users[target]
    state.users[target] += 1
    while slot > begin and state.flow[slot - 1] > f:
        state.flow[slot] = state.flow[slot - 1]
        slot -= 1
    state.flow[slot] = f


@inlined
def deactivate(program: Program, state: State, target: int, position: int) -> None:
    """Remove the flow at `position` from the list of `target`."""
    begin = program.first_user[target]
    last = state.users[target] - 1
    state.users[target] = last
    for slot in range(begin + position, begin + last):
        state.flow[slot] = state.flow[slot + 1]
    if last == 0:
        state.occupied[target] += state.clock[NOW] - state.occupied_since[target]


@inlined
def touch(state: State, target: int) -> None:
    """Note that a decision is due for `target`."""
    if state.is_touched[target] == 0:
        state.is_touched[target] = 1
        state.touched[state.counter[TOUCHED]] = target
        state.counter[TOUCHED] += 1


@inlined
def pop_touched(state: State) -> int:
    """Remove and return a target for which a decision is due."""
    state.counter[TOUCHED] -= 1
    target = state.touched[state.counter[TOUCHED]]
    state.is_touched[target] = 0
    return target


@inlined
def set_due(program: Program, state: State, target: int) -> None:
    """Put the next instant of `target` into the tree of minima."""
    due = state.due
    entry = program.leaves + target
    due[entry] = min(state.next_completion[target], state.wake[target])
    while entry > 1:
        entry = entry // 2
        due[entry] = min(due[2 * entry], due[2 * entry + 1])


@inlined
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


@inlined
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


@inlined
def ends_before(state: State, i: int, j: int) -> bool:
    """Tell whether the work of `i` ends before that of `j`; ties by index."""
    return state.work_end[i] < state.work_end[j] or (
        state.work_end[i] == state.work_end[j] and i < j
    )


# --- Record ----------------------------------------------------------------------


@inlined
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


@inlined
def record_grant(program: Program, state: State, f: int) -> None:
    """Keep the change of the bandwidth that flow `f` holds, if a record is kept."""
    if program.record:
        entry = state.counter[GRANTED]
        state.grant_time[entry] = state.clock[NOW]
        state.grant_application[entry] = program.owner[f]
        state.grant_target[entry] = program.target[f]
        state.grant_rate[entry] = state.rate[f] * program.unit[f]
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
