# SPDX-License-Identifier: MIT
"""Rules for every allocation and every placement.

A new algorithm is tested by being in its table. One from outside is added to
`EXTRA`, by the name that `get_allocation` and `get_placement` take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from penstock.errors import InputError
from penstock.model.problem import Problem
from penstock.placement import (
    ALLOCATIONS,
    PLACEMENTS,
    Input,
    Placement,
    get_allocation,
    get_placement,
)
from unit.placement.problems import application, problem, problems, unaware

EXTRA = ("random:seed=7", "penstock.placement._template")
#: The placement that restricts the allocation has its own allocation.
ALLOCATION_FOR = {"exclusive": "mckp"}

every_allocation = pytest.mark.parametrize("name", [*ALLOCATIONS, *EXTRA])
every_placement = pytest.mark.parametrize("name", [*PLACEMENTS, *EXTRA])
quickly = settings(deadline=None, derandomize=True, max_examples=40, database=None)
crowded = problems(most_applications=8, most_resources=6, most_measured=8)


def numbers_for(name: str, task: Problem, seed: int) -> tuple[int, ...]:
    """Return an allocation that placement `name` can place."""
    if name in ALLOCATION_FOR:
        return get_allocation(ALLOCATION_FOR[name]).allocate(task)
    return tuple(
        1 + (seed >> 4 * j) % task.most_targets(j)
        for j in range(len(task.applications))
    )


def renamed(task: Problem) -> Problem:
    """Return the same problem, names in another order of the alphabet."""
    names = [
        f"other {len(task.applications) - j}" for j in range(len(task.applications))
    ]
    applications = tuple(
        replace(a, name=name, user="ada", group="x")
        for a, name in zip(task.applications, names, strict=True)
    )
    return replace(task, applications=applications)


# --- Results ----------------------------------------------------------------------


@every_allocation
@given(task=crowded)
@quickly
def test_numbers_are_lawful(name: str, task: Problem) -> None:
    """Whole numbers, from 1 to the number of targets that exist and were measured."""
    allocation = get_allocation(name).allocate(task)
    assert len(allocation) == len(task.applications)
    for j, n in enumerate(allocation):
        assert type(n) is int
        assert 1 <= n <= min(task.resources, len(task.applications[j].profile))


@every_placement
@given(task=crowded, seed=st.integers(0, 2**32))
@quickly
def test_targets_are_lawful(name: str, task: Problem, seed: int) -> None:
    """n_j different targets that exist, ascending."""
    allocation = numbers_for(name, task, seed)
    placement = get_placement(name).place(task, allocation)
    assert len(placement) == len(task.applications)
    for n, targets in zip(allocation, placement, strict=True):
        assert all(type(r) is int and 0 <= r < task.resources for r in targets)
        assert len(set(targets)) == len(targets) == n
        assert list(targets) == sorted(targets)


@pytest.mark.parametrize("name", [*ALLOCATIONS, *EXTRA])
@pytest.mark.parametrize("resources", [1, 20])
def test_alone(name: str, resources: int) -> None:
    """One application, with one measurement, gets one target."""
    task = problem(resources, application("a", [3.0]))
    assert get_allocation(name).allocate(task) == (1,)


# --- What a decision depends on ---------------------------------------------------


def _decisions(name: str, allocating: bool) -> Callable[[Problem, int], object]:
    """Return the decision of an algorithm as a function of problem and seed."""

    def allocate(task: Problem, seed: int) -> tuple[int, ...]:
        return get_allocation(name).allocate(task)

    def place(task: Problem, seed: int) -> Placement:
        return get_placement(name).place(task, numbers_for(name, task, seed))

    return allocate if allocating else place


EVERYTHING = [
    *((name, True) for name in (*ALLOCATIONS, *EXTRA)),
    *((name, False) for name in (*PLACEMENTS, *EXTRA)),
]
every_algorithm = pytest.mark.parametrize(
    ("name", "allocating"),
    EVERYTHING,
    ids=[f"{name}-{'allocation' if a else 'placement'}" for name, a in EVERYTHING],
)


@every_algorithm
@given(task=crowded, seed=st.integers(0, 2**32))
@quickly
def test_the_same_problem_the_same_decision(
    name: str, allocating: bool, task: Problem, seed: int
) -> None:
    """Also for an equal copy, and after other decisions."""
    decide = _decisions(name, allocating)
    first = decide(task, seed)
    decide(problem(2, application("x", [1.0, 5.0])), 1)
    again = Problem(task.resources, task.compute_nodes, task.applications)
    assert decide(again, seed) == first


@every_algorithm
@given(task=crowded, seed=st.integers(0, 2**32))
@quickly
def test_names_do_not_matter(
    name: str, allocating: bool, task: Problem, seed: int
) -> None:
    """Names, users and groups do not change a decision."""
    decide = _decisions(name, allocating)
    assert decide(renamed(task), seed) == decide(task, seed)


@every_algorithm
@given(task=crowded, seed=st.integers(0, 2**32))
@quickly
def test_inputs_that_are_not_declared_do_not_matter(
    name: str, allocating: bool, task: Problem, seed: int
) -> None:
    """An algorithm uses only the inputs that it declares (Table 2)."""
    if allocating:
        allocator = get_allocation(name)
        changed = unaware(task, *allocator.needs)
        assert allocator.allocate(changed) == allocator.allocate(task)
        return
    placer = get_placement(name)
    allocation = numbers_for(name, task, seed)
    changed = unaware(task, *placer.needs)
    assert placer.place(changed, allocation) == placer.place(task, allocation)


@every_algorithm
def test_a_missing_input_is_refused(name: str, allocating: bool) -> None:
    """The message names the algorithm, the input and the application."""
    kind = "allocation" if allocating else "placement"
    needs = (get_allocation(name) if allocating else get_placement(name)).needs
    known = application("known", [1.0, 2.0])
    lacking = [
        ({"V_io", "T_cpu"}, application("odd one", [1.0, 2.0], work=0.0, volume=0.0)),
        ({"n_perf", "b_j"}, application("odd one")),
    ]
    for missing, odd in lacking:
        task = problem(2, known, odd)
        if not needs & missing:
            _decide_for_ones(name, allocating, task)
            continue
        with pytest.raises(InputError) as caught:
            _decide_for_ones(name, allocating, task)
        text = f"applications[1]: {kind} {name} needs {min(needs & missing, key=ORDER)}"
        assert str(caught.value).startswith(f"{text}, which is not known of 'odd one'")


ORDER = list(Input).index


def _decide_for_ones(name: str, allocating: bool, task: Problem) -> object:
    if allocating:
        return get_allocation(name).allocate(task)
    return get_placement(name).place(task, (1,) * len(task.applications))
