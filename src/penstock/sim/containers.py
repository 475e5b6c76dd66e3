# SPDX-License-Identifier: MIT
"""The containers of the engine: lists of flows, the tree of due times, the work heap.

All of them live in columns of `State`, so that compiled and interpreted code share
them. The functions are inlined into the engine.
"""

from __future__ import annotations

from penstock.kernels import inlined
from penstock.sim.state import NOW, UNDECIDED, WORKING, EngineInput, State

__all__ = [
    "activate",
    "deactivate",
    "ends_before",
    "pop_undecided",
    "pop_working",
    "push_working",
    "request_decision",
    "set_due",
]


@inlined
def activate(inputs: EngineInput, state: State, f: int) -> None:
    """Insert flow `f` into the ascending list of flows on its target."""
    target = inputs.target[f]
    begin = inputs.first_entry[target]
    if state.flow_count[target] == 0:
        state.occupied_since[target] = state.clock[NOW]
    slot = begin + state.flow_count[target]
    state.flow_count[target] += 1
    while slot > begin and state.flows_to_serve[slot - 1] > f:
        state.flows_to_serve[slot] = state.flows_to_serve[slot - 1]
        slot -= 1
    state.flows_to_serve[slot] = f


@inlined
def deactivate(inputs: EngineInput, state: State, target: int, position: int) -> None:
    """Remove the flow at `position` from the list of flows on `target`."""
    begin = inputs.first_entry[target]
    last = state.flow_count[target] - 1
    state.flow_count[target] = last
    for slot in range(begin + position, begin + last):
        state.flows_to_serve[slot] = state.flows_to_serve[slot + 1]
    if last == 0:
        state.occupied[target] += state.clock[NOW] - state.occupied_since[target]


@inlined
def request_decision(state: State, target: int) -> None:
    """Mark that `target` needs a decision at this instant."""
    if state.is_undecided[target] == 0:
        state.is_undecided[target] = 1
        state.undecided[state.counter[UNDECIDED]] = target
        state.counter[UNDECIDED] += 1


@inlined
def pop_undecided(state: State) -> int:
    """Remove and return a target that needs a decision."""
    state.counter[UNDECIDED] -= 1
    target = state.undecided[state.counter[UNDECIDED]]
    state.is_undecided[target] = 0
    return target


@inlined
def set_due(inputs: EngineInput, state: State, target: int) -> None:
    """Store the next wake-up or completion of `target` in the tree of minima."""
    due = state.due
    entry = inputs.leaves + target
    due[entry] = min(state.next_completion[target], state.wake[target])
    while entry > 1:
        entry = entry // 2
        due[entry] = min(due[2 * entry], due[2 * entry + 1])


@inlined
def push_working(state: State, i: int) -> None:
    """Add application `i` to the heap of applications in a work phase."""
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
    """Return True if the work of `i` ends before that of `j`; ties by index."""
    return state.work_end[i] < state.work_end[j] or (
        state.work_end[i] == state.work_end[j] and i < j
    )
