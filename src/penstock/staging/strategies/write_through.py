# SPDX-License-Identifier: MIT
"""Let all applications write through at any time.

Rule
    No application stages. All targets are used by all applications.

Parameters
    None.

Properties
    The case without coordination. Data that an earlier strategy has staged are
    drained. O(K) per decision for K applications.

Source
    Burst-buffer coordination, section V-B.1, the default case with interference.
"""

from __future__ import annotations

from penstock.staging.precedence import orders_for
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["coordinate"]


def coordinate(situation: Situation) -> StagingPlan:
    """Return a plan in which all applications write through and drain."""
    applications = range(len(situation.applications))
    return StagingPlan(orders_for(situation, (), applications))
