# SPDX-License-Identifier: MIT
"""Applications that burst in turn, and the plans of strategies in readable form.

A begins its I/O phase first (48 bytes), then B and C (16 bytes each); IDLE is in no
phase. There are 8 storage targets, as in section III-B of burst-buffer coordination.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from penstock.staging import ApplicationStatus, Situation, StagingPlan, get_strategy

__all__ = [
    "IDLE",
    "A",
    "B",
    "C",
    "decide",
    "draining",
    "ended",
    "staging",
    "widths",
    "with_data",
]

A = ApplicationStatus("A", phase_began_s=0.0, phase_bytes=48.0, processes=4)
B = ApplicationStatus("B", phase_began_s=5.0, phase_bytes=16.0, processes=4)
C = ApplicationStatus("C", phase_began_s=9.0, phase_bytes=16.0, processes=4)
IDLE = ApplicationStatus("idle", phase_bytes=16.0, processes=4)


def decide(
    name: str, *applications: ApplicationStatus, now: float = 10.0, targets: int = 8
) -> StagingPlan:
    """Return the plan of the strategy `name` for the applications."""
    return get_strategy(name).decide(Situation(now, targets, applications))


def staging(plan: StagingPlan) -> list[bool]:
    """Return for every application whether it stages."""
    return [order.stage for order in plan.orders]


def draining(plan: StagingPlan) -> list[bool]:
    """Return for every application whether it may drain."""
    return [order.drain for order in plan.orders]


def widths(plan: StagingPlan) -> list[int]:
    """Return the number of targets of every application."""
    return [len(order.targets) for order in plan.orders]


def with_data(
    application: ApplicationStatus, *, blocked: bool = False
) -> ApplicationStatus:
    """Return the application with 10 bytes in its buffer."""
    return replace(application, staged_bytes=10.0, is_blocked=blocked)


def ended(application: ApplicationStatus) -> ApplicationStatus:
    """Return the application after its I/O phase."""
    return replace(application, phase_began_s=inf)
