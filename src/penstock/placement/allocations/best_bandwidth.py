# SPDX-License-Identifier: MIT
"""Give every application the number of targets on which it is fastest.

Rule
    n_j = n_perf = argmax b_j(n); ties: the smallest n.

Inputs
    n_perf.

Parameters
    None.

Properties
    No application could be faster alone (rho_io = 1), but applications share more
    targets and wait more (rho_con). Best if the I/O-load is low. O(K n_max).

Source
    Target allocation, section 4.1, BestBdw (BBA), equation 1.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "allocate"]

NEEDS: Final = frozenset({Input.BEST})


def allocate(problem: Problem) -> Allocation:
    """Return n_perf of every application."""
    return tuple(problem.n_perf(j) for j in range(len(problem.applications)))
