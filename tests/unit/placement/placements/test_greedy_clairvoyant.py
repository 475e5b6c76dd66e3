# SPDX-License-Identifier: MIT
"""Greedy-clairvoyant: the least loaded targets first."""

from __future__ import annotations

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


def test_the_least_loaded_targets_by_hand() -> None:
    """b (3/4) on 0; a (1/2) on 1 and 2; c (1/4) on the same; all are equal: d on 0."""
    flat = [1.0, 1.0, 1.0]
    task = problem(
        3,
        application("a", flat, work=1, volume=1),
        application("b", flat, work=1, volume=3),
        application("c", flat, work=3, volume=1),
        application("d", flat, work=3, volume=1),
    )
    expected = ((1, 2), (0,), (1, 2), (0,))
    assert place("greedy-clairvoyant", task, (2, 1, 2, 1)) == expected


def test_the_ratio_is_that_of_the_number_allocated() -> None:
    # On 1 target a spends 3/4 of its time in I/O, on 2 it is 1/4; b always 1/2.
    task = problem(
        3,
        application("a", [1.0, 9.0], work=1, volume=3),
        application("b", [1.0, 1.0], work=1, volume=1),
    )
    assert place("greedy-clairvoyant", task, (1, 1)) == ((0,), (1,))
    assert place("greedy-clairvoyant", task, (2, 1)) == ((1, 2), (0,))


@given(problems(), st.integers(0, 2**32))
def test_loads_differ_by_the_largest_ratio_at_most(task: Problem, seed: int) -> None:
    allocation = some_allocation(task, seed)
    chosen = place("greedy-clairvoyant", task, allocation)
    ratios = [task.io_ratio(j, n) for j, n in enumerate(allocation)]
    load = [
        sum(ratios[j] for j, targets in enumerate(chosen) if r in targets)
        for r in range(task.resources)
    ]
    assert max(load) - min(load) <= max(ratios) + 1e-12
