# SPDX-License-Identifier: MIT
"""Who drains first, where several want to: papers/4 section V-C.

all
    Everybody at once; the bandwidth-sharing policy orders them.
token
    Whoever has the token drains until its buffer is empty, then passes it on.
window
    As token, but the token is passed on after a time window at the latest, so that
    nobody starves.
priority
    The highest priority set by the operator (ties: lowest index), at any moment.

The token goes to whoever has been without it for the longest time: a round robin that
needs no memory but the turns (`ApplicationStatus`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from penstock.registry import Parameter
from penstock.staging.situation import ApplicationStatus, Situation

__all__ = ["FLUSH_PARAMETERS", "turns"]

_ORDERS: Final = ("all", "token", "window", "priority")

#: For every strategy that lets somebody drain.
FLUSH_PARAMETERS: Final = (
    Parameter("flush", "who drains, if several want to", "all", choices=_ORDERS),
    Parameter("window", "longest turn with flush=window", 1.0, unit="s", low=1e-6),
)


def turns(
    situation: Situation, wanting: Sequence[int], flush: str, window: float
) -> tuple[list[int], float]:
    """Return who of those `wanting` to drain may, and when to ask again (s)."""
    if flush == "all" or not wanting:
        return list(wanting), inf
    if flush == "priority":
        standings = situation.applications
        return [min(wanting, key=lambda i: (-standings[i].priority, i))], inf
    return _token(situation, wanting, window if flush == "window" else inf)


def _token(
    situation: Situation, wanting: Sequence[int], window: float
) -> tuple[list[int], float]:
    """Return the holder of the token, and when it must be passed on (s)."""
    standings = situation.applications

    def waits_longest(i: int) -> tuple[float, int]:
        return standings[i].turn_ended, i

    holders = [i for i in wanting if standings[i].turn_began < inf]
    others = [i for i in wanting if i not in holders[:1]]
    if holders and not (others and _over(standings[holders[0]], window, situation.now)):
        end = standings[holders[0]].turn_began + window
        return holders[:1], end if others and end > situation.now else inf
    return [min(others, key=waits_longest)], situation.now + window


def _over(holder: ApplicationStatus, window: float, now: float) -> bool:
    """Tell whether the turn of the holder is over."""
    return now >= holder.turn_began + window
