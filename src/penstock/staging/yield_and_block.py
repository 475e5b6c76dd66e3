# SPDX-License-Identifier: MIT
"""Stage when somebody else arrives; flush when that one is done.

Rule
    An application stages while anybody who arrived after it is in its I/O phase. It
    flushes, and then goes on writing through, when nobody is. The last to arrive
    has the storage to itself.

Parameters
    flush
        Who drains, if several want to: ``all`` (default), ``token``, ``window`` or
        ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    Whoever arrives is not slowed down, but by a request that is already under way.
    O(K log K) per decision for K applications.

Source
    papers/4 section III-A, strategy 1a.
"""

from __future__ import annotations

from penstock.staging.flushing import FLUSH_PARAMETERS as PARAMETERS
from penstock.staging.precedence import stage_behind
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]


def coordinate(situation: Situation, flush: str, window: float) -> StagingPlan:
    """Let the last to arrive write; the others wait for their turn."""
    return stage_behind(
        situation, situation.arrivals()[::-1], blocks=True, flush=flush, window=window
    )
