# SPDX-License-Identifier: MIT
"""Give targets while each makes an application faster (a template: copy this file).

Rule
    Required. What the algorithm does, in words. Allocation: start with 1 target and add
    another one while it raises the bandwidth by at least ``gain``. Placement: in the
    order of the applications, put each on the targets with the fewest applications.

Inputs
    Required. b_j for the allocation.

Parameters
    gain
        Required for each parameter, with unit and default. Fraction of the bandwidth
        that one more target must add. Default 0.1.

Properties
    Required. What it promises, and its cost: O(K n_max), O(K N log N).

Source
    Required. Paper, section or equation; every deviation from it.
"""

# How to use your own algorithm, without touching penstock:
#   penstock place PROBLEM.json --allocation mypackage.mymodule:gain=0.2
# and --placement mypackage.mymodule, where mypackage/mymodule.py is a copy of this
# file (the current folder counts), or announce it in your package under the
# entry-point group `penstock.allocations` or `penstock.placements`. A file may hold
# one of the two functions, or both. An algorithm of penstock itself also gets a row
# in `penstock.placement.ALLOCATIONS` or `PLACEMENTS`.

from __future__ import annotations

from heapq import nsmallest
from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Parameter, Placement
from penstock.placement.inputs import Input
from penstock.placement.target_use import TargetUse

__all__ = ["NEEDS", "PARAMETERS", "allocate", "place", "place_next"]

# Required. Inputs that must be known of every application; none: frozenset().
NEEDS: Final = frozenset({Input.BANDWIDTH})

# Optional. A function receives, by name, the parameters that it takes.
PARAMETERS: Final = (Parameter("gain", "what one more target must add", 0.1),)


# Required for an allocation: how many targets does each application get?
def allocate(problem: Problem, gain: float) -> Allocation:
    """Return n_j from 1 to ``problem.most_targets(j)``, for every j.

    The result may depend on nothing but the problem and the parameters: no clock, no
    state, and random numbers only from a generator seeded with a parameter.
    """
    return tuple(_widest(problem, j, gain) for j in range(len(problem.applications)))


def _widest(problem: Problem, j: int, gain: float) -> int:
    n = 1
    while n < problem.most_targets(j) and (
        problem.bandwidth(j, n + 1) >= (1 + gain) * problem.bandwidth(j, n)
    ):
        n += 1
    return n


# Required for a placement: which targets does each application get?
def place(problem: Problem, allocation: Allocation) -> Placement:
    """Return n_j different targets, 0 to N - 1, for every j."""
    use = TargetUse.none(problem.resources)
    placement = []
    for n in allocation:
        placement.append(place_next(use, n))
        use.add(placement[-1])
    return tuple(placement)


# Optional: which targets does an application get that arrives beside others? Without
# this function, `penstock serve --placement` refuses the placement.
def place_next(use: TargetUse, number: int) -> tuple[int, ...]:
    """Return `number` different targets, 0 to N - 1."""
    return tuple(nsmallest(number, range(len(use.counts)), key=use.counts.__getitem__))
