# SPDX-License-Identifier: MIT
"""Bandwidth limits: token pools, with requests first come, first served.

A pool fills at its limit B (bytes/s). A request of s bytes is sent when its pools hold
s bytes, and takes them. So in any time t at most B t bytes are sent, plus what the pool
held before. While no request waits, a pool holds at most `SLACK_S` seconds of B: enough
to make up for timers that fire late. While a request waits, the pool fills without a
bound, so that no bandwidth is lost however late the timer is.

Reads and writes have a pool each, and share the total pool. Requests of one kind are
sent in order of arrival. A request that waits for the total pool is not overtaken,
because small requests would starve large ones. A request that waits for the pool of its
kind does not hold up the other kind.

Pure: time (s, of any clock) is passed in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Final

from penstock.qos import Kind, Request

__all__ = ["DATA_KINDS", "SLACK_S", "Limiter", "Limits"]

#: The kinds of requests that move data.
DATA_KINDS: Final[tuple[Kind, ...]] = ("read", "write")
#: Most bandwidth that a pool holds while no request waits, in seconds of its rate.
SLACK_S: Final = 0.020
#: Tolerance for rounding of the clock, in seconds of the rate.
_TOLERANCE_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in bytes/s; inf: no limit."""

    total: float = inf
    read: float = inf
    write: float = inf


class _Pool:
    """A token pool: `level` bytes at the time `filled_s`, filling at `rate` (bytes/s).

    `awaited`: a request waits for more than the pool holds. `reserved_bytes`: what the
    pool holds for a request that waits for another pool. `takers`: the requests under
    way that took bytes from the pool.
    """

    __slots__ = ("awaited", "filled_s", "level", "rate", "reserved_bytes", "takers")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self.level = inf if rate == inf else 0.0
        self.filled_s = now
        self.takers: set[Request] = set()
        self.clear_waiters()

    def clear_waiters(self) -> None:
        """Forget which requests wait for the pool."""
        self.awaited = False
        self.reserved_bytes = 0

    def fill(self, now: float) -> None:
        """Fill up to `now`; if no request waits, drop what exceeds the slack."""
        if now > self.filled_s:
            self.level += self.rate * (now - self.filled_s)
            self.filled_s = now
        if not self.awaited:
            most = max(self.rate * SLACK_S, self.reserved_bytes)
            self.level = min(self.level, most)

    def set_rate(self, rate: float, now: float) -> None:
        """Fill at another rate from `now` on."""
        self.fill(now)
        if inf in (rate, self.rate):
            self.level = inf if rate == inf else 0.0
            self.takers.clear()
        self.rate = rate

    def has(self, size_bytes: int) -> bool:
        """Return True if `size_bytes` can be taken now."""
        return self.level >= size_bytes - self.rate * _TOLERANCE_S

    def ready_s(self, size_bytes: int) -> float:
        """Return the time from which `size_bytes` can be taken."""
        return self.filled_s + (size_bytes - self.level) / self.rate

    def take(self, request: Request) -> None:
        """Take the size of a request, unless the pool is unlimited."""
        if self.rate < inf:
            self.level -= request.size_bytes
            self.takers.add(request)

    def give_back(self, request: Request, moved_bytes: int, now: float) -> None:
        """Give back what a request took from this pool and did not move."""
        if request in self.takers:
            self.takers.remove(request)
            self.fill(now)
            self.level += request.size_bytes - moved_bytes


class Limiter:
    """Sends requests first come, first served, within limits."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self._unlimited = limits == Limits()
        self.wake_s = inf
        self._total = _Pool(limits.total, now)
        self._by_kind = {kind: _Pool(getattr(limits, kind), now) for kind in DATA_KINDS}
        self._pools = (self._total, *self._by_kind.values())
        self._queues: dict[Kind, deque[tuple[int, Request]]]
        self._queues = {kind: deque() for kind in DATA_KINDS}
        self._arrivals = 0

    @property
    def is_open(self) -> bool:
        """Return True if there is no limit and no request waits."""
        return self._unlimited and not self.waiting

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return len(self._queues["read"]) + len(self._queues["write"])

    def set_limits(self, limits: Limits, now: float) -> None:
        """Replace the limits; they also hold for requests that already wait."""
        self.limits = limits
        self._unlimited = limits == Limits()
        self._total.set_rate(limits.total, now)
        for kind, pool in self._by_kind.items():
            pool.set_rate(getattr(limits, kind), now)

    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request."""
        # Fill first: bandwidth from before the arrival is lost beyond the slack.
        for pool in self._pools:
            pool.fill(now)
        self._arrivals += 1
        self._queues[request.kind].append((self._arrivals, request))

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests to send now, and set `wake_s`."""
        for pool in self._pools:
            pool.fill(now)
        to_send = []
        while (request := self._pop_ready()) is not None:
            to_send.append(request)
        return to_send

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Give back what a request did not move (end of file, an error)."""
        for pool in (self._by_kind[request.kind], self._total):
            pool.give_back(request, moved_bytes, now)

    def _pop_ready(self) -> Request | None:
        """Return a request that can be sent; else set `wake_s` and return None."""
        self.wake_s = inf
        for pool in self._pools:
            pool.clear_waiters()
        queues = filter(None, self._queues.values())
        for queue in sorted(queues, key=lambda queue: queue[0][0]):
            request = queue[0][1]
            missing = self._missing_pools(request)
            if not missing:
                self._take(request)
                queue.popleft()
                return request
            if missing == [self._total]:
                break
        return None

    def _missing_pools(self, request: Request) -> list[_Pool]:
        """Return the pools that hold too little; reserve the bytes in the others."""
        size_bytes, missing = request.size_bytes, []
        for pool in (self._by_kind[request.kind], self._total):
            if pool.has(size_bytes):
                pool.reserved_bytes = max(pool.reserved_bytes, size_bytes)
            else:
                pool.awaited = True
                self.wake_s = min(self.wake_s, pool.ready_s(size_bytes))
                missing.append(pool)
        return missing

    def _take(self, request: Request) -> None:
        for pool in (self._by_kind[request.kind], self._total):
            pool.take(request)
