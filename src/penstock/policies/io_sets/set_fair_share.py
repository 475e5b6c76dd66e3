# SPDX-License-Identifier: MIT
"""Share equally between the sets of set-10, serve in order within a set.

Rule
    The sets of set-10, all with priority 1. It shows the effect of the sets without
    the priorities.

Parameters
    initial, initial_weight, update, period: see `penstock.policies.io_sets.sets`.

Properties
    Work-conserving. O(k s) per decision for k active applications in s sets, if
    b_i = B.

Source
    IO-SETS, section 3 (mapping of Set-10, priorities of Fair-Share).
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.io_sets.sets import (
    NEEDS,
    PARAMETERS,
    UNCLASSIFIED,
    initial_priority,
    magnitude,
    share_by_sets,
)
from penstock.policies.view import View

__all__ = ["NEEDS", "PARAMETERS", "allocate"]


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Share by magnitude of the period, all priorities 1."""
    number, priority = view.key, view.scratch
    for position in range(view.n_active):
        i = view.active[position]
        n = magnitude(view, i)
        number[i] = n
        priority[i] = initial_priority(view) if n == UNCLASSIFIED else 1.0
    share_by_sets(view, number, priority, rates)
    return inf
