# SPDX-License-Identifier: MIT
"""Share between sets of similar periods, serve in order within a set.

Rule
    Set n = floor(log10(omega_i) + 1/2), where omega_i is the mean length of an
    iteration in dedicated mode; priority 10^-n. The idea: short iterations have small
    operations, which should not wait for large ones. In its first operation an
    application is in one initial set that is served before all others. From its second
    operation on it has a period; while no iteration is complete, this is the length of
    the present one.

Parameters
    initial, initial_weight, update, period: see `penstock.policies.io_sets.sets`.
    ``update=post`` is the rule of the authors' program: the initial set has the weight
    100 (omega = 0.01 s), and the present iteration counts from the second operation on.
    The published means (Efficiency .993 and .976 at W = 0.5 and 0.8) come out with the
    default and with ``update=post`` (.993 and .976, 20 instances), not with
    ``update=strict`` (.990 and .971).

Properties
    Work-conserving. Needs the volume of an operation when it is posted: of the second
    one by default, of all with ``update=post``, of none with ``update=strict``.
    O(k s) per decision for k active applications in s sets, if b_i = B.

Source
    IO-SETS, section 3.1; bandwidth sharing, section 4.2 for unequal caps and for omega
    learnt during the run; section 6.2.1 for the initial set. The smallest set is
    n = -6 (1 microsecond), the largest n = 12 (10^12 s).
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.io_sets.sets import (
    NEEDS,
    PARAMETERS,
    magnitude,
    priority_of_magnitude,
    share_by_sets,
)
from penstock.policies.view import View

__all__ = ["NEEDS", "PARAMETERS", "allocate"]


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Share by magnitude of the period, priority 10^-n."""
    number, priority = view.key, view.scratch
    for position in range(view.n_active):
        i = view.active[position]
        n = magnitude(view, i)
        number[i] = n
        priority[i] = priority_of_magnitude(view, n)
    share_by_sets(view, number, priority, rates)
    return inf
