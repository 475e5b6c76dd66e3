# SPDX-License-Identifier: MIT
"""Serve the operation that must complete first for a common yield.

Rule
    To have yield y = 1 - Z when its operation completes, application i must
    complete it at

        d_i(Z) = tau_i + (P_i + V_i / b_i) / y,

    where P_i is its progress (work done plus volume over b_i). This is equivalent to

        (1 - Z)(d_i(Z) - t) = m_i + V_i / b_i,    m_i = Z (t - tau_i) - lost_i,

    where the margin m_i is the time that it may still lose. Serve greedily by
    increasing

        m_i + (b_i / B) V_i / B,

    which is the order of the deadlines if b_i = B. Z is the largest loss among the
    active applications: the best loss that is known to be reachable for all. V_i / B
    is cut at the end of the window.

    While an operation with b_i < B is served and another one waits, decide again after
    a 200th of the time from the oldest release to the end of the window, if nothing
    happens before.

Parameters
    None.

Properties
    Work-conserving. Needs the volume of an operation when it is posted, and the end
    of the window if it has one. O(k + s log k) per decision for k active applications,
    of which s are served; O(k) if b_i = B. If all applications have the same age, the
    order depends on lost times and volumes only, not on Z. If also b_i = B, the order
    of two operations does not change while one of them is served: an operation is only
    interrupted by operations that are posted later.

Source
    Beyond the papers. Greedy-yield (bandwidth sharing) serves the smallest margin: it
    considers the loss so far, this policy the loss to come. If one operation is served
    at a time, earliest deadline first meets all deadlines whenever any order does. If
    several are served, a long operation with a small cap has a late deadline but must
    begin early. So V_i is weighted by the part of the storage that the operation uses,
    in total (V_i / B) and at a time (b_i / B). The margin of an operation that waits
    shrinks faster than that term of one that is served with b_i < B: the order changes
    although nothing happens, hence the wake-ups. Measured in
    ``docs/background/beyond.md``.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.kernels import Floats, inlined, kernel
from penstock.policies.rounding import GRAIN, is_full, round_time
from penstock.policies.serving import serve_lowest_first
from penstock.policies.view import View

__all__ = ["allocate", "due", "next_wake_up", "oldest_age", "worst_loss"]

#: Wake-ups from the oldest release to the end of the window, at most.
_WAKE_UPS: Final = 200.0


@inlined
def worst_loss(view: View) -> float:
    """Return Z: the largest share of its age that an active application has lost."""
    worst = 0.0
    for position in range(view.n_active):
        i = view.active[position]
        age = view.now - view.release[i]
        if age > 0.0:
            worst = max(worst, view.lost[i] / age)
    return worst


@inlined
def oldest_age(view: View) -> float:
    """Return A, the largest age of an active application (s)."""
    oldest = 0.0
    for position in range(view.n_active):
        oldest = max(oldest, view.now - view.release[view.active[position]])
    return oldest


@inlined
def due(view: View, i: int, target: float, oldest: float) -> float:
    """Return m_i + (b_i / B) V_i / B for Z = `target`: lowest is due first (s).

    It is rounded, so that equal deadlines tie; `oldest` is the largest age (s).
    """
    margin = target * (view.now - view.release[i]) - view.lost[i]
    taken = min(view.remaining[i] / view.capacity, view.window_end - view.now)
    exact = margin + view.cap[i] / view.capacity * taken
    return round_time(exact, max(abs(view.now), oldest))


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the earliest deadline first."""
    target, oldest = worst_loss(view), oldest_age(view)
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = due(view, i, target, oldest)
    serve_lowest_first(view, key, rates)
    return next_wake_up(view, rates, oldest)


@inlined
def next_wake_up(view: View, rates: Floats, oldest: float) -> float:
    """Return when to decide again, given the rates (s); inf: at the next event.

    `oldest` is the largest age (s). The interval does not depend on the begin of the
    window, which only measures.
    """
    length = view.window_end - view.now + oldest
    if length == inf:
        return inf
    waits = False
    capped = False
    for position in range(view.n_active):
        i = view.active[position]
        if not is_full(rates[i], view.cap[i]):
            waits = True
        elif not is_full(view.cap[i], view.capacity):
            capped = True
    if not (waits and capped):
        return inf
    return view.now + max(length / _WAKE_UPS, abs(view.now) * GRAIN)
