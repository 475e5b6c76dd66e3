# SPDX-License-Identifier: MIT
"""Stage behind earlier arrivals; flush when they are done.

Rule
    An application stages while an application that arrived before it is in its I/O
    phase. The first to arrive writes through: first come, first served.

Constraints
    1. An application that stages drains nothing.
    2. When no earlier arrival is in its phase any more, the application flushes its
       buffer, and then writes through.
    3. Equal arrival times: the application with the lower index counts as earlier.

Parameters
    flush
        Which applications drain if several want to: ``all`` (default), ``token``,
        ``window`` or ``priority``; see `penstock.staging.flushing`.
    window (s)
        Longest turn with ``flush=window``. Default 1.

Properties
    The first to arrive is not slowed down. O(K log K) per decision for K
    applications.

Source
    Burst-buffer coordination, section III-A, strategy 2a. The paper has two
    applications; here any number.
"""

from __future__ import annotations

from penstock.staging.flushing import FLUSH_PARAMETERS as PARAMETERS
from penstock.staging.precedence import stage_behind
from penstock.staging.situation import Situation, StagingPlan

__all__ = ["PARAMETERS", "coordinate"]


def coordinate(situation: Situation, flush: str, window: float) -> StagingPlan:
    """Return a plan in which the first to arrive writes and the others wait."""
    return stage_behind(
        situation, situation.arrivals(), blocks=True, flush=flush, window=window
    )
