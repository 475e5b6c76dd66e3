# SPDX-License-Identifier: MIT
"""Share so that the minimum yield at the next completion is the best possible.

Rule
    A plan is an application c and a horizon h <= T_end - t: c completes its operation
    at t + h, no application completes before, and the yields at t + h are the
    lexicographic max-min under the capacity. One more plan: no application completes
    before T_end. Follow the plan whose sorted yields are lexicographically largest.
    Give the bandwidth that it leaves in the order of greedy-yield.

Parameters
    None.

Properties
    Work-conserving. Needs the volume of an operation when it is posted, and
    T_end. O(k^2) per decision for k active applications, with a small constant.

Method
    Write loss = 1 - yield. Application i has age A_i and lost time L_i, and alone
    would need d_i = V_i / b_i for the rest of its operation. A plan (c, h) keeps all
    losses at t + h within x if and only if

    (1) h <= (x A_i + d_i - L_i) / (1 - x) for all i   (i completes no earlier),
    (2) h >= L_i / x - A_i                             (i can do it at its cap),
    (3) h >= d_c, h <= T_end - t,
    (4) sum over i != c of b_i max(0, h + L_i - x (A_i + h))  <=  B h - V_c.

    The left side of (4) is convex in h. So for given x the feasible horizons form an
    interval, which shrinks as x decreases. A bracketed secant on x finds the least loss
    of c; a candidate that does not improve on the least loss so far is dropped after
    one O(k) test. At the resulting horizon, one water-filling gives the
    rates. (The paper searches a quadratic number of intervals of h instead.)

Source
    Bandwidth sharing, section 4.3, BestNextEvent. Our rule for ties: if an application
    completes at the horizon anyway, the plan makes no other one complete.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.kernels import Floats, kernel
from penstock.policies.serving import loss_ratio, sort_lowest_first
from penstock.policies.view import View

__all__ = ["allocate"]

# Columns of `view.scratch`, one entry per position in `view.active`.
_CAP: Final = 0
_LOST: Final = 1
_AGE: Final = 2
_ALONE: Final = 3
_TURN: Final = 4
_AMOUNT: Final = 5

#: Candidate of the plan in which no application completes inside the window.
_NO_CANDIDATE: Final = -1
_STEPS: Final = 80
_PRECISION: Final = 1e-15
#: Rounding error of a date, relative to the age of an application.
_SLACK: Final = 1e-14


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Follow the plan with the lexicographically largest sorted yields."""
    demand, soonest = _prepare(view)
    alone = view.scratch[_ALONE * view.entries + soonest]
    age = view.scratch[_AGE * view.entries + soonest]
    if demand <= view.capacity or alone <= _SLACK * age:
        # Either there is no contention, or an operation should have completed at this
        # instant and rounding has left a tiny rest, which no plan would serve.
        return _serve_soonest(view, soonest, rates)
    candidate, horizon, loss = _best_plan(view, soonest)
    _fill(view, candidate, horizon, loss)
    left = view.capacity
    for position in range(view.n_active):
        i = view.active[position]
        amount = view.scratch[_AMOUNT * view.entries + position]
        rates[i] = min(amount / horizon, view.cap[i])
        left -= rates[i]
    _serve_left_over(view, left, rates)
    return inf


@kernel
def _prepare(view: View) -> tuple[float, int]:
    """Fill the columns; return the sum of the caps and a position in `view.active`.

    The position is that of the application that can complete soonest.
    """
    m = view.entries
    scratch = view.scratch
    demand = 0.0
    soonest = 0
    for position in range(view.n_active):
        i = view.active[position]
        alone = view.remaining[i] / view.cap[i]
        scratch[_CAP * m + position] = view.cap[i]
        scratch[_LOST * m + position] = view.lost[i]
        scratch[_AGE * m + position] = view.now - view.release[i]
        scratch[_ALONE * m + position] = alone
        demand += view.cap[i]
        if alone < scratch[_ALONE * m + soonest]:
            soonest = position
    return demand, soonest


@kernel
def _best_plan(view: View, soonest: int) -> tuple[int, float, float]:
    """Return candidate, horizon and largest loss of the best plan."""
    m = view.entries
    scratch = view.scratch
    candidate, horizon = _NO_CANDIDATE, view.window_end - view.now
    least = _fill(view, candidate, horizon, 0.5)
    alone = scratch[_ALONE * m + soonest]
    if alone <= horizon:
        loss = _fill(view, soonest, alone, 0.5 * least)
        if loss < least:
            candidate, horizon, least = soonest, alone, loss
    last = _limits(view, least)[1]
    for offset in range(view.n_active):
        c = (soonest + offset) % view.n_active
        alone = scratch[_ALONE * m + c]
        floor = scratch[_LOST * m + c] / (scratch[_AGE * m + c] + alone)
        if floor >= least or alone > last:
            continue
        loss, best = _improve(view, c, floor, least)
        if best > 0.0:
            candidate, horizon, least = c, best, loss
            last = _limits(view, least)[1]
    return _completing(view, candidate, horizon, least), horizon, least


@kernel
def _completing(view: View, candidate: int, horizon: float, loss: float) -> int:
    """Return the position that completes at the horizon anyway, else `candidate`."""
    m = view.entries
    scratch = view.scratch
    oldest = 0.0
    for position in range(view.n_active):
        oldest = max(oldest, scratch[_AGE * m + position])
    # By (2), the loss determines the horizon up to rounding errors of an age.
    slack = min(_SLACK * (oldest + horizon), 1e-6 * horizon)
    if horizon >= view.window_end - view.now - slack:
        return _NO_CANDIDATE
    for position in range(view.n_active):
        late = horizon - scratch[_ALONE * m + position]
        lost = scratch[_LOST * m + position] + late
        allowed = loss * (scratch[_AGE * m + position] + horizon)
        if late >= -slack and lost >= allowed - slack:
            return position
    return candidate


@kernel
def _improve(view: View, c: int, floor: float, least: float) -> tuple[float, float]:
    """Return the least loss of candidate `c` above `floor`, and its horizon.

    The horizon is 0 if the loss is not smaller than `least`.
    """
    high = least * (1.0 - _PRECISION)
    high_gap, horizon = _gap(view, high, c)
    if high_gap > 0.0 or high <= floor:
        return least, 0.0
    low = floor
    low_gap, best = _gap(view, low, c)
    if low_gap <= 0.0:
        return low, best
    slow = False
    kept_low = kept_high = False
    for _ in range(_STEPS):
        width = high - low
        if width <= _PRECISION * high:
            break
        middle = high - width * (-high_gap / (low_gap - high_gap))
        if slow or not low < middle < high:
            middle = low + 0.5 * width
        gap, best = _gap(view, middle, c)
        # Illinois method: halve the gap of an end that stayed twice, so that it moves.
        if gap <= 0.0:
            high, high_gap, horizon = middle, gap, best
            if kept_low:
                low_gap *= 0.5
            kept_low, kept_high = True, False
        else:
            low, low_gap = middle, gap
            if kept_high:
                high_gap *= 0.5
            kept_low, kept_high = False, True
        # A secant through a distant end hardly moves: then bisect every other time.
        slow = not slow and high - low > 0.5 * width
    return high, horizon


@kernel
def _limits(view: View, loss: float) -> tuple[float, float]:
    """Return the first and last horizon that (1), (2) and the window allow."""
    m = view.entries
    scratch = view.scratch
    first = 0.0
    last = view.window_end - view.now
    for position in range(view.n_active):
        age = scratch[_AGE * m + position]
        lost = scratch[_LOST * m + position]
        if lost > 0.0:
            first = max(first, lost / loss - age if loss > 0.0 else inf)
        if loss < 1.0:
            room = loss * age + scratch[_ALONE * m + position] - lost
            last = min(last, room / (1.0 - loss))
    return first, last


@kernel
def _gap(view: View, loss: float, c: int) -> tuple[float, float]:
    """Return by how much a plan with `c` misses `loss` (s), and its horizon.

    The loss can be kept if the result is <= 0. The horizon is the one within the limits
    (1) to (3) at which the right side of (4) exceeds the left side most.
    """
    m = view.entries
    scratch = view.scratch
    first, last = _limits(view, loss)
    first = max(first, scratch[_ALONE * m + c])
    if first > last:
        return first - last, first
    horizon = min(_least_contended_horizon(view, loss, c, first), last)
    need = scratch[_ALONE * m + c] * scratch[_CAP * m + c]
    for position in range(view.n_active):
        lack = horizon + scratch[_LOST * m + position]
        lack -= loss * (scratch[_AGE * m + position] + horizon)
        if lack > 0.0 and position != c:
            need += scratch[_CAP * m + position] * lack
    # The secant needs a function that is continuous in the loss.
    return max(first - last, need / view.capacity - horizon), horizon


@kernel
def _least_contended_horizon(view: View, loss: float, c: int, first: float) -> float:
    """Return the horizon from `first` on at which (4) has the largest slack.

    The slope of left side - right side is (1 - loss) x (sum of the caps of the
    applications that need bandwidth) - B. It changes at the horizons from which on one
    more application needs bandwidth.
    """
    m = view.entries
    scratch = view.scratch
    slope = -view.capacity
    if loss >= 1.0:
        return inf
    for position in range(view.n_active):
        room = loss * scratch[_AGE * m + position] - scratch[_LOST * m + position]
        turn = room / (1.0 - loss)
        scratch[_TURN * m + position] = turn
        if turn <= first and position != c:
            slope += (1.0 - loss) * scratch[_CAP * m + position]
    horizon = first
    # If the slope is 0 up to rounding, the earlier horizon is better for the others.
    while slope < -_SLACK * view.capacity:
        following = inf
        for position in range(view.n_active):
            turn = scratch[_TURN * m + position]
            if horizon < turn < following and position != c:
                following = turn
        if following == inf:
            return inf
        horizon = following
        for position in range(view.n_active):
            if scratch[_TURN * m + position] == horizon and position != c:
                slope += (1.0 - loss) * scratch[_CAP * m + position]
    return horizon


@kernel
def _fill(view: View, c: int, horizon: float, guess: float) -> float:
    """Set the amounts transferred by `horizon` if `c` completes; return the loss.

    The others get the lexicographic max-min of the yields: there is one water level x,
    and i receives b_i (h + L_i - x (A_i + h)), cut to [0, min(b_i h, V_i)].
    """
    available = view.capacity * horizon
    if c != _NO_CANDIDATE:
        m = view.entries
        available -= view.scratch[_ALONE * m + c] * view.scratch[_CAP * m + c]
    total, slope = _set_amounts(view, c, horizon, 0.0)
    if total > available:
        low, high, level = 0.0, 1.0, guess
        for _ in range(_STEPS):
            if not low < level < high:
                level = 0.5 * (low + high)
            total, slope = _set_amounts(view, c, horizon, level)
            if total > available:
                low = level
            else:
                high = level
            if total == available or high - low <= _PRECISION * high:
                break
            level = level + (total - available) / slope if slope > 0.0 else low
        _trim(view, c, available, total)
    return _largest_loss(view, horizon)


@kernel
def _set_amounts(
    view: View, c: int, horizon: float, level: float
) -> tuple[float, float]:
    """Set the amounts for the loss `level`; return their sum, and minus its slope.

    Candidate `c` completes; it is not in the sum.
    """
    m = view.entries
    scratch = view.scratch
    total = 0.0
    slope = 0.0
    for position in range(view.n_active):
        cap = scratch[_CAP * m + position]
        alone = scratch[_ALONE * m + position]
        if position == c:
            scratch[_AMOUNT * m + position] = cap * alone
            continue
        most = min(horizon, alone)
        grown = scratch[_AGE * m + position] + horizon
        lack = horizon + scratch[_LOST * m + position] - level * grown
        if 0.0 < lack <= most:
            slope += cap * grown
        amount = cap * min(max(lack, 0.0), most)
        scratch[_AMOUNT * m + position] = amount
        total += amount
    return total, slope


@kernel
def _trim(view: View, c: int, available: float, total: float) -> None:
    """Scale the amounts down to `available`, in case rounding exceeded it."""
    if total > max(available, 0.0):
        m = view.entries
        for position in range(view.n_active):
            if position != c:
                view.scratch[_AMOUNT * m + position] *= max(available, 0.0) / total


@kernel
def _largest_loss(view: View, horizon: float) -> float:
    """Return the largest loss at the horizon, given the amounts."""
    m = view.entries
    scratch = view.scratch
    largest = 0.0
    for position in range(view.n_active):
        served = scratch[_AMOUNT * m + position] / scratch[_CAP * m + position]
        lost = scratch[_LOST * m + position] + horizon - served
        largest = max(largest, lost / (scratch[_AGE * m + position] + horizon))
    return largest


@kernel
def _serve_soonest(view: View, soonest: int, rates: Floats) -> float:
    """Serve the application that completes soonest at its cap, the others by yield."""
    first = view.active[soonest]
    rates[first] = min(view.cap[first], view.capacity)
    _serve_left_over(view, view.capacity - rates[first], rates)
    return inf


@kernel
def _serve_left_over(view: View, left: float, rates: Floats) -> None:
    """Raise rates to the caps in the order of greedy-yield, until nothing is left."""
    if left <= _PRECISION * view.capacity:
        return
    key = view.key
    for position in range(view.n_active):
        i = view.active[position]
        key[i] = -loss_ratio(view, i)
    sort_lowest_first(view, key, view.order)
    for position in range(view.n_active):
        i = view.order[position]
        more = min(view.cap[i] - rates[i], max(left, 0.0))
        rates[i] += more
        left -= more
