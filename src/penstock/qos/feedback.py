# SPDX-License-Identifier: MIT
"""Feedback control of the queue depth at the storage, once per time window.

Quantities per time window k and class (application) i (two-level scheduling, section
3.2.2):

======== ==========================================================================
L        depth: maximum number of requests at the storage at once
L_max    largest number of requests that were at the storage in window k
X        number of requests that the storage completed in window k
D_i      latency bound of class i
MT_i     mean waiting time of class i in the EDF queue; the value of window k is the
         estimate for window k + 1
T_i      95th percentile of the time that requests of class i spent at the storage
E_i      (D_i - MT_i) / T_i: factor by which the time at the storage may grow
L_RT_i   E_i L: largest depth that keeps the latency bound of class i
L_0      least depth that completes everything due by the end of window k + 1
L_U      least depth that completes everything that is queued or will arrive
======== ==========================================================================

Completions are assumed proportional to the depth, so N completions need the depth
N L / X. This gives L_0 and L_U:

    L_0 = N_due L / X,    L_U = N_all L / X.

Rule for the depth of window k + 1:

- Not overloaded so far. If L_RT_i < L_0 for some class i, the storage becomes
  *overloaded*: it cannot complete in time what is due. The depth is then infinite, and
  L_max is used in place of L. Otherwise the depth is min_i min(L_RT_i, L_U).
- Overloaded so far. The storage stays overloaded while X <= N_due. Otherwise the depth
  is min_i max(L_RT_i, L_0).

Interpretations, where the paper leaves the choice open:

- L is at most L_max: if the depth was not used up, T_i was measured at L_max.
- A storage that was idle could have completed more. X is therefore divided by the
  fraction of the window in which the storage was busy.
- Leaving overload. The paper says that the depth stays infinite while more is queued or
  arriving than X, and also that it is set anew when X exceeds what is due. Both can be
  true, since what is due is part of what is queued or arriving. Here the second
  condition alone decides, also with ``overload=send``: the first would keep the depth
  infinite although everything due can be completed in time.
- The definition of L_U is not legible in our copy of the paper; this one fits its use.
  L_U limits the depth only beyond 2 L: under a light load L_U is small, and the next
  burst would meet a depth of 1. In the paper, too, the depth under a light load is
  L_RT (section 4.2.1: about 15, which is 300 ms x 50 MB/s / 1 MB).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Final

__all__ = [
    "PERCENTILE",
    "ClassStatistics",
    "DepthDecision",
    "WindowStatistics",
    "decide_depth",
    "percentile",
]

#: The percentile of the response times that an SLO bounds.
PERCENTILE: Final = 0.95
#: Lower bound of T_i, against division by zero.
_MIN_TIME_S: Final = 1e-9
#: Lower bound of the busy fraction by which X is divided.
_MIN_BUSY_SHARE: Final = 0.01


def percentile(values: Sequence[float]) -> float:
    """Return the 95th percentile: the smallest value that 95 % do not exceed."""
    return sorted(values)[ceil(PERCENTILE * len(values)) - 1]


@dataclass(slots=True)
class ClassStatistics:
    """Measurements of one class in a window."""

    latency_s: float
    """D_i."""
    storage_times_s: list[float] = field(default_factory=list)
    """Time at the storage of each completed request."""
    queue_time_s: float = 0.0
    """Sum of the times that these requests spent in the EDF queue."""
    admitted: int = 0
    """Requests that entered the EDF queue."""

    def mean_wait_s(self) -> float:
        """Return MT_i."""
        return self.queue_time_s / len(self.storage_times_s)

    def slack_factor(self) -> float:
        """Return E_i = (D_i - MT_i) / T_i."""
        storage_s = max(percentile(self.storage_times_s), _MIN_TIME_S)
        return (self.latency_s - self.mean_wait_s()) / storage_s


@dataclass(frozen=True, slots=True)
class WindowStatistics:
    """Measurements of a window, and the queue lengths at its end."""

    length_s: float
    """Length of the window."""
    classes: Mapping[str, ClassStatistics]
    depth: float
    """L."""
    max_outstanding: int
    """L_max."""
    busy_share: float
    """Fraction of the window in which the storage was not idle."""
    outstanding: int
    """Requests at the storage at the end."""
    queued: int
    """Requests in the EDF queue at the end."""
    queued_due: int
    """Requests in the EDF queue that are due within the next window."""

    @property
    def completed(self) -> float:
        """X, scaled to a storage that was never idle."""
        count = sum(len(c.storage_times_s) for c in self.classes.values())
        return count / min(1.0, max(self.busy_share, _MIN_BUSY_SHARE))

    @property
    def arriving(self) -> int:
        """Expected arrivals in the next window: as many as in this one."""
        return sum(c.admitted for c in self.classes.values())

    def due_next(self) -> float:
        """Return N_due: the number of requests due by the end of the next window.

        These are the requests at the storage, the queued requests that are due, and
        of the expected arrivals the fraction 1 - D_i / window, which arrives early
        enough to be due in the window.
        """
        arriving_due = sum(
            c.admitted * max(0.0, 1.0 - c.latency_s / self.length_s)
            for c in self.classes.values()
        )
        return self.outstanding + self.queued_due + arriving_due


@dataclass(frozen=True, slots=True)
class DepthDecision:
    """The depth of the next window, and the quantities behind it."""

    depth: float
    """L; inf under overload."""
    threshold: float
    """Queue threshold min_i L_RT_i, which defines spareness; inf under overload."""
    due_depth: float = 0.0
    """L_0."""
    useful_depth: float = inf
    """L_U."""
    latency_depth: float = inf
    """min_i L_RT_i, also under overload; at least 1."""

    @property
    def overloaded(self) -> bool:
        """Return True if the storage cannot complete in time what is due."""
        return self.depth == inf


def decide_depth(past: WindowStatistics, *, overloaded: bool) -> DepthDecision | None:
    """Return the depth of the next window; None if nothing was completed.

    `overloaded` says whether the storage was overloaded in the past window.
    """
    measured = [c for c in past.classes.values() if c.storage_times_s]
    if not measured:
        return None
    effective_depth = min(past.depth, float(past.max_outstanding))
    depth_per_completion = effective_depth / past.completed
    due = past.due_next()
    due_depth = due * depth_per_completion
    present_and_arriving = past.outstanding + past.queued + past.arriving
    useful_depth = present_and_arriving * depth_per_completion
    latency_depths = [c.slack_factor() * effective_depth for c in measured]
    threshold = max(1.0, min(latency_depths))
    overload = DepthDecision(inf, inf, due_depth, useful_depth, threshold)
    if overloaded:
        if past.completed <= due:
            return overload
        depth = min(max(x, due_depth) for x in latency_depths)
    else:
        if min(latency_depths) < due_depth:
            return overload
        limit = max(useful_depth, 2 * past.depth)
        depth = min(min(x, limit) for x in latency_depths)
    return DepthDecision(max(1.0, depth), threshold, due_depth, useful_depth, threshold)
