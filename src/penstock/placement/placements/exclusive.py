# SPDX-License-Identifier: MIT
"""Give every application its own targets; the slowest share one if necessary.

Rule
    Sort the applications by decreasing n_j, then by decreasing b_j(1), then by
    index. Each takes the next n_j free targets. With more applications than targets
    (K > N) the last target is common: the applications with n_j = 1 for which no free
    target is left share it.

Inputs
    b_j.

Parameters
    None.

Properties
    Only the applications on the common target wait for each other. An allocation that
    needs more targets than exist is an error. O(K log K).

Source
    The second half of MCKP (target allocation, section 5.2; Bez et al. 2021). In an
    optimum of `mckp`, an application with one target of its own is never slower on it
    than an application without one would be; otherwise exchange them. So the order of
    b_j(1) determines which applications get a target of their own.
"""

from __future__ import annotations

from typing import Final

from penstock.errors import InputError
from penstock.model.problem import Problem
from penstock.placement.algorithm import Allocation, Placement
from penstock.placement.inputs import Input

__all__ = ["NEEDS", "place"]

NEEDS: Final = frozenset({Input.BANDWIDTH})


def place(problem: Problem, allocation: Allocation) -> Placement:
    """Give out free targets; the last one is common if there are too few."""
    applications = range(len(allocation))
    common = len(allocation) > problem.resources
    exclusive, taken = problem.resources - common, 0
    placement: list[tuple[int, ...]] = [()] * len(allocation)
    for j in sorted(
        applications, key=lambda j: (-allocation[j], -problem.bandwidth(j, 1))
    ):
        n = allocation[j]
        if taken + n <= exclusive:
            placement[j] = tuple(range(taken, taken + n))
            taken += n
        elif common and n == 1:
            placement[j] = (problem.resources - 1,)
        else:
            raise _too_many(problem, allocation)
    return tuple(placement)


def _too_many(problem: Problem, allocation: Allocation) -> InputError:
    if len(allocation) <= problem.resources:
        what = f"{sum(allocation)} targets of their own"
    else:
        wide = sum(n for n in allocation if n > 1)
        what = f"{wide} targets of their own and one in common"
    return InputError(
        f"the allocation gives the applications {what}, but there are "
        f"{problem.resources}",
        where="placement exclusive",
        remedy="allocate with mckp, or choose a placement that shares targets",
    )
