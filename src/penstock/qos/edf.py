# SPDX-License-Identifier: MIT
"""Send the earliest deadline first, a fixed number at once.

Rule
    A request that arrives at a is due at a + l_i. The one that is due first goes first;
    of equals the one that came first.

Parameters
    depth
        Requests at the storage at once; 0: any number. Default 8.

Properties
    O(log n) per request, n waiting. Meets all deadlines if any order does, on a storage
    that serves one after the other. Under overload everybody is late by the same: it
    knows nothing of shares. Nobody starves, since what comes later is due later but for
    the difference of two latencies.

Source
    papers/5 section 3.2 (the lower level, alone).
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from penstock.qos.request import Request
from penstock.qos.scheduler import DEPTH, OneQueue, Queue, depth_parameter
from penstock.qos.slo import Slo, slo_of

__all__ = ["PARAMETERS", "Deadlines", "DueFirst", "make"]

PARAMETERS: Final = (depth_parameter(DEPTH),)


class DueFirst:
    """Requests by their deadlines; of equals the one that was put in first."""

    __slots__ = ("_number", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Request]] = []
        """By deadline, then by number."""
        self._number = 0

    def __len__(self) -> int:
        return len(self.heap)

    def push(self, request: Request) -> None:
        """Put in a request that has a deadline."""
        self._number += 1
        heappush(self.heap, (request.deadline, self._number, request))

    def pop(self) -> Request:
        """Take out the one that is due first."""
        return heappop(self.heap)[2]

    def due(self, until: float) -> int:
        """Return how many are due before `until` (s)."""
        return sum(deadline < until for deadline, _, _ in self.heap)


class Deadlines(Queue):
    """Gives every request its deadline, a + l_i."""

    def __init__(self, slos: Mapping[str, Slo]) -> None:
        self._requests = DueFirst()
        self._latency: dict[str, float] = {}
        self._slos = slos

    def __len__(self) -> int:
        return len(self._requests)

    def push(self, request: Request) -> None:
        """Take in a request that has just arrived."""
        latency = self._latency.get(request.application)
        if latency is None:
            latency = slo_of(self._slos, request.application).latency
            self._latency[request.application] = latency
        request.deadline = request.arrived + latency
        self._requests.push(request)

    def pop(self) -> Request:
        """Take out the one that is due first."""
        return self._requests.pop()

    def change(self, slos: Mapping[str, Slo]) -> None:
        """Set other objectives, for those that come from now on."""
        self._slos = dict(slos)
        self._latency.clear()


def make(slos: Mapping[str, Slo], now: float, depth: float) -> OneQueue:  # noqa: ARG001
    """Return a scheduler that begins now."""
    return OneQueue(Deadlines(slos), depth)
