# SPDX-License-Identifier: MIT
"""Stage behind whoever is there; drain into what it leaves of the bandwidth.

Rule
    An application stages behind others as in strategy 2a, but its drains never wait
    for permission: they are flows like any other, and a bandwidth-sharing policy of
    papers/1 decides how much each gets and when, of all the bandwidth or of what the
    writers leave.

Parameters
    stage
        Who stages: ``behind`` (default): all but the first to arrive;
        ``contended``: everybody while somebody else is in its I/O phase;
        ``always``: everybody.
    drains
        ``background`` (default): drains share what writers leave; ``equal``: drains
        and writers are shared out together.

Properties
    In the background, the pauses of the one that writes are used, and it is not
    slowed down. O(K log K) per decision, plus the policy.

Source
    Beyond papers/4, which lets one application drain at a time, or all.
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
    Parameter("stage", "who stages", "behind", choices=_STAGING),
    Parameter(
        "drains",
        "what drains share: what writers leave, or all",
        "background",
        choices=("background", "equal"),
    ),
)


def coordinate(situation: Situation, stage: str, drains: str) -> StagingPlan:
    """Let everybody drain at any time; the policy decides how fast."""
    everybody = range(len(situation.applications))
    staging = _staging(situation, stage)
    orders = orders_for(situation, staging, everybody)
    return StagingPlan(orders, background=drains == "background")


def _staging(situation: Situation, who: str) -> Sequence[int]:
    """Return who stages."""
    arrivals = situation.arrivals()
    if who == "behind":
        return arrivals[1:]
    return arrivals if who == "always" or len(arrivals) > 1 else ()
