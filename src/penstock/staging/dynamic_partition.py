# SPDX-License-Identifier: MIT
"""Divide the storage targets among those who write at the same time.

Rule
    Those in their I/O phase have parts of their own; who is alone has all targets.
    What is being written when somebody arrives stays where it is, new requests
    follow the new parts. Who is idle is shown the part that it would have if it
    were the next to begin. Nobody stages.

Parameters
    by
        What the parts are proportional to: ``data`` (default) or ``processes``.
    split
        ``proportional`` (default), or ``halve``: every arrival takes half of the
        targets of the one that arrived before it.

Properties
    No interference but by requests that are under way. For writes only: reads
    must go where the data are. Refuses more writers than targets. O(K N) per
    decision for N targets.

Source
    papers/4 section III-B, strategy 3b; ``halve`` is section V-C, Figure 14.
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
    """Give a part to everybody who is in its I/O phase, and hold one for who comes."""
    sharers = situation.arrivals()
    part_of = dict(zip(sharers, _cut(situation, sharers, by, split), strict=True))
    everybody = range(len(situation.applications))
    return StagingPlan(
        [
            StagingOrder(
                part_of.get(i) or _next_part(situation, i, by, split), drain=True
            )
            for i in everybody
        ]
    )


def _cut(
    situation: Situation, sharers: Sequence[int], by: str, split: str
) -> list[tuple[int, ...]]:
    if not sharers:
        return []
    if split == "halve":
        return parts(halved(len(sharers), situation.targets))
    return parts(proportional(weights(situation, sharers, by), situation.targets))


def _next_part(situation: Situation, i: int, by: str, split: str) -> tuple[int, ...]:
    """Return what `i` has if it is the next to begin; all targets if it would be none.

    Live, its first files are there before anybody can decide.
    """
    try:
        return _cut(situation, [*situation.arrivals(), i], by, split)[-1]
    except InputError:
        return situation.all_targets
