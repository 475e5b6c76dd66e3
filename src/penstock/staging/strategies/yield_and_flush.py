# SPDX-License-Identifier: MIT
"""Stage when another application arrives; flush when blocked.

Rule
    As 1a: an application stages while an application that arrived after it is in its
    I/O phase. But it flushes as soon as it is blocked.

Constraints
    1. An application is blocked if its buffer is full, or in fsync or close.
    2. A flush that has begun goes on until the buffer is empty, even while the last
       to arrive writes.
    3. Equal arrival times: the application with the higher index counts as later.

Parameters
    flush
        Which applications drain if several want to: ``all`` (default), ``token``,
        ``window`` or ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    Some interference is accepted, so that no application is blocked for long.
    O(K log K) per decision for K applications.

Source
    Burst-buffer coordination, section III-A, strategy 1b. The paper has two
    applications; here any number.
"""

from __future__ import annotations

from penstock.staging.flushing import FLUSH_PARAMETERS as PARAMETERS
from penstock.staging.precedence import stage_behind
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]


def coordinate(situation: Situation, flush: str, window: float) -> StagingPlan:
    """Return a plan in which the last to arrive writes; others flush if blocked."""
    return stage_behind(
        situation, situation.arrivals()[::-1], blocks=False, flush=flush, window=window
    )
