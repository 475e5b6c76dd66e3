# SPDX-License-Identifier: MIT
"""Stage behind whoever is there; flush when there is nothing else to do.

Rule
    As 2a, but an application that is blocked (buffer full, fsync, close) flushes at
    once, until its buffer is empty, even while the first to arrive writes.

Parameters
    flush
        Who drains, if several want to: ``all`` (default), ``token``, ``window`` or
        ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    Tolerates some interference, so that nobody blocks for long.
    O(K log K) per decision for K applications.

Source
    papers/4 section III-A, strategy 2b.
"""

from __future__ import annotations

from penstock.staging.flushing import FLUSH_PARAMETERS as PARAMETERS
from penstock.staging.precedence import stage_behind
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]


def coordinate(situation: Situation, flush: str, window: float) -> StagingPlan:
    """Let the first to arrive write; the others flush when they are blocked."""
    return stage_behind(
        situation, situation.arrivals(), blocks=False, flush=flush, window=window
    )
