# SPDX-License-Identifier: MIT
"""Requests that wait for a storage target.

All requests of one application on a target get the same rate. `TargetQueue` therefore
keeps one number for all: the service that one process would have been given so far.
A request that needs u units is done when this number has grown by u. An arrival, an end
and a change of the rate then cost O(log n) for n waiting requests.

The units are bytes, or seconds of the target's time where the users of a target share
its time (`Storage.profile`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.sim.buffers.state import ProcessGroup

__all__ = ["Operation", "Part", "TargetQueue"]


@dataclass(slots=True, eq=False)
class Operation:
    """A write request of a group of processes, or a drain of all that it has staged."""

    group: ProcessGroup
    posted: float
    """When it began (s)."""
    volume: float
    """Bytes of all processes of the group."""
    unit: float = 1.0
    """Bytes in one unit of service."""
    width: float = 1.0
    """Number of targets over which it is striped; sum of `Part.weight` over them."""
    staged: bool = False
    """True if it goes to the buffer."""
    parts: list[Part] = field(default_factory=list)
    """What is not done yet, by region."""
    is_stopped: bool = False
    """True for a drain whose turn is over."""

    def remaining(self, now: float) -> float:
        """Return what is left (bytes)."""
        left = sum(p.targets * p.weight * p.remaining(now) for p in self.parts)
        return self.group.processes * self.unit * left

    def rate(self) -> float:
        """Return the present rate (bytes/s)."""
        if self.is_stopped:
            return 0.0
        rates = sum(p.targets * p.weight * p.queue.rate for p in self.parts)
        return self.group.processes * self.unit * rates

    def share(self) -> float:
        """Return the mean over its targets of the rate over the demanded one."""
        if self.is_stopped:
            return 0.0
        shares = sum(p.targets * p.weight * p.queue.share for p in self.parts)
        return shares / self.width


@dataclass(slots=True, eq=False)
class Part:
    """The part of an operation that goes to the targets of one region."""

    operation: Operation
    queue: TargetQueue
    targets: int
    """Number of targets of the region."""
    need: float
    """Units that one process needs on one target from the moment it enters."""
    weight: float = 1.0
    """Requests of every process that wait for each of these targets."""
    finish: float = inf
    """Value of the queue's `served` at which it is done."""

    def remaining(self, now: float) -> float:
        """Return what one process still needs on one target (units)."""
        if self.operation.is_stopped:
            return self.need
        return max(self.finish - self.queue.served_at(now), 0.0)


class TargetQueue:
    """The requests of one application that wait for the targets of one region."""

    __slots__ = (
        "_order",
        "_parts",
        "_served",
        "_since",
        "cap",
        "completion",
        "entry",
        "limit",
        "rate",
        "request_cap",
        "share",
        "weight",
        "weighted_share",
    )

    def __init__(self, entry: int) -> None:
        self.entry = entry
        """Entry i: the writes of application i; K + i: its drains."""
        self.cap = 0.0
        """Most that the application can draw from a target (units/s)."""
        self.request_cap = 0.0
        """Most that one of its processes can draw from a target (units/s)."""
        self.limit = inf
        """Most that a strategy lets it draw from a target (units/s)."""
        self.weight = 0.0
        """Processes that wait."""
        self.weighted_share = 0.0
        """Processes that wait, each times the part of its targets in this region."""
        self.rate = 0.0
        """Rate of one process on one target (units/s)."""
        self.share = 0.0
        """The rate over the demanded one."""
        self.completion = inf
        """When the next request is done at the present rate (s)."""
        self._served, self._since = 0.0, 0.0
        self._order = 0
        self._parts: list[tuple[float, int, Part]] = []

    def demand(self) -> float:
        """Return what its processes could draw now (units/s)."""
        return min(self.weight * self.request_cap, self.cap, self.limit)

    def served_at(self, now: float) -> float:
        """Return what a process that always waited would have been given (units)."""
        return self._served + self.rate * (now - self._since)

    def add(self, part: Part, now: float) -> None:
        """Let a part wait."""
        if not self._parts:
            self._served, self._since = 0.0, now
        part.finish = self.served_at(now) + part.need
        self._order += 1
        heappush(self._parts, (part.finish, self._order, part))
        self._count(part, 1.0)

    def remove(self, part: Part, now: float) -> None:
        """Take a part out before it is done; `part.need` is what it still needs."""
        part.need = part.remaining(now)
        self._parts = [item for item in self._parts if item[2] is not part]
        heapify(self._parts)
        self._count(part, -1.0)
        self._stop_if_empty()

    def _count(self, part: Part, sign: float) -> None:
        operation = part.operation
        processes = sign * operation.group.processes * part.weight
        self.weight += processes
        self.weighted_share += processes * part.targets / operation.width

    def take_done(self, now: float, until: float) -> list[Part]:
        """Remove and return the parts that are done by `until`.

        Call it at the instant `now` to which `completion` belongs.
        """
        self._served, self._since = self._parts[0][0], now
        reached = self._served + self.rate * (until - now)
        done = []
        while self._parts and self._parts[0][0] <= reached:
            part = heappop(self._parts)[2]
            self._count(part, -1.0)
            done.append(part)
        self._stop_if_empty()
        return done

    def _stop_if_empty(self) -> None:
        if not self._parts:
            self.weight = self.weighted_share = 0.0
            self.rate, self.share, self.completion = 0.0, 0.0, inf

    def set_rate(self, total: float, now: float) -> None:
        """Serve the queue with `total` units/s per target from now on.

        The same rate changes nothing, not even by rounding.
        """
        rate = total / self.weight
        self.share = total / self.demand() if total > 0 else 0.0
        if rate != self.rate:
            self._served, self._since = self.served_at(now), now
            self.rate = rate
        left = self._parts[0][0] - self._served
        self.completion = self._since + max(left, 0.0) / rate if rate > 0 else inf

    def remaining(self, now: float) -> float:
        """Return what all its processes still need on one target (units)."""
        return sum(
            p.operation.group.processes * p.weight * p.remaining(now)
            for p in self.parts()
        )

    def volume(self) -> float:
        """Return the size of the waiting requests on one target (units)."""
        pairs = [(part.operation, part.weight) for part in self.parts()]
        return sum(o.volume * weight / o.width / o.unit for o, weight in pairs)

    def posted(self) -> float:
        """Return when the oldest waiting request was posted (s)."""
        return min(part.operation.posted for part in self.parts())

    def parts(self) -> list[Part]:
        """Return the parts that wait."""
        return [part for _, _, part in self._parts]
