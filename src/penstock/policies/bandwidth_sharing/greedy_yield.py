# SPDX-License-Identifier: MIT
"""Serve the application that has progressed least, relative to its age.

Rule
    Sort the active applications by yield y_i(t); serve them greedily.

Parameters
    None.

Properties
    Work-conserving. Needs only the yields, which are observed. O(k) per
    decision.

Source
    Bandwidth sharing, section 4.1, GreedyYield. Yields are compared through the lost
    time; see `penstock.policies.serving.loss_ratio`.
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.serving import loss_ratio, serve_lowest_first
from penstock.policies.view import View

__all__ = ["allocate", "serve_lowest_yield"]


@kernel
def serve_lowest_yield(view: View, rates: Floats) -> None:
    """Serve greedily by increasing yield, ties by application index."""
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = -loss_ratio(view, i)
    serve_lowest_first(view, key, rates)


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the lowest yield first."""
    serve_lowest_yield(view, rates)
    return inf
