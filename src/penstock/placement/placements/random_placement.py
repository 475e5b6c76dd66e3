# SPDX-License-Identifier: MIT
"""Put every application on targets drawn at random.

Rule
    n_j different targets; all choices are equally likely.

Inputs
    Nothing.

Parameters
    seed
        The same seed gives the same targets. Default 0. Application j has its own
        random stream, so that its targets do not depend on the others.

Properties
    File systems that ignore the load behave like this. O(K N).

Source
    Target allocation, section 4.2, Random-Placement (RandP).
"""

from __future__ import annotations

from typing import Final

from numpy.random import default_rng

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Parameter, Placement
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "PARAMETERS", "place"]

NEEDS: Final[frozenset[Input]] = frozenset()
PARAMETERS: Final = (Parameter("seed", "stream of random numbers", 0),)
#: Keeps the stream apart from that of the random allocation.
_STREAM: Final = 2


def place(problem: Problem, allocation: Allocation, seed: int) -> Placement:
    """Draw the targets of every application."""
    return tuple(
        tuple(default_rng((seed, _STREAM, j)).permutation(problem.resources)[:n])
        for j, n in enumerate(allocation)
    )
