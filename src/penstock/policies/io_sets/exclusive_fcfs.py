# SPDX-License-Identifier: MIT
"""Put all applications in one set and serve in the order of posting.

Rule
    All applications are in one set of priority 1. If b_i = B, one operation has the
    storage for itself; with smaller caps the next one gets what is left, as in `fcfs`.

Parameters
    None.

Properties
    Work-conserving. O(k) per decision if b_i = B. Same rates as `fcfs`, computed
    with sets.

Source
    IO-SETS, section 3, Exclusive-FCFS.
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.io_sets.sets import share_by_sets
from penstock.policies.view import View

__all__ = ["allocate"]


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Share within the only set."""
    number, priority = view.key, view.scratch
    for position in range(view.n_active):
        i = view.active[position]
        number[i] = 0.0
        priority[i] = 1.0
    share_by_sets(view, number, priority, rates)
    return inf
