# SPDX-License-Identifier: MIT
"""One writes through, all others stage behind it: what strategies 1 and 2 share.

Who writes through is the first in an order of precedence among the applications in
their I/O phase. papers/4 states its strategies for two applications; for any number,
an application stages while anybody with precedence is in its phase, and its turn to
write comes when nobody is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import inf

from penstock.staging.flushing import turns
from penstock.staging.situation import Situation, StagingOrder, StagingPlan

__all__ = ["orders_for", "stage_behind", "wants_to_drain"]


def stage_behind(
    situation: Situation,
    precedence: Sequence[int],
    *,
    blocks: bool,
    flush: str,
    window: float,
) -> StagingPlan:
    """Let the first in `precedence` write through and the others stage.

    Parameters
    ----------
    precedence
        Those in their I/O phase, the one that goes first at the front.
    blocks
        True: those behind drain only when nobody is ahead of them. False: also when
        they can do nothing but wait.
    """
    wanting = wants_to_drain(situation, precedence[:1], blocks=blocks)
    draining, wake = turns(situation, wanting, flush, window)
    return StagingPlan(orders_for(situation, precedence[1:], draining), wake)


def wants_to_drain(
    situation: Situation, ahead: Collection[int], *, blocks: bool
) -> list[int]:
    """Return who has something to drain and reason to do so now.

    Those `ahead` have. Those behind have, unless the strategy blocks, once they are
    blocked and until their buffer is empty. What was left behind by a phase that is
    over waits until nobody is in one.
    """
    wanting = []
    for i, a in enumerate(situation.applications):
        waits = a.in_phase and (a.blocked or a.turn_began < inf)
        left_behind = not (a.in_phase or ahead)
        if a.staged > 0 and (i in ahead or left_behind or (waits and not blocks)):
            wanting.append(i)
    return wanting


def orders_for(
    situation: Situation, staging: Collection[int], draining: Collection[int]
) -> list[StagingOrder]:
    """Return orders in which all targets are everybody's."""
    return [
        StagingOrder(situation.all_targets, stage=i in staging, drain=i in draining)
        for i in range(len(situation.applications))
    ]
