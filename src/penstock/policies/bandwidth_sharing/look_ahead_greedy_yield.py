# SPDX-License-Identifier: MIT
"""Serve first the application that leaves the best minimum yield afterwards.

Rule
    For every active application i, consider the allocation in which i gets b_i and the
    others share the rest in the order of greedy-yield. Let h be the time to the first
    completion under this allocation, and Z_i the minimum yield over the ACTIVE
    applications at t + h. Use the allocation with the largest Z_i; ties: first in the
    order of greedy-yield.

Parameters
    horizon
        ``completion`` (default): look ahead to the first completion; ``window``: to
        the end of the window if that comes first, as in the authors' program. A live
        controller has no window: both are the same there.

Properties
    Work-conserving. Needs the volume of an operation when it is posted. O(k^2)
    per decision, but a candidate is dropped as soon as it cannot win.

Source
    Bandwidth sharing, section 4.1, LookAheadGreedyYield. Yields are compared through
    the lost time: the largest minimum yield is the smallest maximum loss. Losses are
    rounded to about 1e-10, so that equal Z tie (`penstock.policies.rounding`).
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.kernels import Floats, inlined, kernel
from penstock.policies.policy import Parameter
from penstock.policies.rounding import GRAIN, round_ratio
from penstock.policies.serving import loss_ratio, sort_lowest_first
from penstock.policies.view import View

__all__ = ["PARAMETERS", "allocate"]

PARAMETERS: Final = (
    Parameter(
        "horizon",
        "look ahead to the first completion, or at most to the end of the window",
        "completion",
        choices=("completion", "window"),
    ),
)


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Keep the best of the allocations that put one application first."""
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = -loss_ratio(view, i)
    sort_lowest_first(view, key, view.order)
    best = view.order[0]
    least = inf
    farthest = inf
    if view.parameters[0] == 1.0:
        farthest = max(view.window_end - view.now, 0.0)
    for position in range(view.n_active):
        i = view.order[position]
        horizon = min(_put_first(view, i, rates), farthest)
        loss = _worst_loss(view, horizon, least, rates)
        if loss < least:
            least = loss
            best = i
        _withdraw(view, i, rates)
    _put_first(view, best, rates)
    return inf


@inlined
def _put_first(view: View, first: int, rates: Floats) -> float:
    """Grant to `first`, then in order; return the time to the first completion."""
    rates[first] = min(view.cap[first], view.capacity)
    left = view.capacity - rates[first]
    horizon = view.remaining[first] / rates[first]
    least = view.capacity * GRAIN
    position = 0
    while left > least and position < view.n_active:
        i = view.order[position]
        if i != first:
            rates[i] = min(view.cap[i], left)
            left -= rates[i]
            horizon = min(horizon, view.remaining[i] / rates[i])
        position += 1
    return horizon


@inlined
def _withdraw(view: View, first: int, rates: Floats) -> None:
    """Undo `_put_first`, which served `first` and the first ones of the order."""
    rates[first] = 0.0
    position = 0
    while position < view.n_active:
        i = view.order[position]
        if i != first and rates[i] == 0.0:
            return
        rates[i] = 0.0
        position += 1


@inlined
def _worst_loss(view: View, horizon: float, limit: float, rates: Floats) -> float:
    """Return 1 - Z, the largest loss at the horizon, rounded.

    Return inf as soon as it is at least `limit`, which is rounded.
    """
    worst = 0.0
    for position in range(view.n_active):
        i = view.order[position]
        lost = view.lost[i] + horizon
        if rates[i] > 0.0:
            lost -= horizon * (rates[i] / view.cap[i])
        age = view.now - view.release[i] + horizon
        worst = max(worst, lost / age if age > 0.0 else 1.0)
        if worst >= limit:
            return inf
    return round_ratio(worst)
