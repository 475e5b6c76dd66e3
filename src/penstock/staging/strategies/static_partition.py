# SPDX-License-Identifier: MIT
"""Give every application storage targets of its own for the whole run.

Rule
    An application gets its part when it is seen for the first time, and keeps it until
    it ends. Those that are seen for the first time divide the targets that are free, in
    proportion to their data, processes or nodes. No application stages.

Constraints
    1. Every application has at least one target; more applications than targets are
       refused.
    2. The parts do not depend on which applications write now. They do not change when
       others come or go, or when more is known of their data.
    3. An application that finds no free target shares the largest part (ties: that of
       the first application).

Parameters
    by
        What the parts are proportional to: ``data`` (default), ``processes`` or
        ``nodes``.
    applications
        Number of applications to leave targets for: while fewer are known, those that
        may come take part in the division, each with the mean weight. Default 2, as in
        the paper.

Properties
    No interference while free targets are left, but fewer targets for each application,
    even while it is alone. O(K N) per decision for K applications and N targets.

Source
    Burst-buffer coordination, section III-B, strategy 3a. The paper knows all
    applications beforehand: then all of them are seen at once and no target is left.
    Its example needs no rounding (6 and 2 of 8); `penstock.staging.partition` rounds.
    Applications that come later, and the third constraint, are not in the paper.
"""

from __future__ import annotations

from statistics import fmean
from typing import Final

from penstock.registry import Parameter
from penstock.staging.partition import (
    BY_PARAMETER,
    check_enough,
    parts,
    proportional,
    weights,
)
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]

PARAMETERS: Final = (
    BY_PARAMETER,
    Parameter("applications", "number of applications to leave targets for", 2, low=1),
)


def coordinate(situation: Situation, by: str, applications: float) -> StagingPlan:
    """Return a plan in which an application keeps the part that it has."""
    known = situation.applications
    check_enough(len(known), situation.target_count)
    held = {target for a in known for target in a.targets}
    free = [target for target in situation.all_targets if target not in held]
    # If there are fewer free targets than newcomers, the last ones get none.
    newcomers = [i for i, a in enumerate(known) if not a.targets][: len(free)]
    to_come = max(min(int(applications) - len(known), len(free) - len(newcomers)), 0)
    shares = weights(situation, range(len(known)), by)
    usual = fmean(shares) if shares else 1.0
    wanted = [*(shares[i] for i in newcomers), *[usual] * to_come]
    new_parts = parts(proportional(wanted, len(free))) if wanted else []
    part_of = {i: a.targets for i, a in enumerate(known)}
    for i, part in zip(newcomers, new_parts, strict=False):
        part_of[i] = tuple(free[place] for place in part)
    largest = max(part_of.values(), key=len, default=())
    return StagingPlan(
        [StagingOrder(part or largest, drain=True) for part in part_of.values()]
    )
