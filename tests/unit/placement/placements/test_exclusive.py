# SPDX-License-Identifier: MIT
"""Exclusive: own targets, and one in common if there are too few."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.model.problem import Problem
from unit.placement.problems import (
    allocate,
    application,
    place,
    problem,
    problems,
)


def test_targets_are_handed_out_in_a_row_largest_first() -> None:
    task = problem(6, *(application(name, [1.0] * 6) for name in "abc"))
    assert place("exclusive", task, (1, 3, 2)) == ((5,), (0, 1, 2), (3, 4))


def test_equal_numbers_go_by_bandwidth_on_one_target() -> None:
    task = problem(
        3,
        application("slow", [1.0]),
        application("fast", [9.0]),
        application("medium", [5.0]),
    )
    assert place("exclusive", task, (1, 1, 1)) == ((2,), (0,), (1,))


def test_with_more_applications_than_targets_the_slowest_share_the_last() -> None:
    task = problem(
        2,
        application("slow", [1.0]),
        application("fast", [9.0]),
        application("medium", [5.0]),
    )
    assert place("exclusive", task, (1, 1, 1)) == ((1,), (0,), (1,))


@pytest.mark.parametrize(
    ("allocation", "message"),
    [
        ((2, 2), "gives the applications 4 targets of their own, but there are 3"),
        (
            (2, 2, 1, 1),
            "4 targets of their own and one in common, but there are 3",
        ),
    ],
)
def test_an_allocation_that_does_not_fit_is_an_error(
    allocation: tuple[int, ...], message: str
) -> None:
    names = "abcd"[: len(allocation)]
    task = problem(3, *(application(name, [1.0, 2.0]) for name in names))
    with pytest.raises(InputError, match=message):
        place("exclusive", task, allocation)


@given(problems())
def test_an_allocation_of_mckp_can_always_be_placed(task: Problem) -> None:
    allocation = allocate("mckp", task)
    users = Counter(
        r for targets in place("exclusive", task, allocation) for r in targets
    )
    shared = {target for target, count in users.items() if count > 1}
    assert shared <= {task.resources - 1}
