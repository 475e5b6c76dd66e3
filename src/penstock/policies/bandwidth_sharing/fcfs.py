# SPDX-License-Identifier: MIT
"""Serve operations in the order in which they were posted.

Rule
    Sort the active applications by post time R_i; serve them greedily: each
    gets its cap b_i until the bandwidth is used up.

Parameters
    None.

Properties
    Work-conserving. Needs no knowledge of the applications. O(k) per decision for k
    active applications if b_i = B.

Source
    Bandwidth sharing, section 4.1, FCFS. Operations posted at the same instant are
    served by application index.
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.serving import serve_lowest_first
from penstock.policies.view import View

__all__ = ["allocate"]


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the oldest operation first."""
    serve_lowest_first(view, view.posted, rates)
    return inf
