# SPDX-License-Identifier: MIT
"""N-sys: the number of targets with the least I/O stress."""

from __future__ import annotations

from hypothesis import given

from penstock.model.problem import Problem
from unit.placement.problems import (
    allocate,
    application,
    problem,
    problems,
)


def test_n_sys_takes_the_number_with_the_least_stress() -> None:
    # T_cpu = 2 s; T_io = 6, 1, 0.6 s: stress 3/4, 2/3, 9/13; and a flat profile.
    task = problem(
        4,
        application("a", [1, 6, 10], work=2, volume=6),
        application("b", [5.0, 5.0, 5.0]),
    )
    assert allocate("n-sys", task) == (2, 1)


@given(problems())
def test_no_other_number_has_less_stress(task: Problem) -> None:
    for j, n in enumerate(allocate("n-sys", task)):
        stress = [task.stress(j, k) for k in range(1, task.most_targets(j) + 1)]
        assert task.stress(j, n) == min(stress)
        assert n == stress.index(min(stress)) + 1


@given(problems())
def test_it_never_takes_more_targets_than_best_bandwidth(task: Problem) -> None:
    """Lemma 1 of target allocation: n_sys <= n_perf."""
    for few, many in zip(
        allocate("n-sys", task), allocate("best-bandwidth", task), strict=True
    ):
        assert few <= many
