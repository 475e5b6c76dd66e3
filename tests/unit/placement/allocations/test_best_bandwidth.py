# SPDX-License-Identifier: MIT
"""Best bandwidth: the number of targets on which an application is fastest."""

from __future__ import annotations

from hypothesis import given

from penstock.model.problem import Problem
from unit.placement.problems import (
    allocate,
    application,
    problem,
    problems,
)


def test_best_bandwidth_takes_n_perf_however_it_is_known() -> None:
    task = problem(
        4,
        application("a", [1.0, 3.0, 3.0, 2.0, 9.0]),
        application("b"),
        best_targets=(0, 4),
    )
    assert allocate("best-bandwidth", task) == (2, 4)


@given(problems())
def test_no_other_number_is_faster(task: Problem) -> None:
    for j, n in enumerate(allocate("best-bandwidth", task)):
        rates = [task.bandwidth(j, k) for k in range(1, task.most_targets(j) + 1)]
        assert task.bandwidth(j, n) == max(rates)
        assert n == rates.index(max(rates)) + 1
