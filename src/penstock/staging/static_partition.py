# SPDX-License-Identifier: MIT
"""Give every application storage targets of its own for the whole run.

Rule
    The targets are divided among all known applications, in proportion to their data
    or to their processes. No application stages.

Constraints
    1. Every application has at least one target; more applications than targets are
       refused.
    2. The parts do not depend on which applications write now.

Parameters
    by
        What the parts are proportional to: ``data`` (default) or ``processes``.

Properties
    No interference, but fewer targets for each application, even while it is alone.
    O(K N) per decision for K applications and N targets.

Source
    Burst-buffer coordination, section III-B, strategy 3a. The paper has an example
    that needs no rounding (6 and 2 of 8); `penstock.staging.partition` rounds.
"""

from __future__ import annotations

from typing import Final

from penstock.staging.partition import BY_PARAMETER, parts, proportional, weights
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]

PARAMETERS: Final = (BY_PARAMETER,)


def coordinate(situation: Situation, by: str) -> StagingPlan:
    """Return a plan with the same part for an application at any time."""
    applications = range(len(situation.applications))
    counts = proportional(weights(situation, applications, by), situation.target_count)
    return StagingPlan([StagingOrder(part, drain=True) for part in parts(counts)])
