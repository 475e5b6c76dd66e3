# SPDX-License-Identifier: MIT
"""Deal out the targets in turn, the largest allocation first.

Rule
    Sort the applications by decreasing n_j; ties by index. Each takes the next n_j
    targets; the first target follows the last. The next application continues where
    the previous one stopped. An application that arrives later takes the n_j targets
    with the fewest applications, the next in turn first; while no application has
    ended, these are the next n_j targets.

Inputs
    Nothing, except the allocation.

Parameters
    None.

Properties
    The numbers of applications on two targets differ by 1 at most, unless some have
    ended. O(K N log N).

Source
    Target allocation, section 4.2, Greedy-Non-Clairvoyant (GNC). The paper does not say
    where the next application starts; to continue is our reading. Applications that
    arrive and end are not in the paper.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Placement
from penstock.placement.inputs import Input
from penstock.placement.target_use import TargetUse

__all__ = ["NEEDS", "place", "place_next"]

NEEDS: Final[frozenset[Input]] = frozenset()


def place(problem: Problem, allocation: Allocation) -> Placement:
    """Go round the targets, the largest allocation first."""
    use = TargetUse.none(problem.resources)
    placement: list[tuple[int, ...]] = [()] * len(allocation)
    for j in sorted(range(len(allocation)), key=lambda j: -allocation[j]):
        placement[j] = place_next(use, allocation[j])
        use.add(placement[j])
    return tuple(placement)


def place_next(use: TargetUse, number: int) -> tuple[int, ...]:
    """Return the targets with the fewest applications, the next in turn first."""
    in_turn = [*range(use.turn, len(use.counts)), *range(use.turn)]
    return tuple(sorted(in_turn, key=use.counts.__getitem__)[:number])
