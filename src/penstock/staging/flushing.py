# SPDX-License-Identifier: MIT
"""Which applications drain first if several want to.

all
    All at once; the bandwidth-sharing policy shares the bandwidth among them.
token
    The application that has the token drains until its buffer is empty, and then
    passes the token on.
window
    As token, but the token is passed on after a time window at the latest, so that no
    application starves.
priority
    The application with the highest priority, set by the operator, at any moment
    (ties: the lowest index).

The token goes to the application that has been without it for the longest time: a round
robin whose only memory are the turns in `ApplicationStatus`.

Source: burst-buffer coordination, section V-C.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from penstock.registry import Parameter
from penstock.staging.situation import ApplicationStatus, Situation

__all__ = ["FLUSH_PARAMETERS", "turns"]

_ORDERS: Final = ("all", "token", "window", "priority")

#: Parameters of every strategy that decides which applications drain.
FLUSH_PARAMETERS: Final = (
    Parameter(
        "flush", "which applications drain, if several want to", "all", choices=_ORDERS
    ),
    Parameter("window", "longest turn with flush=window", 1.0, unit="s", low=1e-6),
)


def turns(
    situation: Situation, wanting: Sequence[int], flush: str, window: float
) -> tuple[list[int], float]:
    """Return which of the applications `wanting` to drain may do so.

    Also return when to ask again (s).
    """
    if flush == "all" or not wanting:
        return list(wanting), inf
    if flush == "priority":
        applications = situation.applications
        return [min(wanting, key=lambda i: (-applications[i].priority, i))], inf
    return _token(situation, wanting, window if flush == "window" else inf)


def _token(
    situation: Situation, wanting: Sequence[int], window: float
) -> tuple[list[int], float]:
    """Return the application with the token, and when it must pass it on (s)."""
    applications = situation.applications

    def waits_longest(i: int) -> tuple[float, int]:
        return applications[i].turn_ended_s, i

    holders = [i for i in wanting if applications[i].turn_began_s < inf]
    others = [i for i in wanting if i not in holders[:1]]
    if holders and not (
        others and _over(applications[holders[0]], window, situation.now_s)
    ):
        end = applications[holders[0]].turn_began_s + window
        return holders[:1], end if others and end > situation.now_s else inf
    return [min(others, key=waits_longest)], situation.now_s + window


def _over(holder: ApplicationStatus, window: float, now: float) -> bool:
    """Return True if the turn of the holder is over."""
    return now >= holder.turn_began_s + window
