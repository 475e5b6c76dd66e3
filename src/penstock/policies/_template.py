# SPDX-License-Identifier: MIT
"""Serve the application with the most nodes first (a template: copy this file).

Rule
    Required. What the policy does, in words: sort the active applications by
    number of nodes, largest first, and serve them greedily; an application that
    has lost more than ``patience`` of its age goes before all others.

Parameters
    patience
        Required for each parameter, with unit and default. Fraction of its age that an
        application may lose. Default 0.2.

Properties
    Required. What it needs to know, whether it is work-conserving, cost per decision.

Source
    Required. Paper, section or equation; every deviation from it.
"""

# How to use your own policy, without touching penstock:
#   penstock compare --policy mypolicy.allocate:patience=0.1
# where mypolicy.py is a copy of this file in the current folder. Write FILE.FUNCTION
# (mypolicy.allocate) or PACKAGE.MODULE (the function `allocate` is assumed). For a
# short name, announce it in your package: entry-point group `penstock.policies`.
# A policy of penstock itself also gets one row in `penstock.policies.POLICIES`.

from __future__ import annotations

from math import inf
from typing import Final

from penstock.kernels import Floats, kernel
from penstock.policies.policy import Parameter
from penstock.policies.serving import loss_ratio, serve_lowest_first
from penstock.policies.view import View

__all__ = ["PARAMETERS", "allocate"]

# Optional. The values are in `view.parameters`, in this order, in base units; a word
# is its position among the choices. With a unit ("s", "bytes" or "bytes/s") users may
# write 1min: Parameter("delay", "time to wait", 60.0, "s") is then 60.0 in the view.
PARAMETERS: Final = (
    Parameter("patience", "fraction of its age an application may lose", 0.2),
)
# Optional: `NEEDS`, if a setting needs knowledge that is not always there; see
# `penstock.policies.policy.Knowledge`.


# Required: `allocate`. With @kernel it is compiled; it may then only index, assign
# and call other kernels: no exceptions, no memory allocation. Without @kernel it is
# plain Python without such rules, and costs a microsecond or two per decision, and
# 10 to 30 more for each call of a kernel.
@kernel
def allocate(view: View, rates: Floats) -> float:
    """Set ``rates[i]`` (bytes/s) of the active applications; return the wake-up.

    On entry all rates are 0. A rate must not exceed its cap, nor all rates together
    the capacity. Rates may depend on nothing but `view`: the same view, the same
    rates. `view.key`, `view.order` and `view.scratch` are working memory.
    """
    patience = view.parameters[0]
    rank = view.key
    for position in range(view.n_active):
        i = view.active[position]
        rank[i] = -view.nodes[i]
        if loss_ratio(view, i) > patience:
            rank[i] = -inf
    serve_lowest_first(view, rank, rates)
    # When to decide again if nothing happens before (s): here, never.
    return inf
