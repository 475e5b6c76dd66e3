# SPDX-License-Identifier: MIT
"""Serve the operation that can be completed soonest.

Rule
    Sort the active applications by V_i / b_i, the time that the rest of the
    operation takes at full bandwidth; serve them greedily.

Parameters
    None.

Properties
    Work-conserving. Needs the volume of an operation when it is posted. Long
    operations may starve. O(k) per decision.

Source
    Bandwidth sharing, section 4.1, GreedyCom.
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.rounding import round_time
from penstock.policies.serving import serve_lowest_first
from penstock.policies.view import View

__all__ = ["allocate"]


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the shortest remaining transfer first."""
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = round_time(view.remaining[i] / view.cap[i], view.now)
    serve_lowest_first(view, key, rates)
    return inf
