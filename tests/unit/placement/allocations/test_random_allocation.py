# SPDX-License-Identifier: MIT
"""Random allocation: its range, its distribution, and its streams."""

from __future__ import annotations

from hypothesis import given

from penstock.model.problem import Problem
from unit.placement.problems import (
    allocate,
    application,
    problem,
    problems,
)


def test_random_covers_its_range_and_nothing_else() -> None:
    task = problem(
        5,
        *(application(f"m{j}", [1.0, 2.0, 3.0]) for j in range(60)),
        *(application(f"w{j}", [1.0] * 8) for j in range(60)),
        *(application(f"u{j}") for j in range(60)),
    )
    drawn = allocate("random", task)
    assert set(drawn[:60]) == {1, 2, 3}
    assert set(drawn[60:120]) == {1, 2, 3, 4, 5}
    assert set(drawn[120:]) == {1, 2, 3, 4, 5}


def test_random_is_uniform() -> None:
    task = problem(4, *(application(f"a{j}") for j in range(2000)))
    drawn = allocate("random:seed=3", task)
    # 500 each, with a standard deviation of 19.
    assert all(abs(drawn.count(n) - 500) < 100 for n in (1, 2, 3, 4))


def test_random_depends_on_the_seed() -> None:
    task = problem(5, *(application(f"a{j}") for j in range(20)))
    assert allocate("random:seed=1", task) == allocate("random:seed=1", task)
    assert allocate("random:seed=1", task) != allocate("random:seed=2", task)
    assert allocate("random:seed=0", task) == allocate("random", task)


@given(problems())
def test_random_draws_for_an_application_whatever_the_others_are(task: Problem) -> None:
    first = Problem(task.resources, task.compute_nodes + 1, task.applications[:1])
    assert allocate("random:seed=5", task)[:1] == allocate("random:seed=5", first)
