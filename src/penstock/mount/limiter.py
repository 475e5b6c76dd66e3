# SPDX-License-Identifier: MIT
"""When each request may go: pools of bandwidth, and requests first come, first served.

A pool fills at its limit B (bytes/s). A request of s bytes goes when s bytes are in
its pools, and takes them: in any time t at most B t bytes go, plus what was saved. What
is saved while nobody waits is at most `SLACK_S` seconds of B, just enough to make up
for timers that fire late; while somebody waits nothing is lost, however late.

Reads and writes have a pool each, and all share the total one. Within a kind requests
go in order of arrival. A request that waits for the total is not overtaken, else small
ones would starve large ones; one that waits for the pool of its kind does not hold up
the other kind.

Pure: time (s, of any clock) is passed in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import Final

from penstock.qos import Kind, Request

__all__ = ["KINDS", "SLACK_S", "Limiter", "Limits"]

#: What moves data.
KINDS: Final[tuple[Kind, ...]] = ("read", "write")
#: Bandwidth that is saved while nobody waits, in seconds of it.
SLACK_S: Final = 0.020
#: Rounding of the clock, in seconds of bandwidth: so much may be missing.
_TICK_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be moved per second (bytes/s); inf: as much as there is."""

    total: float = inf
    read: float = inf
    write: float = inf


class _Pool:
    """Bandwidth to be taken: `level` bytes at time `since`, filling at `rate`.

    `awaited`: somebody waits for more than there is. `kept`: bytes that are there for
    somebody who waits for another pool. `takers`: requests under way that took from it.
    """

    __slots__ = ("awaited", "kept", "level", "rate", "since", "takers")

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self.level = inf if rate == inf else 0.0
        self.since = now
        self.takers: set[Request] = set()
        self.release()

    def release(self) -> None:
        """Forget who waits."""
        self.awaited = False
        self.kept = 0

    def settle(self, now: float) -> None:
        """Fill up to `now`; what nobody waits for is lost beyond the slack."""
        if now > self.since:
            self.level += self.rate * (now - self.since)
            self.since = now
        if not self.awaited:
            self.level = min(self.level, max(self.rate * SLACK_S, self.kept))

    def change(self, rate: float, now: float) -> None:
        """Fill at another rate from `now` on."""
        self.settle(now)
        if inf in (rate, self.rate):
            self.level = inf if rate == inf else 0.0
            self.takers.clear()
        self.rate = rate

    def has(self, size: int) -> bool:
        """Return whether `size` bytes can be taken."""
        return self.level >= size - self.rate * _TICK_S

    def ready(self, size: int) -> float:
        """Return when `size` bytes can be taken."""
        return self.since + (size - self.level) / self.rate

    def take(self, request: Request) -> None:
        """Take what a request asks for; without a limit there is nothing to take."""
        if self.rate < inf:
            self.level -= request.size_bytes
            self.takers.add(request)

    def give_back(self, request: Request, moved: int, now: float) -> None:
        """Hear what a request moved; the rest, if it was taken here, is back."""
        if request in self.takers:
            self.takers.remove(request)
            self.settle(now)
            self.level += request.size_bytes - moved


class Limiter:
    """Lets requests go first come, first served, within limits."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self._unlimited = limits == Limits()
        self.wake_s = inf
        self._total = _Pool(limits.total, now)
        self._own = {kind: _Pool(getattr(limits, kind), now) for kind in KINDS}
        self._pools = (self._total, *self._own.values())
        self._lanes: dict[Kind, deque[tuple[int, Request]]]
        self._lanes = {kind: deque() for kind in KINDS}
        self._arrived = 0

    @property
    def is_open(self) -> bool:
        """Whether all may pass: there is no limit, and nobody waits for one."""
        return self._unlimited and not self.waiting

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return len(self._lanes["read"]) + len(self._lanes["write"])

    def change(self, limits: Limits, now: float) -> None:
        """Set other limits; they hold for those who wait, too."""
        self.limits = limits
        self._unlimited = limits == Limits()
        self._total.change(limits.total, now)
        for kind, pool in self._own.items():
            pool.change(getattr(limits, kind), now)

    def arrive(self, request: Request, now: float) -> None:
        """Take a request in; before it, what nobody waited for is lost."""
        for pool in self._pools:
            pool.settle(now)
        self._arrived += 1
        self._lanes[request.kind].append((self._arrived, request))

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests that may go now, and set when to ask again."""
        for pool in self._pools:
            pool.settle(now)
        gone = []
        while (request := self._next()) is not None:
            gone.append(request)
        return gone

    def complete(self, request: Request, moved: int, now: float) -> None:
        """Give back what a request took and did not use: end of file, an error."""
        for pool in (self._own[request.kind], self._total):
            pool.give_back(request, moved, now)

    def _next(self) -> Request | None:
        """Take out a request that may go; note what those wait for who may not."""
        self.wake_s = inf
        for pool in self._pools:
            pool.release()
        for lane in sorted(filter(None, self._lanes.values()), key=lambda x: x[0][0]):
            request = lane[0][1]
            missing = self._missing(request)
            if not missing:
                self._take(request)
                lane.popleft()
                return request
            if missing == [self._total]:
                break
        return None

    def _missing(self, request: Request) -> list[_Pool]:
        """Return the pools that a request waits for; what the other has is kept."""
        size, missing = request.size_bytes, []
        for pool in (self._own[request.kind], self._total):
            if pool.has(size):
                pool.kept = max(pool.kept, size)
            else:
                pool.awaited = True
                self.wake_s = min(self.wake_s, pool.ready(size))
                missing.append(pool)
        return missing

    def _take(self, request: Request) -> None:
        for pool in (self._own[request.kind], self._total):
            pool.take(request)
