# SPDX-License-Identifier: MIT
"""Start from n-sys and add targets where most nodes can compute, up to load 1.

Rule
    Start with n_sys. In every round each application looks for a next number of
    targets, n_j < n <= n_perf, that keeps the I/O-load at 1 or less and raises
    CPUload(j, n) = Q_j T_cpu / (T_cpu + T_io(n)). The application that raises it most
    gets that number (ties: lowest index). End when no application finds one.

Inputs
    Q_j, V_io, T_cpu, b_j.

Parameters
    None.

Properties
    Equal to best-bandwidth if I/O-load(pi_perf) <= 1, and to n-sys if
    I/O-load(pi_sys) > 1. At most sum (n_perf - n_sys) rounds of O(K n_max).

Source
    Target allocation, section 4.1, TCPU-Allocator (TA), Algorithm 1, line by line.
    Three properties of the printed algorithm may surprise:

    - Line 12 compares with pi~(j), which line 13 has set to the number tried last, and
      not with pi(j). If the bandwidth first falls and then partly recovers, the search
      continues after the fall and stops at the recovery, which is better than the fall.
      So an application can get a number with which fewer nodes compute than before.
      (pi~ starts from pi again in every round.)
    - Numbers that would saturate the system are skipped; a larger number that would not
      is considered.
    - A difference of 0 counts as an improvement (line 15 ends at < 0): targets are also
      added where they change nothing, e.g. if T_cpu = 0.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "allocate"]

NEEDS: Final = frozenset({Input.NODES, Input.VOLUME, Input.COMPUTE, Input.BANDWIDTH})


def allocate(problem: Problem) -> Allocation:
    """Add targets, one application at a time (Algorithm 1)."""
    applications = range(len(problem.applications))
    tables = [_tables(problem, j) for j in applications]
    allocation = [problem.n_sys(j) for j in applications]
    while True:
        load = sum(tables[j][0][n - 1] for j, n in enumerate(allocation))
        candidates = [
            _next_number(*tables[j], allocation[j], load) for j in applications
        ]
        chosen = max(applications, key=lambda j: candidates[j][0])
        gain, number = candidates[chosen]
        if gain < 0:
            return tuple(allocation)
        allocation[chosen] = number


def _tables(problem: Problem, j: int) -> tuple[list[float], list[float]]:
    """Return I/O-Stress(j, n) / N and CPUload(j, n) for n = 1 .. n_perf."""
    widths = range(1, problem.n_perf(j) + 1)
    stress = [problem.stress(j, n) / problem.resources for n in widths]
    return stress, [problem.cpu_load(j, n) for n in widths]


def _next_number(
    stress: list[float], cpu_load: list[float], present: int, load: float
) -> tuple[float, int]:
    """Return loadDiff(j) and pi~(j) after lines 8 to 13, for pi(j) = `present`."""
    gain, tried, n = -1.0, present, present
    while n != len(stress) and gain < 0:
        n += 1
        if load + (stress[n - 1] - stress[present - 1]) <= 1:
            gain = cpu_load[n - 1] - cpu_load[tried - 1]
            tried = n
    return gain, tried
