# SPDX-License-Identifier: MIT
"""Place each application on the least loaded targets, I/O-intensive ones first.

Rule
    Sort the applications by decreasing T_io(n_j) / (T_cpu + T_io(n_j)), the part of
    its time that an application would spend in I/O if it were alone; ties by index.
    Each takes the n_j targets with the least load; ties by index. The load of a target
    is the sum of these parts over the applications on it. An application that arrives
    later takes the n_j least loaded targets, too.

Inputs
    V_io, T_cpu, b_j.

Parameters
    None.

Properties
    The loads of two targets differ by 1 at most. O(K N log N).

Source
    Target allocation, section 4.2, Greedy-Clairvoyant (GC). The paper does not define
    the least "stressed" target; the load above is our reading.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Placement
from penstock.placement.inputs import Input
from penstock.placement.target_use import TargetUse

__all__ = ["NEEDS", "place", "place_next"]

NEEDS: Final = frozenset({Input.VOLUME, Input.COMPUTE, Input.BANDWIDTH})


def place(problem: Problem, allocation: Allocation) -> Placement:
    """Balance the expected load of the targets."""
    ratios = [problem.io_ratio(j, n) for j, n in enumerate(allocation)]
    use = TargetUse.none(problem.resources)
    placement: list[tuple[int, ...]] = [()] * len(allocation)
    for j in sorted(range(len(allocation)), key=lambda j: -ratios[j]):
        placement[j] = place_next(use, allocation[j])
        use.add(placement[j], ratios[j])
    return tuple(placement)


def place_next(use: TargetUse, number: int) -> tuple[int, ...]:
    """Return the least loaded targets; ties by index."""
    return tuple(nsmallest(number, range(len(use.loads)), key=use.loads.__getitem__))
