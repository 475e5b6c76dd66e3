# SPDX-License-Identifier: MIT
"""Divide the storage targets while there are enough; stage beyond.

Rule
    The first applications to arrive have parts of the targets and write through; the
    others stage.

Constraints
    1. Of N targets, the first N / ``least`` arrivals have parts, rounded down; at least
       one application has a part.
    2. The parts are proportional to data or processes, at least one target each.
    3. When an application with a part ends its I/O phase, the next arrival gets a part:
       it flushes its buffer there, and then writes through.

Parameters
    least
        Targets that an application needs to write through. Default 1.
    by
        What the parts are proportional to: ``data`` (default) or ``processes``.
    flush
        Which applications drain if several want to: ``all`` (default), ``token``,
        ``window`` or ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    Serves any number of applications on any number of targets. O(K N) per decision
    for K applications and N targets.

Source
    Burst-buffer coordination, section V-C, the scenario of App A, App B and App C;
    strategy 2a is used for the applications that stage.
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
    """Return a plan with parts for the first to arrive; the others stage."""
    arrivals = situation.arrivals()
    room = max(situation.target_count // int(least), 1)
    writing, staging = arrivals[:room], arrivals[room:]
    counts = (
        proportional(weights(situation, writing, by), situation.target_count)
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
