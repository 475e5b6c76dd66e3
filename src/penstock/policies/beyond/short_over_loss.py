# SPDX-License-Identifier: MIT
"""Serve short operations first, weighted by the time their application lost.

Rule
    Sort the active applications by (V_i / b_i) / l_i^e, where l_i = 1 - y_i is the
    share of its age that application i has lost; serve them greedily.

Parameters
    exponent
        e: 0 is greedy-com, infinity is greedy-yield. Default 16.

Properties
    Work-conserving. Needs the volume of an operation when it is posted.
    O(k + s log k) per decision for k active applications, of which s are served; O(k)
    if b_i = B. A larger exponent gives more MinYield and less Efficiency.

Source
    Beyond the papers: weighted shortest processing time first, where the weight of
    an application grows with its loss. A loss of 0 counts as 1e-12.
"""

from __future__ import annotations

from math import inf, log
from typing import Final

from penstock.kernels import Floats, kernel
from penstock.policies.policy import Parameter
from penstock.policies.rounding import round_ratio, round_time
from penstock.policies.serving import loss_ratio, serve_lowest_first
from penstock.policies.view import View

__all__ = ["PARAMETERS", "allocate"]

PARAMETERS: Final = (
    Parameter("exponent", "e; 0: shortest first, infinity: lowest yield first", 16.0),
)

_LEAST_LOSS: Final = 1e-12
#: Stands for 0, which has no logarithm: an operation without volume.
_TINY: Final = 1e-300


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the smallest quotient first, compared by logarithms."""
    exponent = view.parameters[0]
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        alone = max(round_time(view.remaining[i] / view.cap[i], view.now), _TINY)
        loss = max(loss_ratio(view, i), _LEAST_LOSS)
        key[i] = round_ratio(log(alone) - exponent * log(loss))
    serve_lowest_first(view, key, rates)
    return inf
