# SPDX-License-Identifier: MIT
"""Serve the earliest deadline, but let short and rare I/O pass while it costs little.

Rule
    Serve greedily by increasing

        s c_i - u_i - max(0, u_i)^3,

    where Z and m_i are those of earliest-deadline, A is the age of the oldest active
    application, kappa is the smallest cap of an active application over B, and

        urgency  u_i = 1 - (m_i + (b_i / B) V_i / B) / (Z A), at most 1 as m_i >= 0,
        burden   c_i = log(V_i / (B p_i)) - 0.7 log(omega_i),
        weight   s = softness rho kappa (1 - Z)^2 (1 + min(3, (t_end - t) / A)).

    V_i / B is cut at the end of the window. Times in c_i are in units of A. omega_i is
    the mean length of its iterations (before the first is complete: of the present one,
    or of what precedes the first operation and that operation), p_i its nodes; rho is
    the sum over the k active applications of n / (n + 1), divided by k + 2, where n is
    the number of iterations that the application has completed. If the end of the
    window is not known, the minimum is 0. While no application has lost time, the order
    is that of earliest-deadline. The wake-ups are those of earliest-deadline.

Parameters
    softness
        How unequal losses may be in favour of efficiency. 0 is earliest-deadline;
        larger values come closer to greedy-com. Default 0.5.

Properties
    Work-conserving. Needs the volume of an operation when it is posted, and the end
    of the window if it has one. O(k + s log k) per decision for k active applications,
    of which s are served; O(k) if b_i = B.

Source
    Beyond the papers: ``docs/background/beyond.md`` derives the rule. Its parts:

    - Burden: to serve i first delays the others by V_i / B and favours p_i nodes
      (weighted shortest first). Application i posts again after omega_i, so its share
      of the I/O is V_i / omega_i, which matters if the storage is saturated. The
      exponent 0.7 is a compromise between both orders.
    - The cube and (1 - Z)^2 protect applications near the minimum yield.
    - kappa protects applications with a small cap, which cannot catch up quickly.
    - rho: only applications that post again can make up for time lost early.

    The constants were chosen on training instances.
"""

from __future__ import annotations

from math import inf, log
from typing import Final

from penstock.kernels import Floats, inlined, kernel
from penstock.policies.beyond.earliest_deadline import (
    due,
    next_wake_up,
    oldest_age,
    worst_loss,
)
from penstock.policies.policy import Parameter
from penstock.policies.rounding import round_ratio, round_time
from penstock.policies.serving import serve_lowest_first
from penstock.policies.view import View

__all__ = ["PARAMETERS", "allocate"]

PARAMETERS: Final = (
    Parameter("softness", "how unequal losses may be in favour of efficiency", 0.5),
)

_PERIOD_EXPONENT: Final = 0.7
_MOST_REPAID: Final = 3.0
#: Stands for 0, which has no logarithm: no volume, or an iteration of length 0.
_TINY: Final = 1e-300


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve by urgency and burden."""
    target = worst_loss(view)
    oldest = oldest_age(view)
    scale = target * oldest
    soft = _softness(view, target, oldest) if scale > 0.0 else 0.0
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = due(view, i, target, oldest)
        if scale > 0.0:
            pressing = _pressing(1.0 - key[i] / scale)
            key[i] = round_ratio(soft * _burden(view, i, oldest) - pressing)
    serve_lowest_first(view, key, rates)
    return next_wake_up(view, rates, oldest)


@inlined
def _pressing(urgency: float) -> float:
    """Return u + max(0, u)^3, which is steep near the minimum yield (u = 1)."""
    above = max(0.0, urgency)
    # Not `** 3`: compiled and interpreted powers differ in the last bit.
    return urgency + above * above * above


@inlined
def _softness(view: View, target: float, oldest: float) -> float:
    """Return s, the weight of the burden against the urgency."""
    left = view.window_end - view.now
    repaid = min(_MOST_REPAID, left / oldest) if left < inf else 0.0
    kept = (1.0 - target) * (1.0 - target) * _smallest_cap(view)
    return view.parameters[0] * _returning(view) * kept * (1.0 + repaid)


@inlined
def _smallest_cap(view: View) -> float:
    """Return kappa: the smallest cap of an active application over B, at most 1."""
    smallest = view.capacity
    for position in range(view.n_active):
        smallest = min(smallest, view.cap[view.active[position]])
    return smallest / view.capacity


@inlined
def _returning(view: View) -> float:
    """Return rho, the confidence that the active applications will post again."""
    known = 0.0
    for position in range(view.n_active):
        completed = view.iterations[view.active[position]]
        known += completed / (completed + 1.0)
    return known / (view.n_active + 2.0)


@inlined
def _burden(view: View, i: int, unit: float) -> float:
    """Return c_i = log(V_i / (B p_i)) - 0.7 log(omega_i), times in `unit` (s).

    V_i / B is cut at the end of the window.
    """
    left = view.window_end - view.now
    taken = min(view.remaining[i] / view.capacity, left)
    occupied = round_time(taken, view.now) / view.nodes[i]
    short = log(max(occupied / unit, _TINY))
    return short - _PERIOD_EXPONENT * log(max(_period(view, i) / unit, _TINY))


@inlined
def _period(view: View, i: int) -> float:
    """Return omega_i: mean length of an iteration, or work and I/O at present (s)."""
    if view.iterations[i] > 0:
        return view.iteration_time[i] / view.iterations[i]
    return view.work_before[i] + view.volume[i] / view.cap[i]
