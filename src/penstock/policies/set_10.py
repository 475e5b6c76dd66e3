# SPDX-License-Identifier: MIT
"""Share between sets of similar periods, serve in order within a set.

Rule
    Set n = floor(log10(omega_i) + 1/2), where omega_i is the mean length of an
    iteration in dedicated mode; priority 10^-n. The idea: short iterations have small
    operations, which should not wait for large ones.

Parameters
    initial, initial_weight, update, period: see `penstock.policies.io_sets`.
    The authors' program has an initial weight of 100 and updates at the post, but their
    published means agree with our defaults, not with ``update=post``.

Properties
    Work-conserving. Needs the volume of an operation only with ``update=post``.
    O(k s) per decision for k active applications in s sets, if b_i = B.

Source
    IO-SETS, section 3.1; bandwidth sharing, section 4.2 for unequal caps and for omega
    learnt during the run. Before its first completed iteration an application
    is in one initial set with absolute precedence (bandwidth sharing, section 6.2.1).
    The smallest set is n = -6 (1 microsecond), the largest n = 12 (10^12 s).
"""

from __future__ import annotations

from math import inf

from penstock.kernels import Floats, kernel
from penstock.policies.io_sets import (
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
