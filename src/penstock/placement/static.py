# SPDX-License-Identifier: MIT
"""Give targets in proportion to compute nodes.

Rule
    n_j = Q_j N / Q, rounded to the nearest whole number (a half rounds up), at
    least 1 and at most what the bandwidth is known for.

Inputs
    Q_j.

Parameters
    None.

Properties
    What happens on machines whose nodes are wired to their I/O nodes: large
    applications get many targets, whether they can use them or not. O(K).

Source
    papers/2 section 4.1, Static. Which way a half rounds is not given there.
"""

from __future__ import annotations

from typing import Final

from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "allocate"]

NEEDS: Final = frozenset({Input.NODES})


def allocate(problem: Problem) -> Allocation:
    """Divide the targets as the nodes are divided."""
    whole = 2 * problem.compute_nodes
    shares = [
        (2 * application.nodes * problem.resources + problem.compute_nodes) // whole
        for application in problem.applications
    ]
    return tuple(
        min(max(share, 1), problem.most_targets(j)) for j, share in enumerate(shares)
    )
