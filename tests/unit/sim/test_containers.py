# SPDX-License-Identifier: MIT
"""The engine's containers against sets, sorted lists and plain minima."""

from __future__ import annotations

import random
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels import interpreted
from penstock.model import Application, Instance, Platform, Window
from penstock.sim import containers
from penstock.sim.engine_setup import new_input, new_state
from penstock.sim.state import NOW, UNDECIDED, WORKING, EngineInput, State

activate = interpreted(containers.activate)
deactivate = interpreted(containers.deactivate)
request_decision = interpreted(containers.request_decision)
pop_undecided = interpreted(containers.pop_undecided)
set_due = interpreted(containers.set_due)
push_working = interpreted(containers.push_working)
pop_working = interpreted(containers.pop_working)


def memory(applications: int, targets: int = 1) -> tuple[EngineInput, Any]:
    """Return the memory for applications that are striped over all targets."""
    everywhere = tuple(range(targets))
    phases = [("work", 1.0), ("io", 1.0)]
    instance = Instance(
        Platform(1.0, 1.0, targets=targets),
        Window(0.0, 1.0),
        tuple(
            Application.from_phases(f"a{i}", 1, phases, targets=everywhere)
            for i in range(applications)
        ),
    )
    inputs = new_input(instance, [0.0], steady=False, record=False, validate=False)
    return inputs, new_state(instance, inputs)


# --- Lists of flows ---------------------------------------------------------------


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=6))
def test_the_flows_of_a_target_stay_ascending(
    arrivals: list[int], departures: list[int]
) -> None:
    inputs, state = memory(6)
    present: list[int] = []
    for f in arrivals:
        activate(inputs, state, f)
        present = sorted([*present, f])
        assert state.flows_to_serve[: state.flow_count[0]].tolist() == present
    for position in departures:
        if position < len(present):
            deactivate(inputs, state, 0, position)
            del present[position]
            assert state.flows_to_serve[: state.flow_count[0]].tolist() == present


def test_targets_have_lists_of_their_own() -> None:
    inputs, state = memory(2, targets=2)
    # Flows 0 and 1 belong to application 0, flows 2 and 3 to application 1.
    for f in (3, 0, 2):
        activate(inputs, state, f)
    assert state.flow_count.tolist() == [2, 1]
    first = inputs.first_entry
    assert state.flows_to_serve[first[0] : first[0] + 2].tolist() == [0, 2]
    assert state.flows_to_serve[first[1]] == 3


def test_a_target_is_occupied_from_its_first_flow_to_its_last() -> None:
    inputs, state = memory(2)
    for now, step in ((2.0, "in"), (3.0, "in"), (5.0, "out"), (9.0, "out")):
        state.clock[NOW] = now
        if step == "in":
            activate(inputs, state, int(state.flow_count[0]))
        else:
            deactivate(inputs, state, 0, 0)
    assert state.occupied[0] == 7.0
    state.clock[NOW] = 20.0
    activate(inputs, state, 0)
    state.clock[NOW] = 21.0
    deactivate(inputs, state, 0, 0)
    assert state.occupied[0] == 8.0


# --- Touched targets --------------------------------------------------------------


@given(st.lists(st.integers(0, 3), max_size=12))
def test_a_target_is_decided_once_however_often_it_is_marked(marks: list[int]) -> None:
    _, state = memory(1, targets=4)
    for target in marks:
        request_decision(state, target)
    assert state.counter[UNDECIDED] == len(set(marks))
    popped = [pop_undecided(state) for _ in range(state.counter[UNDECIDED])]
    assert sorted(popped) == sorted(set(marks))
    assert state.is_undecided.tolist() == [0] * 4
    # Another decision can be requested.
    request_decision(state, 2)
    assert pop_undecided(state) == 2


# --- The tree of due times --------------------------------------------------------


@pytest.mark.parametrize("targets", [1, 2, 3, 5, 8])
def test_the_root_of_the_tree_is_the_earliest_due_time(targets: int) -> None:
    inputs, state = memory(1, targets)
    draw = random.Random(targets)
    due = [inf] * targets
    for _ in range(50):
        target = draw.randrange(targets)
        state.wake[target] = draw.choice([inf, draw.random()])
        state.next_completion[target] = draw.choice([inf, draw.random()])
        set_due(inputs, state, target)
        due[target] = min(state.wake[target], state.next_completion[target])
        assert state.due[1] == min(due)


# --- The heap of working applications ---------------------------------------------


def pop_all(state: State) -> list[int]:
    """Empty the heap; return the applications in the order in which they leave."""
    return [pop_working(state) for _ in range(state.counter[WORKING])]


@given(st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0]), min_size=1, max_size=20))
def test_work_ends_in_order_ties_by_index(ends: list[float]) -> None:
    _, state = memory(len(ends))
    for i in reversed(range(len(ends))):
        state.work_end[i] = ends[i]
        push_working(state, i)
    expected = sorted(range(len(ends)), key=lambda i: (ends[i], i))
    assert pop_all(state) == expected
    assert state.counter[WORKING] == 0


def test_the_heap_takes_applications_while_it_gives_others() -> None:
    _, state = memory(5)
    for i, end in enumerate([5.0, 1.0, 3.0]):
        state.work_end[i] = end
        push_working(state, i)
    assert pop_working(state) == 1
    for i, end in ((3, 2.0), (4, 9.0), (1, 4.0)):
        state.work_end[i] = end
        push_working(state, i)
    assert pop_all(state) == [3, 2, 1, 0, 4]
