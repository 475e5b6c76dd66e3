# SPDX-License-Identifier: MIT
"""Give every application storage targets of its own, from begin to end.

Rule
    The targets are cut into parts, in proportion to the data or to the processes of
    the applications that are known; at least one each. Nobody stages.

Parameters
    by
        What the parts are proportional to: ``data`` (default) or ``processes``.

Properties
    No interference, at the price of fewer targets each, also for who is alone.
    Refuses more applications than targets. O(K N) per decision for N targets.

Source
    papers/4 section III-B, strategy 3a. The paper rounds nothing (6 and 2 of 8).
"""

from __future__ import annotations

from typing import Final

from penstock.staging.partition import BY_PARAMETER, parts, proportional, weights
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]

PARAMETERS: Final = (BY_PARAMETER,)


def coordinate(situation: Situation, by: str) -> StagingPlan:
    """Give everybody the same part at any time."""
    everybody = range(len(situation.applications))
    counts = proportional(weights(situation, everybody, by), situation.targets)
    return StagingPlan([StagingOrder(part, drain=True) for part in parts(counts)])
