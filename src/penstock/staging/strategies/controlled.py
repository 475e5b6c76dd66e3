# SPDX-License-Identifier: MIT
"""Stage behind the first to arrive; drain into the bandwidth that is left.

Rule
    Applications stage as in 2a, but drains need no permission. A drain is a flow like
    any other: a bandwidth-sharing policy decides how much each drain gets.

Parameters
    stage
        Which applications stage: ``behind`` (default): all but the first to arrive;
        ``contended``: all, while two or more are in their I/O phase; ``always``: all.
    drains
        ``background`` (default): drains share what writers leave of the bandwidth;
        ``equal``: the policy shares the bandwidth among writers and drains alike.

Properties
    In the background, drains use the pauses of the writer and do not slow it down.
    O(K log K) per decision for K applications, plus the policy.

Source
    Not in the papers. In burst-buffer coordination one application drains at a time,
    or all do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.registry import Parameter
from penstock.staging.precedence import orders_for
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]

_STAGING: Final = ("behind", "contended", "always")
PARAMETERS: Final = (
    Parameter("stage", "which applications stage", "behind", choices=_STAGING),
    Parameter(
        "drains",
        "bandwidth that drains share: what writers leave, or all",
        "background",
        choices=("background", "equal"),
    ),
)


def coordinate(situation: Situation, stage: str, drains: str) -> StagingPlan:
    """Return a plan in which all may drain; the policy decides how fast."""
    applications = range(len(situation.applications))
    staging = _staging(situation, stage)
    orders = orders_for(situation, staging, applications)
    return StagingPlan(orders, drains_in_background=drains == "background")


def _staging(situation: Situation, stage: str) -> Sequence[int]:
    """Return the applications that stage."""
    arrivals = situation.arrivals()
    if stage == "behind":
        return arrivals[1:]
    return arrivals if stage == "always" or len(arrivals) > 1 else ()
