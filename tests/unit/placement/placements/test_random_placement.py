# SPDX-License-Identifier: MIT
"""Random placement: its distribution and its streams."""

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


def test_random_reaches_every_target_and_depends_on_the_seed() -> None:
    task = problem(4, *(application(f"a{j}") for j in range(400)))
    one, other = (place(f"random:seed={s}", task, [2] * 400) for s in (1, 2))
    assert one != other
    pairs = Counter(one)
    # Six pairs, 67 times each, with a standard deviation of 7.5.
    assert len(pairs) == 6
    assert all(abs(count - 400 / 6) < 40 for count in pairs.values())


@given(problems(), st.integers(0, 2**32))
def test_random_draws_for_an_application_whatever_the_others_are(
    task: Problem, seed: int
) -> None:
    allocation = some_allocation(task, seed)
    first = Problem(task.resources, task.compute_nodes + 1, task.applications[:1])
    alone = place("random", first, allocation[:1])
    assert place("random", task, allocation)[:1] == alone
