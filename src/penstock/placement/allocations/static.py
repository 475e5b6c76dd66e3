# SPDX-License-Identifier: MIT
"""Give targets in proportion to compute nodes.

Rule
    n_j = Q_j N / Q, rounded to the nearest whole number (a half rounds up), at least 1
    and at most the largest number for which the bandwidth is known.

Inputs
    Q_j.

Parameters
    None.

Properties
    Machines whose compute nodes are wired to fixed I/O nodes behave like this: large
    applications get many targets, even if they cannot use them. O(K).

Source
    Target allocation, section 4.1, Static. The paper does not say how a half
    is rounded.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "allocate"]

NEEDS: Final = frozenset({Input.NODES})


def allocate(problem: Problem) -> Allocation:
    """Divide the targets in proportion to the nodes."""
    whole = 2 * problem.compute_nodes
    shares = [
        (2 * application.nodes * problem.resources + problem.compute_nodes) // whole
        for application in problem.applications
    ]
    return tuple(
        min(max(share, 1), problem.most_targets(j)) for j, share in enumerate(shares)
    )
