# SPDX-License-Identifier: MIT
"""A simulated storage server.

With n requests at the server it serves C(n) bytes/s in total. The `threads` oldest
requests share C(n) equally; the others wait in order of arrival. So one thread serves
requests one after the other, and many threads serve them at once. A request of s bytes
takes as long as moving s + overhead bytes.
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
    """Description of a server."""

    capacity_bytes_per_s: float
    """Highest total throughput."""
    curve: tuple[tuple[float, float], ...] = ((1.0, 1.0),)
    """Concurrency curve: (number of requests, share of the capacity), interpolated."""
    threads: float = 1.0
    """Requests in service at once; inf: all."""
    overhead_bytes: float = 0.0
    """Overhead per request (positioning, metadata), as bytes of lost throughput."""
    changes: tuple[tuple[float, float], ...] = ()
    """(time in s, share of the capacity from then on), in order of time."""

    def __post_init__(self) -> None:
        has_overhead = 0 <= self.overhead_bytes < inf
        has_capacity = 0 < self.capacity_bytes_per_s < inf
        if not (has_capacity and self.threads >= 1 and has_overhead):
            raise InputError(
                "a server needs a positive capacity, at least one thread and an "
                "overhead of at least 0 bytes",
                where=repr(self),
            )
        if not self.curve or not _is_ascending(self.curve):
            raise InputError(
                f"{self.curve!r} is not a concurrency curve",
                where="curve",
                remedy="list ascending counts with positive shares",
            )
        if not _is_ascending(self.changes):
            raise InputError(
                f"{self.changes!r} is not a list of capacity changes",
                where="changes",
                remedy="list ascending times with positive shares",
            )

    def rate(self, count: int, time: float) -> float:
        """Return C(n) (bytes/s) at a time (s)."""
        level = 1.0
        for since, share in self.changes:
            if time >= since:
                level = share
        return self.capacity_bytes_per_s * level * self._share(count)

    def _share(self, count: int) -> float:
        """Return the interpolated value of the concurrency curve."""
        counts = [x for x, _ in self.curve]
        k = bisect_right(counts, count)
        if k == 0:
            return self.curve[0][1]
        if k == len(counts):
            return self.curve[-1][1]
        (x0, y0), (x1, y1) = self.curve[k - 1], self.curve[k]
        return y0 + (y1 - y0) * (count - x0) / (x1 - x0)


def _is_ascending(points: Sequence[tuple[float, float]]) -> bool:
    """Return True if first values ascend from 0 on and all shares are positive."""
    firsts = [-math.ulp(0.0), *(first for first, _ in points)]
    return all(a < b < inf for a, b in pairwise(firsts)) and all(
        0 < share < inf for _, share in points
    )


class Server:
    """Serves requests; `next` is the time of the next completion.

    `_service_bytes` counts the bytes that each request in service has received since
    the server started. A request that enters service at the count S completes when the
    count reaches S + size + overhead.
    """

    def __init__(self, spec: ServerSpec) -> None:
        self._spec = spec
        self._in_service: list[tuple[float, int, Request]] = []
        self._queue: deque[Request] = deque()
        self._service_bytes = 0.0
        self._rate = 0.0
        self._updated_s = 0.0
        self._number = 0
        self._rates: dict[int, float] = {}

    def put(self, request: Request, now: float) -> None:
        """Add a request."""
        self._advance(now)
        self._queue.append(request)
        self._start_service(now)

    def take(self, now: float) -> Request:
        """Remove and return the request that completes now."""
        self._advance(now)
        self._service_bytes, _, request = heappop(self._in_service)
        self._start_service(now)
        return request

    def refresh(self, now: float) -> None:
        """Apply a change of the capacity."""
        self._advance(now)
        self._rates.clear()
        self._start_service(now)

    @property
    def next(self) -> float:
        """Time of the next completion (s); inf: the server is idle."""
        if not self._in_service:
            return inf
        left_bytes = self._in_service[0][0] - self._service_bytes
        return self._updated_s + max(0.0, left_bytes) / self._rate

    def _advance(self, now: float) -> None:
        """Count the service up to now."""
        self._service_bytes += self._rate * (now - self._updated_s)
        self._updated_s = now

    def _start_service(self, now: float) -> None:
        """Give free threads to queued requests; update the rate per request."""
        while self._queue and len(self._in_service) < self._spec.threads:
            request = self._queue.popleft()
            self._number += 1
            work_bytes = request.size_bytes + self._spec.overhead_bytes
            entry = (self._service_bytes + work_bytes, self._number, request)
            heappush(self._in_service, entry)
        count = len(self._in_service) + len(self._queue)
        if count:
            self._rate = self._total_rate(count, now) / len(self._in_service)
        else:
            self._rate = 0.0

    def _total_rate(self, count: int, now: float) -> float:
        """Return C(n) at the present capacity, from a cache."""
        rate = self._rates.get(count)
        if rate is None:
            rate = self._rates[count] = self._spec.rate(count, now)
        return rate
