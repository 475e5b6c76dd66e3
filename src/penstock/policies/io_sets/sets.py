# SPDX-License-Identifier: MIT
"""IO-SETS: share between sets by priority, serve in order within a set.

A policy of this family answers two questions (IO-SETS, section 3): which set is an
application in, and which priority q_s has set s? `share_by_sets` does the rest. It
includes the extension to applications that cannot use the whole bandwidth (bandwidth
sharing, section 4.2):

1. alpha_s = q_s / sum of q over the sets with active applications;
2. a set whose active applications cannot use alpha_s of the remaining bandwidth gets
   the sum of their b_i; repeat with the remaining sets and bandwidth;
3. the other sets get alpha_s of the remaining bandwidth; inside a set, first come,
   first served.

A set of infinite priority is served before all others.

The sets of set-10 and of its relatives are orders of magnitude of the period
omega_i: set n = floor(log10(omega_i) + 1/2). Periods below set -6 belong to set -6,
those above set 12 to set 12. omega_i is the mean of w(k) + v(k) / b_i over the
iterations k = 1, 2, ...: iteration k ends with operation number k, counted from 0.
So the mean starts with the second operation. What precedes the first one, an offset or
the rest of a phase that began before the start, is not an iteration.

The parameter ``update`` says which iterations count:

``completion`` (default)
    The completed ones; in the second operation, when none is complete, the one that
    this operation ends. So an application is classified after its first operation
    (bandwidth sharing, section 6.2.1), and its period changes when an operation has
    completed (section 4.2).
``post``
    The completed ones and the present one. This is the rule of the authors' program,
    together with the weight 100 of the initial set, which stands for omega = 0.01 s in
    the first operation.
``strict``
    The completed ones only: an application stays in the initial set until its second
    operation has completed.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.kernels import Floats, inlined, kernel
from penstock.policies.policy import Knowledge, Parameter
from penstock.policies.rounding import GRAIN
from penstock.policies.serving import sort_lowest_first
from penstock.policies.view import View

__all__ = [
    "NEEDS",
    "PARAMETERS",
    "UNCLASSIFIED",
    "initial_priority",
    "magnitude",
    "priority_of_magnitude",
    "share_by_sets",
]

#: How a policy learns the period of an application, and what it does until then.
PARAMETERS: Final = (
    Parameter(
        "initial",
        "place of applications whose period is not known: before all sets, or one "
        "more set of priority initial_weight; auto: weight with update=post, else "
        "precedence",
        "auto",
        choices=("auto", "precedence", "weight"),
    ),
    Parameter(
        "initial_weight", "priority of the initial set", 100.0, low=1e-300, high=1e100
    ),
    Parameter(
        "update",
        "when an iteration counts; completion: when complete, but the first one when "
        "its operation is posted; post: when posted; strict: when complete",
        "completion",
        choices=("completion", "post", "strict"),
    ),
    Parameter(
        "period",
        "learn the period from the iterations, or take the given one",
        "learnt",
        choices=("learnt", "given"),
    ),
)
#: With ``period=given`` a policy needs the periods.
NEEDS: Final = {Knowledge.PERIOD: ("period", "given")}

_INITIAL: Final = 0
_INITIAL_WEIGHT: Final = 1
_UPDATE: Final = 2
_PERIOD: Final = 3
# Values of the parameters, as positions among their choices.
_AUTO: Final = 0.0
_WEIGHT: Final = 2.0
_COMPLETION: Final = 0.0
_POST: Final = 1.0
_GIVEN: Final = 1.0

# Sets run from periods of a microsecond to periods of 10^12 s; the edge below set
# n is 10^(n - 1/2). Tables, as a power rounds differently compiled and interpreted.
_SMALLEST: Final = -6
_LARGEST: Final = 12
_EDGES: Final = tuple(10.0 ** (n - 0.5) for n in range(_SMALLEST, _LARGEST + 1))
_PRIORITIES: Final = tuple(10.0**-n for n in range(_SMALLEST, _LARGEST + 1))

#: Set of the applications whose period is not known yet.
UNCLASSIFIED: Final = 1_000_000

# Columns of `view.scratch`. One entry per application: column 0, which is the
# caller's, and _MEMBER; one entry per set: the others.
_MEMBER: Final = 1
_NUMBER: Final = 2
_PRIORITY: Final = 3
_DEMAND: Final = 4
_SHARE: Final = 5
_FIRST: Final = 6


@inlined
def magnitude(view: View, i: int) -> int:
    """Return the set of active application `i`, or `UNCLASSIFIED`."""
    total = view.iteration_time[i]
    count = view.iterations[i]
    if view.parameters[_PERIOD] == _GIVEN and view.period[i] > 0.0:
        total = view.period[i]
        count = 1
    elif view.operations[i] > 0 and _counts_present(view, count):
        total += view.work_before[i] + view.volume[i] / view.cap[i]
        count += 1
    if count == 0 or total <= 0.0:
        return UNCLASSIFIED
    # n such that 10^(n - 1/2) <= omega < 10^(n + 1/2): a few comparisons, where a
    # logarithm would take longer than the rest of the decision.
    n = 2
    while n < _LARGEST and total >= count * _EDGES[n + 1 - _SMALLEST]:
        n += 1
    while n > _SMALLEST and total < count * _EDGES[n - _SMALLEST]:
        n -= 1
    return n


@inlined
def _counts_present(view: View, count: int) -> bool:
    """Return True if the present iteration counts, beside `count` completed ones."""
    update = view.parameters[_UPDATE]
    return update == _POST or (update == _COMPLETION and count == 0)


@inlined
def priority_of_magnitude(view: View, number: int) -> float:
    """Return the priority of a set: q_n = 10^-n (IO-SETS, equation 5), or `initial`."""
    if number == UNCLASSIFIED:
        return initial_priority(view)
    return _PRIORITIES[number - _SMALLEST]


@inlined
def initial_priority(view: View) -> float:
    """Return the priority of the applications whose period is not known yet."""
    initial = view.parameters[_INITIAL]
    is_post = view.parameters[_UPDATE] == _POST
    if initial == _WEIGHT or (initial == _AUTO and is_post):
        return view.parameters[_INITIAL_WEIGHT]
    return inf


@kernel
def share_by_sets(view: View, number: Floats, priority: Floats, rates: Floats) -> None:
    """Grant bandwidth, given set `number[i]` and `priority[i]` of every active i.

    Applications with the same number have the same priority; at most one set has
    an infinite one. O(k s) for k active applications in s sets if the first of
    every set can use the share of the set, as when b_i = B; else O(k (s + k)).
    """
    m = view.entries
    scratch = view.scratch
    sets = _collect(view, number, priority)
    _divide(view, sets, _precede(view, sets))
    enough = True
    for slot in range(sets):
        first = int(scratch[_FIRST * m + slot])
        alone = view.cap[first] == scratch[_DEMAND * m + slot]
        enough = enough and (alone or view.cap[first] >= scratch[_SHARE * m + slot])
        _serve(view, first, slot, rates)
    if not enough:
        _serve_rest(view, rates)


@kernel
def _collect(view: View, number: Floats, priority: Floats) -> int:
    """Fill the columns of the sets that have active members; return their number."""
    m = view.entries
    scratch = view.scratch
    sets = 0
    for position in range(view.n_active):
        i = view.active[position]
        slot = 0
        while slot < sets and scratch[_NUMBER * m + slot] != number[i]:
            slot += 1
        if slot == sets:
            sets += 1
            scratch[_NUMBER * m + slot] = number[i]
            scratch[_PRIORITY * m + slot] = priority[i]
            scratch[_DEMAND * m + slot] = 0.0
            scratch[_SHARE * m + slot] = -1.0
            scratch[_FIRST * m + slot] = i
        elif view.posted[i] < view.posted[int(scratch[_FIRST * m + slot])]:
            scratch[_FIRST * m + slot] = i
        scratch[_MEMBER * m + i] = slot
        scratch[_DEMAND * m + slot] += view.cap[i]
    return sets


@inlined
def _precede(view: View, sets: int) -> float:
    """Give the set of infinite priority all it can use; return the rest."""
    m = view.entries
    scratch = view.scratch
    left = view.capacity
    for slot in range(sets):
        if scratch[_PRIORITY * m + slot] == inf:
            demand = scratch[_DEMAND * m + slot]
            scratch[_SHARE * m + slot] = inf if demand <= left else left
            left = max(left - demand, 0.0)
    return left


@kernel
def _serve_rest(view: View, rates: Floats) -> None:
    """In every set, serve the members after the first in the order of posting."""
    m = view.entries
    sort_lowest_first(view, view.posted, view.order)
    for position in range(view.n_active):
        i = view.order[position]
        slot = int(view.scratch[_MEMBER * m + i])
        if i != int(view.scratch[_FIRST * m + slot]):
            _serve(view, i, slot, rates)


@inlined
def _serve(view: View, i: int, slot: int, rates: Floats) -> None:
    """Grant `i` what it can use of the share of its set; keep the rest."""
    share = view.scratch[_SHARE * view.entries + slot]
    rates[i] = min(view.cap[i], share)
    rest = share - rates[i]
    # A rest that is only a rounding error is nothing. (A share may be infinite.)
    view.scratch[_SHARE * view.entries + slot] = 0.0 if rest < share * GRAIN else rest


@kernel
def _divide(view: View, sets: int, left: float) -> None:
    """Divide `left` between the sets that have no share yet: steps 1 to 3."""
    m = view.entries
    scratch = view.scratch
    saturated = True
    while saturated:
        saturated = False
        total = 0.0
        for slot in range(sets):
            if scratch[_SHARE * m + slot] < 0.0:
                total += scratch[_PRIORITY * m + slot]
        available = left
        for slot in range(sets):
            if scratch[_SHARE * m + slot] < 0.0:
                demand = scratch[_DEMAND * m + slot]
                if demand <= available * scratch[_PRIORITY * m + slot] / total:
                    # No limit but the caps: a sum of caps would lose the last bit.
                    scratch[_SHARE * m + slot] = inf
                    left -= demand
                    saturated = True
    for slot in range(sets):
        if scratch[_SHARE * m + slot] < 0.0:
            fraction = scratch[_PRIORITY * m + slot] / total
            scratch[_SHARE * m + slot] = max(left, 0.0) * fraction
