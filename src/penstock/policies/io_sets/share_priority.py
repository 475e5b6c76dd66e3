# SPDX-License-Identifier: MIT
"""Share between all applications with the priorities of set-10.

Rule
    Every application is alone in a set of priority 10^-n, where n is its set in set-10.
    It shows the effect of the priorities without the sets.

Parameters
    initial, initial_weight, update, period: see `penstock.policies.io_sets.sets`.

Properties
    Work-conserving. O(k^2) per decision for k active applications.

Source
    IO-SETS, section 3 (mapping of Fair-Share, priorities of Set-10).
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.io_sets.sets import (
    NEEDS,
    PARAMETERS,
    UNCLASSIFIED,
    magnitude,
    priority_of_magnitude,
    share_by_sets,
)
from penstock.policies.view import View

__all__ = ["NEEDS", "PARAMETERS", "allocate"]


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Share between all active applications by priority 10^-n."""
    number, priority = view.key, view.scratch
    for position in range(view.n_active):
        i = view.active[position]
        priority[i] = priority_of_magnitude(view, magnitude(view, i))
        # Applications of infinite priority form one set: served in order, not shared.
        number[i] = i if priority[i] < inf else UNCLASSIFIED
    share_by_sets(view, number, priority, rates)
    return inf
