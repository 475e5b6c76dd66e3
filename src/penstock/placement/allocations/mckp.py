# SPDX-License-Identifier: MIT
"""Maximise the sum of the bandwidths without shared targets, if possible.

Rule
    Multiple-choice knapsack: maximise sum b_j(n_j) with sum n_j <= N, n_j >= 1.
    With more applications than targets (K > N), N - 1 targets are exclusive and one is
    common to all applications without a target of their own, which count 0 in the sum.
    Among equal sums, the last applications get as few targets as possible.

Inputs
    b_j.

Parameters
    None.

Properties
    Exact, by dynamic programming, O(K N n_max). Favours few applications with a
    high bandwidth. Use it with the placement ``exclusive``. (An application on the
    common target gets n_j = 1; any other placement treats it like the others.)

Source
    J. L. Bez et al., Arbitration policies for on-demand user-level I/O forwarding
    on HPC platforms (IPDPS 2021). Target allocation, section 5.2, compares with it, but
    does not say how the common target counts.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.model import Column
from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "allocate"]

NEEDS: Final = frozenset({Input.BANDWIDTH})


def allocate(problem: Problem) -> Allocation:
    """Choose the numbers with the largest sum of bandwidths."""
    applications = range(len(problem.applications))
    common = len(problem.applications) > problem.resources
    exclusive = problem.resources - common
    best: Column = np.zeros(exclusive + 1)
    choices = []
    for j in applications:
        best, numbers = _extend(best, _values(problem, j, exclusive), least=1 - common)
        choices.append(numbers)
    allocation, left = [], exclusive
    for numbers in reversed(choices):
        n = int(numbers[left])
        allocation.append(max(n, 1))
        left -= n
    return tuple(reversed(allocation))


def _values(problem: Problem, j: int, exclusive: int) -> list[float]:
    """Return b_j(n) for n = 0, 1, ...; 0 without a target of its own."""
    most = min(problem.most_targets(j), exclusive)
    return [0.0, *(problem.bandwidth(j, n) for n in range(1, most + 1))]


def _extend(
    best: Column, values: list[float], least: int
) -> tuple[Column, NDArray[np.int64]]:
    """Add one application to the best sums with at most 0, 1, ... targets.

    Return the new sums, and the application's number of targets in each.
    """
    sums = np.full_like(best, -np.inf)
    numbers = np.zeros(len(best), dtype=np.int64)
    for n in range(least, len(values)):
        with_n = best[: len(best) - n] + values[n]
        better = with_n > sums[n:]
        sums[n:][better] = with_n[better]
        numbers[n:][better] = n
    return sums, numbers
