# SPDX-License-Identifier: MIT
"""From n-sys on, add targets where most nodes get to compute, up to the load 1.

Rule
    Start with n_sys. In every round each application looks for a next number of
    targets, n_j < n <= n_perf, that keeps the I/O-load at 1 or less and raises
    CPUload(j, n) = Q_j T_cpu / (T_cpu + T_io(n)); the one that raises it most (the
    lowest index of equal ones) gets it. End when nobody finds one.

Inputs
    Q_j, V_io, T_cpu, b_j.

Parameters
    None.

Properties
    Equals best-bandwidth where I/O-load(pi_perf) <= 1, n-sys where
    I/O-load(pi_sys) > 1. At most sum (n_perf - n_sys) rounds of O(K n_max).

Source
    papers/2 section 4.1, TCPU-Allocator (TA), Algorithm 1, line by line. Three
    things that the printed lines do, and that one would perhaps not expect:

    - Line 12 compares with pi~(j), which line 13 has moved on to the number tried
      last, not with pi(j). Where the bandwidth first falls and then partly
      recovers, the search goes on past the fall, finds that the recovery is better
      than the fall, and stops there: the application can be given a number on
      which fewer nodes compute than before. (pi~ starts anew from pi in every
      round: of an application that is not chosen nothing is remembered.)
    - Numbers that would saturate the system are passed over without a trace; a
      larger one that would not is considered.
    - A difference of 0 is an improvement (line 15 ends at < 0): targets are added
      where they do neither harm nor good, e.g. where T_cpu = 0.
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
    everyone = range(len(problem.applications))
    tables = [_tables(problem, j) for j in everyone]
    allocation = [problem.n_sys(j) for j in everyone]
    while True:
        load = sum(tables[j][0][n - 1] for j, n in enumerate(allocation))
        found = [_next_number(*tables[j], allocation[j], load) for j in everyone]
        chosen = max(everyone, key=lambda j: found[j][0])
        gain, number = found[chosen]
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
