# SPDX-License-Identifier: MIT
"""Divide the storage targets while there are enough; stage beyond.

Rule
    First come, first served: as many of those in their I/O phase as can have
    ``least`` targets each write to parts of their own, in proportion to their data
    or processes. The others stage. When one of the first is done, the next flushes
    to the targets that this sets free, and goes on writing through.

Parameters
    least
        Targets that an application must have to write through. Default 1.
    by
        What the parts are proportional to: ``data`` (default) or ``processes``.
    flush
        Who drains, if several want to: ``all`` (default), ``token``, ``window`` or
        ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    Serves any number of applications on any number of targets. O(K N) per decision
    for N targets.

Source
    papers/4 section V-C, the scenario of App A, App B and App C, with strategy 2a
    for those beyond.
"""

from __future__ import annotations

from typing import Final

from penstock.registry import Parameter
from penstock.staging.flushing import FLUSH_PARAMETERS, turns
from penstock.staging.partition import BY_PARAMETER, parts, proportional, weights
from penstock.staging.precedence import wants_to_drain
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]

PARAMETERS: Final = (
    Parameter("least", "targets needed to write through", 1, low=1),
    BY_PARAMETER,
    *FLUSH_PARAMETERS,
)


def coordinate(
    situation: Situation, least: float, by: str, flush: str, window: float
) -> StagingPlan:
    """Give parts to the first to arrive; let the others stage."""
    arrivals = situation.arrivals()
    room = max(situation.targets // int(least), 1)
    writing, staging = arrivals[:room], arrivals[room:]
    counts = (
        proportional(weights(situation, writing, by), situation.targets)
        if writing
        else []
    )
    part_of = dict(zip(writing, parts(counts), strict=True))
    wanting = wants_to_drain(situation, writing, blocks=True)
    draining, wake = turns(situation, wanting, flush, window)
    orders = [
        StagingOrder(
            part_of.get(i, situation.all_targets),
            stage=i in staging,
            drain=i in draining,
        )
        for i in range(len(situation.applications))
    ]
    return StagingPlan(orders, wake)
