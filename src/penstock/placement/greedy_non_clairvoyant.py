# SPDX-License-Identifier: MIT
"""Deal the targets out in turn, those who want most first.

Rule
    Sort the applications by decreasing n_j, equal ones by index. Each takes the
    next n_j targets; after the last target comes the first. The next application
    goes on where the one before it stopped.

Inputs
    Nothing (the allocation apart).

Parameters
    None.

Properties
    The numbers of applications on two targets differ by 1 at most. O(K log K + sum n).

Source
    papers/2 section 4.2, Greedy-Non-Clairvoyant (GNC). That the turn is not begun
    anew for every application is our reading.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Placement
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "place"]

NEEDS: Final[frozenset[Input]] = frozenset()


def place(problem: Problem, allocation: Allocation) -> Placement:
    """Go round the targets, widest application first."""
    placement: list[tuple[int, ...]] = [()] * len(allocation)
    turn = 0
    for j in sorted(range(len(allocation)), key=lambda j: -allocation[j]):
        following = range(turn, turn + allocation[j])
        placement[j] = tuple(r % problem.resources for r in following)
        turn = following.stop
    return tuple(placement)
