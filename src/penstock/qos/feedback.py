# SPDX-License-Identifier: MIT
"""How deep the queue at the storage may be: feedback, window by window.

Per time window k and class (application) i, papers/5 section 3.2.2:

======== ==========================================================================
L        depth: requests that may be at the storage at once
L_max    most that were there in window k
X        requests that the storage completed in window k
D_i      the class's latency bound l_i
MT_i     mean waiting time in the EDF queue, of window k + 1: that of k
T_i      95th percentile of the time at the storage
E_i      (D_i - MT_i) / T_i: how much longer a request may be at the storage
L_RT_i   E_i L: the deepest that keeps the latency of class i
L_0      the least with which all that is due by the end of window k + 1 completes
L_U      the least with which all that is there, or comes, completes
======== ==========================================================================

Depth and completions are in proportion, L / X for each: to complete N requests takes a
depth of N L / X. So L_0 and L_U. If L_RT_i < L_0 for some i, the storage is
*overloaded*: what is due cannot be had in time. Otherwise the depth is the least over
the classes of L_RT_i, or of L_U where that is less. An overloaded storage has the
infinite depth, and L_max stands for L, until X exceeds what is due; then the depth is
the least over the classes of the larger of L_RT_i and L_0.

Readings of ours, where the paper leaves it open:

- L is no more than L_max where the depth was not used up: T_i was measured at L_max.
- A storage that was idle could have completed more: X counts as X / (share of the
  window in which it was not).
- Leaving overload. The paper says that the depth stays infinite while all that is there
  or comes in window k + 1 exceeds X, and that it is chosen anew when X exceeds what is
  due by then. Both can be true, as what is due is a part of what is there. Here the
  second alone decides, with ``overload=send`` too: the first would keep a storage at
  the infinite depth that can serve in time all that is due.
- The text of L_U is damaged in our copy; this is what makes sense of its use. It bounds
  the depth only beyond 2 L: where little comes it is small, and the next burst would
  find a depth of 1. In the paper, too, the depth of a light load is L_RT (section
  4.2.1: about 15, which is 300 ms x 50 MB/s / 1 MB).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final

__all__ = [
    "PERCENTILE",
    "DepthDecision",
    "Served",
    "WindowStatistics",
    "decide",
    "percentile",
]

#: Of the response times, what an SLO's latency bounds.
PERCENTILE: Final = 0.95


def percentile(values: Sequence[float]) -> float:
    """Return the smallest value that 95 % of all do not exceed."""
    return sorted(values)[ceil(PERCENTILE * len(values)) - 1]


@dataclass(slots=True)
class Served:
    """What was seen of one class in a window."""

    latency: float
    """D_i (s)."""
    times: list[float] = field(default_factory=list)
    """Time at the storage (s) of each request that completed."""
    waited: float = 0.0
    """Time in the EDF queue (s), of all those together."""
    came: int = 0
    """Requests that came to the EDF queue."""

    def mean_wait(self) -> float:
        """Return MT_i (s)."""
        return self.waited / len(self.times)

    def stretch(self) -> float:
        """Return E_i = (D_i - MT_i) / T_i."""
        return (self.latency - self.mean_wait()) / max(percentile(self.times), 1e-9)


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """What was seen in a window, and what is there at its end."""

    window: float
    """Its length (s)."""
    classes: Mapping[str, Served]
    depth: float
    """L."""
    most: int
    """L_max."""
    busy: float
    """Share of the window in which the storage was not idle."""
    outstanding: int
    """At the storage now."""
    queued: int
    """In the EDF queue now."""
    due: int
    """Those of them that are due within a window from now."""

    @property
    def completed(self) -> float:
        """X, had the storage never been idle."""
        count = sum(len(c.times) for c in self.classes.values())
        return count / min(1.0, max(self.busy, 0.01))

    @property
    def coming(self) -> int:
        """Requests that will come in the next window: as many as came."""
        return sum(c.came for c in self.classes.values())

    def due_next(self) -> float:
        """Return how many requests are due by the end of the next window.

        Those at the storage, those in the queue that say so, and of those that will
        come the ones that come early enough.
        """
        coming = sum(
            c.came * max(0.0, 1.0 - c.latency / self.window)
            for c in self.classes.values()
        )
        return self.outstanding + self.due + coming


@dataclass(frozen=True, slots=True)
class DepthDecision:
    """The depth of the next window, and why."""

    depth: float
    """L; inf under overload."""
    threshold: float
    """Least L_RT_i: what spareness is measured against; inf under overload."""
    least: float = 0.0
    """L_0."""
    useful: float = inf
    """L_U."""

    @property
    def overloaded(self) -> bool:
        """Tell whether what is due cannot be had in time."""
        return self.depth == inf


def decide(past: WindowStatistics, *, overloaded: bool) -> DepthDecision | None:
    """Return the depth of the next window; None: nothing was seen, all stays.

    `overloaded`: whether the storage was so in the window that ends.
    """
    seen = [c for c in past.classes.values() if c.times]
    if not seen:
        return None
    effective = min(past.depth, float(past.most))
    each = effective / past.completed
    due = past.due_next()
    least = due * each
    useful = (past.outstanding + past.queued + past.coming) * each
    kept = [c.stretch() * effective for c in seen]
    if overloaded:
        if past.completed <= due:
            return DepthDecision(inf, inf, least, useful)
        depth = min(max(k, least) for k in kept)
    else:
        if min(kept) < least:
            return DepthDecision(inf, inf, least, useful)
        depth = min(min(k, max(useful, 2 * past.depth)) for k in kept)
    return DepthDecision(max(1.0, depth), max(1.0, min(kept)), least, useful)
