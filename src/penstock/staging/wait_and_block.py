# SPDX-License-Identifier: MIT
"""Stage behind whoever is there already; flush when that one is done.

Rule
    An application stages while anybody who arrived before it is in its I/O phase. It
    flushes, and then goes on writing through, when nobody is: first come, first
    served.

Parameters
    flush
        Who drains, if several want to: ``all`` (default), ``token``, ``window`` or
        ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    Whoever is there is not slowed down.
    O(K log K) per decision for K applications.

Source
    papers/4 section III-A, strategy 2a.
"""

from __future__ import annotations

from penstock.staging.flushing import FLUSH_PARAMETERS as PARAMETERS
from penstock.staging.precedence import stage_behind
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]


def coordinate(situation: Situation, flush: str, window: float) -> StagingPlan:
    """Let the first to arrive write; the others wait for their turn."""
    return stage_behind(
        situation, situation.arrivals(), blocks=True, flush=flush, window=window
    )
