# SPDX-License-Identifier: MIT
"""Send the earliest deadline first, at a fixed depth (EDF).

Rule
    A request of application i that arrives at time a has the deadline a + l_i. The
    earliest deadline goes first; among equal deadlines, the request queued first.

Parameters
    depth
        Requests at the storage at once; 0: any number. Default 8.

Properties
    O(log n) per request, with n queued requests. On a storage that serves one request
    after the other, EDF meets all deadlines if any order does. Under overload all
    applications are late by the same time, because EDF does not know shares. No request
    starves: only requests that arrive less than l_i - min_j l_j later can overtake it.

Source
    Two-level scheduling, section 3.2 (its lower level, used alone).
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from penstock.qos.guarantees import Guarantees
from penstock.qos.request import Request
from penstock.qos.scheduler import DEPTH, Queue, SingleQueueScheduler, depth_parameter
from penstock.qos.slo import Slo, slo_of

__all__ = ["PARAMETERS", "DeadlineHeap", "DeadlineQueue", "make"]

PARAMETERS: Final = (depth_parameter(DEPTH),)


class DeadlineHeap:
    """Requests by deadline; among equal deadlines, in order of insertion."""

    __slots__ = ("_number", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Request]] = []
        """(deadline, insertion number, request)."""
        self._number = 0

    def __len__(self) -> int:
        return len(self.heap)

    def push(self, request: Request) -> None:
        """Add a request whose deadline is set."""
        self._number += 1
        heappush(self.heap, (request.deadline_s, self._number, request))

    def pop(self) -> Request:
        """Remove and return the request with the earliest deadline."""
        return heappop(self.heap)[2]

    def count_due_before(self, time_s: float) -> int:
        """Return the number of requests with a deadline before `time_s`."""
        return sum(deadline_s < time_s for deadline_s, _, _ in self.heap)


class DeadlineQueue(Queue):
    """Sets the deadline a + l_i of every request and orders requests by deadline."""

    def __init__(self, slos: Mapping[str, Slo]) -> None:
        self._requests = DeadlineHeap()
        self._latencies_s: dict[str, float] = {}
        self._slos = slos

    def __len__(self) -> int:
        return len(self._requests)

    def push(self, request: Request) -> None:
        """Set the deadline of a request that has just arrived, and queue it."""
        latency_s = self._latencies_s.get(request.application)
        if latency_s is None:
            latency_s = slo_of(self._slos, request.application).latency_s
            self._latencies_s[request.application] = latency_s
        request.deadline_s = request.arrived_s + latency_s
        self._requests.push(request)

    def pop(self) -> Request:
        """Remove and return the request with the earliest deadline."""
        return self._requests.pop()

    def set_slos(self, slos: Mapping[str, Slo]) -> None:
        """Replace the SLOs; deadlines that are already set do not change."""
        self._slos = dict(slos)
        self._latencies_s.clear()


def make(
    slos: Mapping[str, Slo],
    now: float,  # noqa: ARG001
    depth: float,
) -> SingleQueueScheduler:
    """Return a scheduler that starts at `now`."""
    return SingleQueueScheduler(DeadlineQueue(slos), depth, Guarantees(deadlines=True))
