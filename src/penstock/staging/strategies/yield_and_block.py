# SPDX-License-Identifier: MIT
"""Stage when another application arrives; flush when that one is done.

Rule
    An application stages while an application that arrived after it is in its I/O
    phase. The last to arrive writes through.

Constraints
    1. An application that stages drains nothing.
    2. When no later arrival is in its phase any more, the application flushes its
       buffer, and then writes through.
    3. Equal arrival times: the application with the higher index counts as later.

Parameters
    flush
        Which applications drain if several want to: ``all`` (default), ``token``,
        ``window`` or ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    The last to arrive is slowed down only by requests that are already under way.
    O(K log K) per decision for K applications.

Source
    Burst-buffer coordination, section III-A, strategy 1a. The paper has two
    applications; here any number.
"""

from __future__ import annotations

from penstock.staging.flushing import FLUSH_PARAMETERS as PARAMETERS
from penstock.staging.precedence import stage_behind
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]


def coordinate(situation: Situation, flush: str, window: float) -> StagingPlan:
    """Return a plan in which the last to arrive writes and the others wait."""
    return stage_behind(
        situation, situation.arrivals()[::-1], blocks=True, flush=flush, window=window
    )
