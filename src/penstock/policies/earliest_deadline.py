# SPDX-License-Identifier: MIT
"""Serve the operation that must be complete first to keep a common yield.

Rule
    To have yield y = 1 - Z when its operation completes, application i must
    complete it at

        d_i(Z) = tau_i + (P_i + V_i / b_i) / y,

    P_i being its progress (work done plus volume over b_i). Serve greedily by
    increasing deadline. Z is the largest loss among the active applications, the
    best target that is known to be within reach. Of V_i only what can be transferred
    before the end of the window counts.

Parameters
    None.

Properties
    Work-conserving. Needs the volume of an operation when it is posted, and the end
    of the window if it has one. O(k) per decision. If all are of one age, the order
    is that of lost time minus V_i / b_i, whatever the target. The order of two
    operations does not change while one of them is served: nobody is interrupted
    but by those who arrive.

Source
    Beyond the papers. Greedy-yield (papers/1) is the order of least laxity for the
    same deadlines: it looks at the loss so far, this one at the loss to come.
    Earliest deadline first keeps every set of deadlines that can be kept on one
    resource; ``docs/beyond.md`` says what that is worth here.
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.serving import serve_lowest_first
from penstock.policies.view import View

__all__ = ["allocate", "due", "worst_loss"]


@kernel
def worst_loss(view: View) -> float:
    """Return Z, the largest share of its age that an active application lost."""
    worst = 0.0
    for position in range(view.n_active):
        i = view.active[position]
        age = view.now - view.release[i]
        if age > 0.0:
            worst = max(worst, view.lost[i] / age)
    return worst


@kernel
def due(view: View, i: int, target: float) -> float:
    """Return (1 - Z)(d_i(Z) - now) = Z age_i - lost_i + V_i / b_i for Z = `target` (s).

    1 - Z is the same for all: the order is that of the deadlines.
    """
    left = view.window_end - view.now
    alone = min(view.remaining[i] / view.cap[i], left)
    return target * (view.now - view.release[i]) - view.lost[i] + alone


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the earliest deadline first."""
    target = worst_loss(view)
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = due(view, i, target)
    serve_lowest_first(view, key, rates)
    return inf
