# SPDX-License-Identifier: MIT
"""mckp with exclusive: the best allocation with no shared target, or with one."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.model.problem import Problem
from penstock.placement import get_allocation, get_placement
from unit.placement.problems import application, problem, problems


def solve(task: Problem) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return allocation and placement of MCKP."""
    allocation = get_allocation("mckp").allocate(task)
    return allocation, get_placement("exclusive").place(task, allocation)


def value_of_their_own(task: Problem, placement: tuple[tuple[int, ...], ...]) -> float:
    """Return the sum of the bandwidths of applications that share no target."""
    users = Counter(r for targets in placement for r in targets)
    return sum(
        task.bandwidth(j, len(targets))
        for j, targets in enumerate(placement)
        if all(users[r] == 1 for r in targets)
    )


def best_value(task: Problem) -> float:
    """Return the largest sum, by trying all numbers."""
    common = len(task.applications) > task.resources
    numbers = [
        range(0 if common else 1, task.most_targets(j) + 1)
        for j in range(len(task.applications))
    ]
    return max(
        sum(task.bandwidth(j, n) for j, n in enumerate(choice) if n)
        for choice in product(*numbers)
        if sum(choice) <= task.resources - common
    )


@given(problems(most_applications=4, most_resources=4, most_measured=4))
def test_no_other_choice_is_better(task: Problem) -> None:
    allocation, placement = solve(task)
    assert value_of_their_own(task, placement) == pytest.approx(
        best_value(task), rel=1e-12
    )
    if len(task.applications) <= task.resources:
        assert sum(allocation) <= task.resources


@given(problems(most_applications=7, most_resources=4))
def test_only_one_target_is_shared_and_only_if_need_be(task: Problem) -> None:
    _, placement = solve(task)
    users = Counter(r for targets in placement for r in targets)
    shared = {r for r, count in users.items() if count > 1}
    if len(task.applications) <= task.resources:
        assert not shared
    else:
        assert shared == {task.resources - 1}
        assert set(users) == set(range(task.resources))
        for targets in placement:
            assert targets == (task.resources - 1,) or not shared & set(targets)


def test_enough_targets_for_all() -> None:
    # 6 targets: 3 + 2 + 1 give 30 + 9 + 7; a fourth for a would give 1 more.
    task = problem(
        6,
        application("a", [8, 20, 30, 31]),
        application("b", [5, 9, 9]),
        application("c", [7, 6, 5]),
    )
    assert solve(task) == ((3, 2, 1), ((0, 1, 2), (3, 4), (5,)))


def test_targets_without_a_gain_stay_free() -> None:
    task = problem(5, application("a", [3, 3, 2]), application("b", [4, 1]))
    assert solve(task) == ((1, 1), ((1,), (0,)))


def test_more_applications_than_targets() -> None:
    # Two exclusive targets: both to b (12), or one each to b (5) and d (6)?
    task = problem(
        3,
        application("a", [1, 1]),
        application("b", [5, 12]),
        application("c", [4, 4]),
        application("d", [6, 7]),
    )
    assert solve(task) == ((1, 2, 1, 1), ((2,), (0, 1), (2,), (2,)))
    steady = problem(
        3, *task.applications[:1], application("b", [5, 10]), *task.applications[2:]
    )
    assert solve(steady) == ((1, 1, 1, 1), ((2,), (1,), (2,), (0,)))


def test_one_target_is_common_to_all() -> None:
    task = problem(1, application("a", [1, 9]), application("b", [2]))
    assert solve(task) == ((1, 1), ((0,), (0,)))


def test_the_first_of_equal_ones_has_its_own() -> None:
    task = problem(2, *(application(name, [3.0]) for name in "abc"))
    assert solve(task) == ((1, 1, 1), ((0,), (1,), (1,)))


# --- exclusive with other allocations ---------------------------------------------


def test_exclusive_places_any_allocation_that_fits() -> None:
    task = problem(6, *(application(name, [1.0, 2.0, 3.0]) for name in "abc"))
    place = get_placement("exclusive").place
    assert place(task, (1, 3, 2)) == ((5,), (0, 1, 2), (3, 4))
    with pytest.raises(InputError) as caught:
        place(task, (2, 3, 2))
    assert str(caught.value).startswith(
        "placement exclusive: the allocation gives the applications 7 targets of "
        "their own, but there are 6 (allocate with mckp"
    )


def test_only_applications_with_one_target_share_under_exclusive() -> None:
    task = problem(3, *(application(name, [1.0, 2.0]) for name in "abcd"))
    place = get_placement("exclusive").place
    assert place(task, (1, 2, 1, 1)) == ((2,), (0, 1), (2,), (2,))
    with pytest.raises(InputError, match="4 targets of their own and one in common"):
        place(task, (2, 2, 1, 1))
