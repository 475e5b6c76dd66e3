# SPDX-License-Identifier: MIT
"""Warn where staging does not help.

The processes of an application that computes between its requests do not all write at
the same time: while some compute, others write. Data that were staged are flushed by
all processes at once, without pauses. The processes then interfere with one another,
which can cost more than staging saves.

Source: burst-buffer coordination, section V-D.
"""

from __future__ import annotations

from typing import Final

from penstock.staging.situation import ApplicationStatus, Situation, StagingPlan

__all__ = ["interferes_with_itself", "pause_fraction", "self_interference"]

#: Pauses that take less than this fraction of the time are ignored.
_LEAST_FRACTION: Final = 0.1


def pause_fraction(application: ApplicationStatus) -> float:
    """Return d / (d + S / b): the fraction of the time for which a process pauses.

    d is the pause after a request (s), S / b the time in which all processes together
    write one request each (s). Return 0 if that is not known.
    """
    if (
        application.processes < 2
        or application.mean_request_bytes <= 0
        or application.mean_pause_s <= 0
    ):
        return 0.0
    return application.mean_pause_s / (
        application.mean_pause_s
        + application.mean_request_bytes / application.dedicated_bytes_per_s
    )


def interferes_with_itself(application: ApplicationStatus) -> bool:
    """Return True if staging may cost an application more than it saves."""
    return pause_fraction(application) > _LEAST_FRACTION


def self_interference(situation: Situation, plan: StagingPlan) -> list[str]:
    """Return a warning for every application that stages although it pauses."""
    return [
        f"{a.name}: {a.processes} processes will flush at once what they would write "
        f"with pauses of {a.mean_pause_s:.2g} s ({pause_fraction(a):.0%} of the time): "
        "they will interfere with one another, and writing through may be faster "
        "(burst-buffer coordination, section V-D)"
        for a, order in zip(situation.applications, plan.orders, strict=True)
        if order.stage and a.in_phase and interferes_with_itself(a)
    ]
