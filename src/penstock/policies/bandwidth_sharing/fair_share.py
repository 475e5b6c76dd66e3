# SPDX-License-Identifier: MIT
"""Give every active application the same fraction of its cap.

Rule
    alpha = min(1, B / sum of b_j over active j); application i gets alpha b_i.

Parameters
    None.

Properties
    Work-conserving. Needs no knowledge of the applications. O(k) per decision.
    Chaotic: an operation that is posted when k others are active and completes when K
    are active multiplies an error in time by about K / (k + 1). So two correct programs
    agree on the yields of single applications only for some thousands of events.

Source
    Bandwidth sharing, section 4.1, FairShare: parallel file systems without a
    policy behave like this.
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.view import View

__all__ = ["allocate"]


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Give every active application the same fraction of its cap."""
    total = 0.0
    for position in range(view.n_active):
        total += view.cap[view.active[position]]
    fraction = 1.0 if total <= view.capacity else view.capacity / total
    for position in range(view.n_active):
        i = view.active[position]
        rates[i] = fraction * view.cap[i]
    return inf
