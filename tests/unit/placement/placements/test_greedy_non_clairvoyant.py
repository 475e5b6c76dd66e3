# SPDX-License-Identifier: MIT
"""Greedy-non-clairvoyant: targets dealt out in turn."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
from hypothesis import given

from penstock.model.problem import Problem
from unit.placement.problems import (
    application,
    place,
    problem,
    problems,
    some_allocation,
)


def test_the_turn_goes_on_from_application_to_application() -> None:
    """4 to b, then 3 to d from target 4 on, then 2 to a, then 1 to c."""
    task = problem(5, *(application(name) for name in "abcd"))
    assert place("greedy-non-clairvoyant", task, (2, 4, 1, 3)) == (
        (2, 3),
        (0, 1, 2, 3),
        (4,),
        (0, 1, 4),
    )


def test_equal_numbers_are_dealt_by_index() -> None:
    task = problem(3, *(application(name) for name in "abcd"))
    assert place("greedy-non-clairvoyant", task, (1, 1, 2, 1)) == (
        (2,),
        (0,),
        (0, 1),
        (1,),
    )


def test_applications_that_need_all_targets_get_all() -> None:
    task = problem(2, application("a"), application("b"))
    assert place("greedy-non-clairvoyant", task, (2, 2)) == ((0, 1), (0, 1))


@given(problems(), st.integers(0, 2**32))
def test_targets_have_the_same_number_of_applications(task: Problem, seed: int) -> None:
    chosen = place("greedy-non-clairvoyant", task, some_allocation(task, seed))
    users = Counter(r for targets in chosen for r in targets)
    counts = [users[r] for r in range(task.resources)]
    assert max(counts) - min(counts) <= 1
