# SPDX-License-Identifier: MIT
"""Serve the operation that must be complete first to keep a common yield.

Rule
    To have yield y = 1 - Z when its operation completes, application i must
    complete it at

        d_i(Z) = tau_i + (P_i + V_i / b_i) / y,

    P_i being its progress (work done plus volume over b_i). That is the same as

        (1 - Z)(d_i(Z) - t) = m_i + V_i / b_i,    m_i = Z (t - tau_i) - lost_i,

    m_i being the margin: what it may still lose. Serve greedily by increasing

        m_i + (b_i / B) V_i / B,

    which is the order of deadlines where b_i = B. Z is the largest loss among the
    active applications, the best target that is known to be within reach. Of V_i / B
    only what lies before the end of the window counts.

Parameters
    None.

Properties
    Work-conserving. Needs the volume of an operation when it is posted, and the end
    of the window if it has one. O(k) per decision. If all are of one age, the order
    is that of m_i = -lost_i and the volumes, whatever the target. If also b_i = B, the
    order of two operations does not change while one of them is served: nobody is
    interrupted but by those who arrive.

Source
    Beyond the papers. Greedy-yield (papers/1) is the order of least margin: it looks
    at the loss so far, this one at the loss to come. Earliest deadline first keeps
    every set of deadlines that can be kept where one operation is served at a time.
    Where several are, a long one with a small cap has a late deadline, and must begin
    early all the same: by its margin. So V_i counts by what the operation takes of the
    storage in all, V_i / B, and at a time, b_i / B. Measured in
    ``docs/background/beyond.md``.
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
    """Return m_i + (b_i / B) V_i / B for Z = `target`: lowest is due first (s)."""
    margin = target * (view.now - view.release[i]) - view.lost[i]
    taken = min(view.remaining[i] / view.capacity, view.window_end - view.now)
    return margin + view.cap[i] / view.capacity * taken


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the earliest due first."""
    target = worst_loss(view)
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = due(view, i, target)
    serve_lowest_first(view, key, rates)
    return inf
