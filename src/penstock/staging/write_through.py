# SPDX-License-Identifier: MIT
"""Let everybody write through, whoever else does.

Rule
    Nobody stages; all targets are everybody's.

Parameters
    None.

Properties
    What happens without coordination. O(K) per decision for K applications.

Source
    papers/4 section V-B.1, the default case with interference.
"""

from __future__ import annotations

from penstock.staging.precedence import orders_for
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["coordinate"]


def coordinate(situation: Situation) -> StagingPlan:
    """Let all write through, and drain what an earlier strategy has staged."""
    everybody = range(len(situation.applications))
    return StagingPlan(orders_for(situation, (), everybody))
