# SPDX-License-Identifier: MIT
"""Where staging does not help: papers/4 section V-D.

The processes of an application that computes between its requests do not all write at
the same time: while one computes, others write, and the pauses stabilise themselves.
What was staged is flushed by all processes at once, without pauses: they interfere
with one another, and that can cost more than it saves.
"""

from __future__ import annotations

from typing import Final

from penstock.staging.situation import ApplicationStatus, Situation, StagingPlan

__all__ = ["pausing", "self_interference"]

#: An application that pauses for less than this part of the time writes all the time.
_MATTERS: Final = 0.1


def pausing(standing: ApplicationStatus) -> float:
    """Return d / (d + S / b): the part of the time for which one process pauses.

    d is the pause after a request, S / b the time in which all processes together
    write a request each. 0 where that is not known.
    """
    if standing.processes < 2 or standing.request <= 0 or standing.pause <= 0:
        return 0.0
    return standing.pause / (standing.pause + standing.request / standing.bandwidth)


def self_interference(situation: Situation, plan: StagingPlan) -> list[str]:
    """Return a warning for every application that would flush what it would pace."""
    return [
        f"{a.name}: {a.processes} processes will flush at once what they would write "
        f"with pauses of {a.pause:g} s ({pausing(a):.0%} of the time): they will "
        "interfere with one another, and writing through may be faster "
        "(papers/4 section V-D)"
        for a, order in zip(situation.applications, plan.orders, strict=True)
        if order.stage and a.in_phase and pausing(a) > _MATTERS
    ]
