# SPDX-License-Identifier: MIT
"""Give every application a random number of targets.

Rule
    n_j is uniform in 1 .. min(n_max, N), where n_max is the largest number of targets
    for which the application's bandwidth is known (N if it is not known).

Inputs
    Nothing.

Parameters
    seed
        The same seed gives the same numbers. Default 0. Application j has its own
        random stream, so that its number does not depend on the others.

Properties
    A baseline. O(K).

Source
    Target allocation, section 4.1, Random. The range is not given there.
"""

from __future__ import annotations

from typing import Final

from numpy.random import default_rng

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Parameter
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "PARAMETERS", "allocate"]

NEEDS: Final[frozenset[Input]] = frozenset()
PARAMETERS: Final = (Parameter("seed", "stream of random numbers", 0),)
#: Keeps the stream apart from that of the random placement.
_STREAM: Final = 1


def allocate(problem: Problem, seed: int) -> Allocation:
    """Draw the number of targets of every application."""
    return tuple(
        int(default_rng((seed, _STREAM, j)).integers(1, problem.most_targets(j) + 1))
        for j in range(len(problem.applications))
    )
