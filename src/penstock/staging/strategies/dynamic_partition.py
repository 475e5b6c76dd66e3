# SPDX-License-Identifier: MIT
"""Divide the storage targets among the applications that write now.

Rule
    Every application in its I/O phase has a part of the targets; one that is alone has
    all targets. No application stages.

Constraints
    1. A request keeps the targets that it began on; later requests use the new parts.
    2. An idle application is shown the part that it would have if it began next. Live,
       the first files of a phase exist before any decision.
    3. More writers than targets are refused.
    4. An open file follows its application to other targets only once it has been open
       for some time (`penstock.staging.redirection`).

Parameters
    by
        What the parts are proportional to: ``data`` (default) or ``processes``.
    split
        ``proportional`` (default), or ``halve``: every arrival takes half of the
        targets of the application that arrived before it.

Properties
    No interference except by requests that are under way. For writes only: reads must
    go where the data are. O(K N) per decision for K applications and N targets.

Source
    Burst-buffer coordination, section III-B, strategy 3b; ``halve`` is section V-C,
    Figure 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.errors import InputError
from penstock.registry import Parameter
from penstock.staging.partition import (
    BY_PARAMETER,
    halved,
    parts,
    proportional,
    weights,
)
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]

_SPLITS: Final = ("proportional", "halve")
PARAMETERS: Final = (
    BY_PARAMETER,
    Parameter("split", "how the targets are cut", "proportional", choices=_SPLITS),
)


def coordinate(situation: Situation, by: str, split: str) -> StagingPlan:
    """Return a plan with parts for those in their I/O phase, and for the next one."""
    sharers = situation.arrivals()
    part_of = dict(zip(sharers, _cut(situation, sharers, by, split), strict=True))
    applications = range(len(situation.applications))
    return StagingPlan(
        [
            StagingOrder(
                part_of.get(i) or _next_part(situation, i, by, split), drain=True
            )
            for i in applications
        ]
    )


def _cut(
    situation: Situation, sharers: Sequence[int], by: str, split: str
) -> list[tuple[int, ...]]:
    if not sharers:
        return []
    if split == "halve":
        return parts(halved(len(sharers), situation.target_count))
    return parts(proportional(weights(situation, sharers, by), situation.target_count))


def _next_part(situation: Situation, i: int, by: str, split: str) -> tuple[int, ...]:
    """Return the part of `i` if it is the next to begin.

    Return all targets if there is no part left for it.
    """
    try:
        return _cut(situation, [*situation.arrivals(), i], by, split)[-1]
    except InputError:
        return situation.all_targets
