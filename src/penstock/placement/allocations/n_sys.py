# SPDX-License-Identifier: MIT
"""Give every application the number of targets that stresses them least.

Rule
    n_j = n_sys = argmin I/O-Stress(j, n), ties: the smallest n, where
    I/O-Stress(j, n) = n T_io(n) / (T_cpu + T_io(n)).

Inputs
    V_io, T_cpu, b_j.

Parameters
    None.

Properties
    No allocation has a lower I/O-load. n_sys <= n_perf (Lemma 1): applications rarely
    wait for each other, but each is slower alone. O(K n_max).

Source
    Target allocation, section 4.1, Nsys-Allocator (NSYSA), equation 2.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "allocate"]

NEEDS: Final = frozenset({Input.VOLUME, Input.COMPUTE, Input.BANDWIDTH})


def allocate(problem: Problem) -> Allocation:
    """Return n_sys of every application."""
    return tuple(problem.n_sys(j) for j in range(len(problem.applications)))
