# SPDX-License-Identifier: MIT
"""A simulated storage server: how fast it serves what is there.

With n requests there it serves C(n) bytes/s in all. The `threads` oldest of them share
that equally, the others wait in the order in which they came: with one thread they are
served one after the other, with many all at once. A request of size s takes s plus an
overhead (positioning, bookkeeping), in bytes that could have been moved meanwhile.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from math import inf

from penstock.errors import InputError
from penstock.qos import Request

__all__ = ["Server", "ServerSpec"]


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """What a server can do."""

    capacity: float
    """Most it serves (bytes/s)."""
    curve: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    """Concurrency curve: (requests there, share of the capacity), linear between."""
    threads: float = 1.0
    """Requests served at once; inf: all."""
    overhead: float = 0.0
    """Of a request (bytes)."""
    changes: tuple[tuple[float, float], ...] = ()
    """(from when, s; share of the capacity there is), in order of time."""

    def __post_init__(self) -> None:
        overhead = 0 <= self.overhead < inf
        if not (0 < self.capacity < inf and self.threads >= 1 and overhead):
            raise InputError("a server needs a capacity, a thread and no less overhead")
        if not self.curve or not _ascends(self.curve):
            raise InputError(
                f"{self.curve!r} is no concurrency curve",
                where="curve",
                remedy="list ascending counts with positive shares",
            )
        if not _ascends(self.changes):
            raise InputError(
                f"{self.changes!r} are no changes of the capacity",
                where="changes",
                remedy="list ascending times with positive shares",
            )

    def rate(self, count: int, time: float) -> float:
        """Return C(n) (bytes/s) at some time (s)."""
        level = 1.0
        for since, share in self.changes:
            if time >= since:
                level = share
        return self.capacity * level * self._share(count)

    def _share(self, count: int) -> float:
        counts = [x for x, _ in self.curve]
        k = bisect_right(counts, count)
        if k == 0:
            return self.curve[0][1]
        if k == len(counts):
            return self.curve[-1][1]
        (x0, y0), (x1, y1) = self.curve[k - 1], self.curve[k]
        return y0 + (y1 - y0) * (count - x0) / (x1 - x0)


def _ascends(points: Sequence[tuple[float, float]]) -> bool:
    """Tell whether all are (0 or more, a positive share), each later than the last."""
    places = [-math.ulp(0.0), *(place for place, _ in points)]
    return all(a < b < inf for a, b in pairwise(places)) and all(
        0 < share < inf for _, share in points
    )


class Server:
    """Serves requests; `next` says when the next one is done.

    `_service` counts the bytes that each request in service has been served since the
    server began: one that began at S is done when it reaches S + size.
    """

    def __init__(self, spec: ServerSpec) -> None:
        self._spec = spec
        self._inside: list[tuple[float, int, Request]] = []
        self._queue: deque[Request] = deque()
        self._service = 0.0
        self._rate = 0.0
        self._since = 0.0
        self._number = 0
        self._rates: dict[int, float] = {}

    def put(self, request: Request, now: float) -> None:
        """Take a request in."""
        self._advance(now)
        self._queue.append(request)
        self._fill(now)

    def take(self, now: float) -> Request:
        """Take out the request that is done now."""
        self._advance(now)
        self._service, _, request = heappop(self._inside)
        self._fill(now)
        return request

    def refresh(self, now: float) -> None:
        """Note that the capacity has changed."""
        self._advance(now)
        self._rates.clear()
        self._fill(now)

    @property
    def next(self) -> float:
        """When the next request is done (s); inf: none is there."""
        if not self._inside:
            return inf
        left = self._inside[0][0] - self._service
        return self._since + max(0.0, left) / self._rate

    def _advance(self, now: float) -> None:
        self._service += self._rate * (now - self._since)
        self._since = now

    def _fill(self, now: float) -> None:
        """Begin with those for whom there is a thread; set the rate of each."""
        while self._queue and len(self._inside) < self._spec.threads:
            request = self._queue.popleft()
            self._number += 1
            work = request.size + self._spec.overhead
            heappush(self._inside, (self._service + work, self._number, request))
        there = len(self._inside) + len(self._queue)
        self._rate = self._total(there, now) / len(self._inside) if there else 0.0

    def _total(self, there: int, now: float) -> float:
        rate = self._rates.get(there)
        if rate is None:
            rate = self._rates[there] = self._spec.rate(there, now)
        return rate
