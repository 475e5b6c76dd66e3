# SPDX-License-Identifier: MIT
"""Deal out the targets in turn, the largest allocation first.

Rule
    Sort the applications by decreasing n_j; ties by index. Each takes the next n_j
    targets; the first target follows the last. The next application continues where
    the previous one stopped.

Inputs
    Nothing, except the allocation.

Parameters
    None.

Properties
    The numbers of applications on two targets differ by 1 at most. O(K log K + sum n).

Source
    Target allocation, section 4.2, Greedy-Non-Clairvoyant (GNC). The paper does not say
    where the next application starts; to continue is our reading.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Placement
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "place"]

NEEDS: Final[frozenset[Input]] = frozenset()


def place(problem: Problem, allocation: Allocation) -> Placement:
    """Go round the targets, the largest allocation first."""
    placement: list[tuple[int, ...]] = [()] * len(allocation)
    turn = 0
    for j in sorted(range(len(allocation)), key=lambda j: -allocation[j]):
        following = range(turn, turn + allocation[j])
        placement[j] = tuple(r % problem.resources for r in following)
        turn = following.stop
    return tuple(placement)
