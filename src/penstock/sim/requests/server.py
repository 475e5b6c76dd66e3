# SPDX-License-Identifier: MIT
"""A simulated storage server.

With n requests at the server it serves C(n) bytes/s in total. The `threads` oldest
requests share C(n) equally; the others wait in order of arrival. So one thread serves
requests one after the other, and many threads serve them at once. A request of s bytes
takes as long as moving s + overhead bytes. Its answer arrives some time after that (the
way there and back, and the work of both ends), in which the server serves others.

Memory. A server with a memory of M bytes answers a write when the memory has taken it.
It takes A bytes/s while it is not full, and C(n) bytes/s, what it drains, when it is.
It drains C(n) bytes/s as long as it holds anything (n at least 1). So from empty, under
constant demand, it is full after

    M / (A - C(n)) seconds.

The bytes taken are those drained plus those in the memory, at any time. All requests
count as writes.
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
    delays_s: tuple[float, ...] = (0.0,)
    """Times from the end of the service to the answer; one is drawn per request."""
    changes: tuple[tuple[float, float], ...] = ()
    """(time in s, share of the capacity from then on), in order of time."""
    memory_bytes: float = 0.0
    """M: size of the memory that takes writes; 0: none."""
    absorb_bytes_per_s: float = inf
    """A: throughput into the memory while it is not full."""

    def __post_init__(self) -> None:
        has_overhead = 0 <= self.overhead_bytes < inf
        has_capacity = 0 < self.capacity_bytes_per_s < inf
        if not (has_capacity and self.threads >= 1 and has_overhead):
            raise InputError(
                "a server needs a positive capacity, at least one thread and an "
                "overhead of at least 0 bytes",
                where=repr(self),
            )
        if not (0 <= self.memory_bytes < inf and self.absorb_bytes_per_s > 0):
            raise InputError(
                f"{self.memory_bytes!r} bytes at {self.absorb_bytes_per_s!r} bytes/s "
                "are not a memory",
                where="memory_bytes",
                remedy="give a size of at least 0 and a positive throughput",
            )
        if self.memory_bytes and self.absorb_bytes_per_s == inf:
            raise InputError(
                "a server with a memory needs a finite throughput into it",
                where="absorb_bytes_per_s",
                remedy="give the throughput of its network, for example",
            )
        if not self.delays_s or not all(0 <= delay < inf for delay in self.delays_s):
            raise InputError(
                f"{self.delays_s!r} are not delays of answers",
                where="delays_s",
                remedy="list one or more times of at least 0 s",
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
        self.held_bytes = 0.0
        """What the memory holds, at the time of the last call."""
        self._fast_rate = self._drain_rate = 0.0

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
        left_bytes = max(0.0, self._in_service[0][0] - self._service_bytes)
        fast_s = self._fast_s()
        if not fast_s:
            return self._updated_s + left_bytes / self._rate
        if left_bytes <= self._fast_rate * fast_s:
            return self._updated_s + left_bytes / self._fast_rate
        rest_bytes = left_bytes - self._fast_rate * fast_s
        return self._updated_s + fast_s + rest_bytes / self._rate

    def _fast_s(self) -> float:
        """Return how long the memory takes requests at its own throughput (s)."""
        free_bytes = self._spec.memory_bytes - self.held_bytes
        if not self._in_service or free_bytes <= 0:
            return 0.0
        filling = self._fast_rate * len(self._in_service) - self._drain_rate
        return free_bytes / filling if filling > 0 else inf

    def _advance(self, now: float) -> None:
        """Count the service, and what the memory takes and drains, up to now."""
        passed_s = now - self._updated_s
        self._updated_s = now
        if not self._spec.memory_bytes:
            self._service_bytes += self._rate * passed_s
            return
        fast_s = min(passed_s, self._fast_s())
        served = self._fast_rate * fast_s + self._rate * (passed_s - fast_s)
        self._service_bytes += served
        filled_bytes = self._fast_rate * len(self._in_service) * fast_s
        drained_bytes = self._drain_rate * (fast_s if self._in_service else passed_s)
        self.held_bytes = max(0.0, self.held_bytes + filled_bytes - drained_bytes)
        if fast_s < passed_s and self._in_service:
            self.held_bytes = self._spec.memory_bytes

    def _start_service(self, now: float) -> None:
        """Give free threads to queued requests; update the rates."""
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
        if self._spec.memory_bytes:
            self._drain_rate = self._total_rate(max(1, count), now)
            fast = max(self._spec.absorb_bytes_per_s, self._drain_rate)
            self._fast_rate = fast / max(1, len(self._in_service))

    def _total_rate(self, count: int, now: float) -> float:
        """Return C(n) at the present capacity, from a cache."""
        rate = self._rates.get(count)
        if rate is None:
            rate = self._rates[count] = self._spec.rate(count, now)
        return rate
