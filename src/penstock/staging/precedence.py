# SPDX-License-Identifier: MIT
"""The rule that strategies 1a, 1b, 2a and 2b share: one writes, the others stage.

The applications in their I/O phase have an order of precedence. The first writes
through. An application behind it stages, and writes through when no application with
precedence is in its phase any more. Burst-buffer coordination states its strategies for
two applications; this is the same rule for any number.
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
    """Return a plan in which the first in `precedence` writes and the others stage.

    Parameters
    ----------
    precedence
        The applications in their I/O phase, the first to write at the front.
    blocks
        True: an application drains only when no other is ahead of it. False: it also
        drains when it is blocked.
    flush, window
        See `penstock.staging.flushing`; `window` in seconds.
    """
    wanting = wants_to_drain(situation, precedence[:1], blocks=blocks)
    draining, wake = turns(situation, wanting, flush, window)
    return StagingPlan(orders_for(situation, precedence[1:], draining), wake)


def wants_to_drain(
    situation: Situation, ahead: Collection[int], *, blocks: bool
) -> list[int]:
    """Return the applications with staged data that are to be drained now.

    1. An application that is `ahead` drains.
    2. An application behind drains, unless the strategy `blocks`, from the moment it is
       blocked until its buffer is empty.
    3. Data left over from a phase that has ended wait until no application is ahead.
    """
    wanting = []
    for i, a in enumerate(situation.applications):
        waits = a.in_phase and (a.is_blocked or a.turn_began_s < inf)
        left_behind = not (a.in_phase or ahead)
        if a.staged_bytes > 0 and (i in ahead or left_behind or (waits and not blocks)):
            wanting.append(i)
    return wanting


def orders_for(
    situation: Situation, staging: Collection[int], draining: Collection[int]
) -> list[StagingOrder]:
    """Return an order for every application; all may use all targets."""
    return [
        StagingOrder(situation.all_targets, stage=i in staging, drain=i in draining)
        for i in range(len(situation.applications))
    ]
