# SPDX-License-Identifier: MIT
"""BestNextEvent (bandwidth sharing, section 4.3) by brute force.

For every application k whose completion may define the next event, the sorted
vector of the yields at the horizon h is a continuous function of h. It is
looked at in all the places where its structure changes, i.e. where two of these
curves cross:

* of every application the yield without bandwidth P / (A + h), at full bandwidth
  (P + h) / (A + h), and at completion (P + V/b) / (A + h);
* the level of the water-filling, (hB' + constant) / (constant + h constant).

Between two such places every entry of the sorted vector is a homographic
function of h, hence monotone or constant: the best h of the interval is one of
its ends. Horizons that are irrational are taken to 60 decimal places, and
yields are compared with a tolerance of 1e-30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import NamedTuple

from oracle.simulator import ZERO, Active, Decision, State

__all__ = ["Best", "BestNextEvent", "achieved_vector", "best_vector", "better"]

DIGITS = 60
#: Intervals shorter than this are not searched.
TINY = Fraction(1, 10**50)
TOLERANCE = Fraction(1, 10**30)

Vector = tuple[Fraction, ...]
Rates = dict[int, Fraction]


class Best(NamedTuple):
    """The best predictable event."""

    vector: Vector
    """Yields of the active applications at the event, sorted."""
    k: int | None
    """Index of the application that completes; None: none before the end."""
    h: Fraction
    """Time from now to the event."""
    rates: Rates
    """Rates that lead there, before left-over bandwidth is given away."""


class Curve(NamedTuple):
    """(p + q h) / (r + s h)."""

    p: Fraction
    q: Fraction
    r: Fraction
    s: Fraction


@dataclass(frozen=True)
class BestNextEvent:
    """Maximise the sorted yields, lexicographically, at the next event."""

    def decide(self, state: State) -> Decision:
        """Return the best rates, and give what is left to the lowest yields."""
        return give_rest(state, best_vector(state).rates), None


def give_rest(state: State, rates: Rates) -> Rates:
    """Give left-over bandwidth in GreedyYield order, yields rounded to 1e-30."""
    left = state.bandwidth - sum(rates.values(), ZERO)
    order = sorted(
        state.active, key=lambda a: (round(a.yield_now / TOLERANCE), a.index)
    )
    given = dict(rates)
    for a in order:
        more = min(a.cap - given[a.index], left)
        given[a.index] += more
        left -= more
    return given


def best_vector(state: State) -> Best:
    """Return the best event of all; ties: lowest k, then the nearest event."""
    end = state.window_end - state.time
    best: Best | None = None
    for k in state.active:
        for h in horizons(state, k, end):
            rates = rates_to(state, k, h)
            vector = sorted_yields(state, rates, h)
            if best is None or better(vector, best.vector):
                best = Best(vector, k.index, h, rates)
    rates = rates_to(state, None, end)
    vector = sorted_yields(state, rates, end)
    if best is None or better(vector, best.vector):
        best = Best(vector, None, end, rates)
    return best


def achieved_vector(state: State, rates: Rates, *more: Fraction) -> Vector:
    """Return the best sorted yields that `rates` lead to at a completion or the end.

    Further horizons to look at may be given: left-over bandwidth may take the
    completion of k forward, and hide the h that was meant. An application that
    completes before the horizon counts with its operation only, i.e. as if its
    rate were V/h; so no rates lead to a better vector than `best_vector` does.
    """
    end = state.window_end - state.time
    served = [a for a in state.active if rates[a.index] > 0]
    ends = [a.remaining / rates[a.index] for a in served]
    first = min([*ends, end])  # before that there is no event
    best: Vector | None = None
    for h in [*ends, end, *more]:
        if first <= h <= end:
            vector = sorted_yields(state, rates, h)
            if best is None or better(vector, best):
                best = vector
    assert best is not None
    return best


def better(vector: Vector, other: Vector) -> bool:
    """Return True if `vector` is lexicographically larger, beyond the tolerance."""
    for x, y in zip(vector, other, strict=True):
        if abs(x - y) > TOLERANCE:
            return x > y
    return False


def sorted_yields(state: State, rates: Rates, h: Fraction) -> Vector:
    """Return the yields of the active applications after h, sorted."""
    return tuple(sorted(a.yield_after(h, rates[a.index]) for a in state.active))


# --- the best allocation for a given event -------------------------------------


def rates_to(state: State, k: Active | None, h: Fraction) -> Rates:
    """Return the max-min rates if k completes after h (k None: no completion)."""
    others = [a for a in state.active if a is not k]
    rates = {} if k is None else {k.index: k.remaining / h}
    budget = state.bandwidth - sum(rates.values(), ZERO)
    level = water_level(others, budget, h)
    for a in others:
        rates[a.index] = rate_at(a, level, h)
    return rates


def rate_at(a: Active, level: Fraction, h: Fraction) -> Fraction:
    """Return the rate in [0, min(b, V/h)] that brings `a` nearest to the yield."""
    wanted = a.cap * (level * (a.age + h) - a.progress) / h
    return max(ZERO, min(wanted, a.cap, a.remaining / h))


def water_level(others: list[Active], budget: Fraction, h: Fraction) -> Fraction:
    """Return the yield up to which `budget` raises all applications that it can raise.

    The bandwidth needed is piecewise linear in the level, with its corners at
    the lowest and highest yields of the applications.
    """
    if not others:
        return ZERO
    corners = sorted(
        {a.yield_after(h, ZERO) for a in others}
        | {a.yield_after(h, a.cap) for a in others}
    )
    needed = [sum((rate_at(a, y, h) for a in others), ZERO) for y in corners]
    if needed[-1] <= budget:
        return corners[-1]
    above = next(n for n, need in enumerate(needed) if need > budget)
    low, high = corners[above - 1], corners[above]
    part = (budget - needed[above - 1]) / (needed[above] - needed[above - 1])
    return low + part * (high - low)


# --- the horizons worth a look -------------------------------------------------


def horizons(state: State, k: Active, end: Fraction) -> list[Fraction]:
    """Return all horizons at which k's completion may be the best event."""
    first = k.time_at_cap
    if first > end:
        return []
    places = {first, end} | {
        h for h in fixed_breakpoints(state.active) if first < h < end
    }
    ordered = sorted(places)
    for low, high in pairwise(ordered):
        places |= structure_changes(state, k, low, high)
    return sorted(places)


def fixed_breakpoints(active: Sequence[Active]) -> set[Fraction]:
    """Return V/b of all, and where the curves of two applications cross."""
    breakpoints = {a.time_at_cap for a in active}
    for n, a in enumerate(active):
        for other in active[n + 1 :]:
            for curve in own_curves(a):
                for crossed in own_curves(other):
                    breakpoints.update(crossings(curve, crossed))
    return breakpoints


def own_curves(a: Active) -> tuple[Curve, Curve, Curve]:
    """Return the yields of `a` at no bandwidth, at full bandwidth, at completion."""
    one = Fraction(1)
    return (
        Curve(a.progress, ZERO, a.age, one),
        Curve(a.progress, one, a.age, one),
        Curve(a.progress + a.time_at_cap, ZERO, a.age, one),
    )


def structure_changes(
    state: State, k: Active, low: Fraction, high: Fraction
) -> set[Fraction]:
    """Return where the level crosses a curve between two fixed breakpoints.

    The structure in the middle holds up to the nearest crossings on its left and
    right; what lies beyond them is looked at in the same way.
    """
    changes: set[Fraction] = set()
    todo = [(low, high)]
    while todo:
        left, right = todo.pop()
        if right - left < TINY:
            continue
        middle = (left + right) / 2
        places = level_crossings(state, k, middle)
        if places is None or any(abs(h - middle) < TINY for h in places):
            changes.add(middle)
            todo += [(left, middle), (middle, right)]
            continue
        before = max((h for h in places if left < h < middle), default=left)
        after = min((h for h in places if middle < h < right), default=right)
        changes |= {before, after}
        if before > left:
            todo.append((left, before))
        if after < right:
            todo.append((after, right))
    return changes


def level_crossings(state: State, k: Active, h: Fraction) -> list[Fraction] | None:
    """Return where the level, with the structure at h, crosses another curve.

    None if the structure changes at h itself.
    """
    others = [a for a in state.active if a is not k]
    if not others:
        return []
    level = water_level(others, state.bandwidth - k.remaining / h, h)
    bandwidth, volume = (
        state.bandwidth,
        k.remaining,
    )  # of the applications that share the rest
    shared: list[Active] = []
    for a in others:
        if level >= a.yield_after(h, a.cap):  # its largest possible rate
            if a.time_at_cap > h:
                bandwidth -= a.cap
            else:
                volume += a.remaining
        elif level > a.yield_after(h, ZERO):
            shared.append(a)
    if shared:
        curve = Curve(
            sum((a.progress * a.cap for a in shared), -volume),
            bandwidth,
            sum((a.age * a.cap for a in shared), ZERO),
            sum((a.cap for a in shared), ZERO),
        )
        every = [c for a in state.active for c in own_curves(a)]
        return [x for other in every for x in crossings(curve, other)]
    if bandwidth * h == volume:
        return None
    # Enough for all: until the volumes no longer fit, volume / h = bandwidth.
    one = Fraction(1)
    return crossings(Curve(volume, ZERO, ZERO, one), Curve(bandwidth, ZERO, one, ZERO))


def crossings(f: Curve, g: Curve) -> list[Fraction]:
    """Return the h > 0 at which f(h) = g(h); none if they are the same curve."""
    a = f.q * g.s - g.q * f.s
    b = f.p * g.s + f.q * g.r - g.p * f.s - g.q * f.r
    c = f.p * g.r - g.p * f.r
    return [h for h in roots(a, b, c) if h > 0]


def roots(a: Fraction, b: Fraction, c: Fraction) -> list[Fraction]:
    """Return the real roots of a h^2 + b h + c, exact or to 60 decimal places."""
    if a == 0:
        return [-c / b] if b != 0 else []
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return []
    root, exact = square_root(discriminant)
    solutions = [(-b - root) / (2 * a), (-b + root) / (2 * a)]
    return (
        solutions
        if exact
        else [Fraction(round(h * 10**DIGITS), 10**DIGITS) for h in solutions]
    )


def square_root(x: Fraction) -> tuple[Fraction, bool]:
    """Return the square root, to twice the digits wanted, and whether it is exact."""
    square = x.numerator * x.denominator
    whole = isqrt(square)
    if whole * whole == square:
        return Fraction(whole, x.denominator), True
    scale = 10 ** (2 * DIGITS)
    return Fraction(isqrt(square * scale**2), x.denominator * scale), False
