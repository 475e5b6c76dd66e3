# SPDX-License-Identifier: MIT
"""Groups of client processes that issue requests at a given rate.

In a group of n processes with the total rate r, every process issues a request of size
s every n s / r seconds. In a *closed* loop a process also waits for the answer to its
last request, like a program with blocking calls. In an *open* loop it does not wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from penstock.errors import InputError

__all__ = [
    "KB",
    "MB",
    "Clients",
    "RateSegment",
    "btio_large",
    "btio_small",
    "on_off",
    "ramp",
    "saturating",
    "steady",
]

KB: Final = 1_000
MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RateSegment:
    """An interval in which a group issues requests, at a constant or linear rate."""

    begin: float
    """Begin of the interval (s)."""
    end: float
    """End of the interval (s)."""
    rate: float
    """Rate at the begin (bytes/s); inf: as fast as answers arrive."""
    last_rate: float | None = None
    """Rate at the end (bytes/s); None: the rate is constant."""

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.end:
            raise InputError(
                f"the interval from {self.begin!r} to {self.end!r} s is empty",
                remedy="give an end that is later than the begin",
            )
        changes = self.last_rate is not None
        if not self.rate > 0 or (changes and not self._is_ramp()):
            raise InputError(
                f"the rate changes from {self.rate!r} to {self.last_rate!r} bytes/s",
                remedy="give positive rates; a rate that changes must be finite",
            )

    def _is_ramp(self) -> bool:
        last = self.last_rate or 0.0
        return self.rate < inf and 0 < last < inf and self.end < inf

    def rate_at(self, time: float) -> float:
        """Return the rate (bytes/s) at a time of the interval."""
        if self.last_rate is None:
            return self.rate
        done = (time - self.begin) / (self.end - self.begin)
        return self.rate + done * (self.last_rate - self.rate)


@dataclass(frozen=True, slots=True)
class Clients:
    """A group of processes of one application."""

    application: str
    processes: int
    size: int
    """Size of a request (bytes)."""
    segments: tuple[RateSegment, ...]
    closed: bool = True
    """True: a process waits for its last answer before it issues the next request."""
    jitter: float = 0.0
    """Relative variation of the time between requests, uniformly distributed."""
    servers: tuple[int, ...] = (0,)
    """Servers that hold the files of the group."""
    stripe: int | None = None
    """Stripe size (bytes); None: every request goes to one server as a whole."""
    node: int = 0
    """Client node of the group; counts if every node has its own scheduler."""

    def __post_init__(self) -> None:
        where = f"clients of {self.application}"
        # With size 0 there would be no time between requests, and no end of them.
        if self.processes < 1 or self.size < 1 or not self.servers or not self.segments:
            raise InputError(
                "no process, size, server or segment",
                where=where,
                remedy="give at least one of each",
            )
        if not 0 <= self.jitter <= 1:
            raise InputError(
                f"{self.jitter!r} is not a jitter", where=where, remedy="give 0 to 1"
            )
        if self.stripe is not None and self.stripe < 1:
            raise InputError(
                f"{self.stripe!r} bytes are not a stripe",
                where=where,
                remedy="give at least 1",
            )
        if not self.closed and any(segment.rate == inf for segment in self.segments):
            raise InputError(
                "an open loop needs a finite rate",
                where=where,
                remedy="give a rate",
            )

    def first(self, process: int, after: float) -> tuple[float, RateSegment] | None:
        """Return when a process issues its first request at or after a time (s).

        Also return the segment of that request. Processes begin a segment one after the
        other, evenly distributed over one period.
        """
        for segment in self.segments:
            if after < segment.end:
                begin = segment.begin + self.period(segment, segment.begin) * (
                    process / self.processes
                )
                time = max(begin, after)
                if time < segment.end:
                    return time, segment
        return None

    def period(self, segment: RateSegment, time: float) -> float:
        """Return the time (s) between two requests of one process."""
        return self.processes * self.size / segment.rate_at(time)

    def pieces(self, number: int) -> dict[int, int]:
        """Return the bytes of request `number` (0, 1, ...) by server.

        Consecutive requests are consecutive in a file that is striped over the servers.
        """
        if self.stripe is None:
            return {self.servers[number % len(self.servers)]: self.size}
        return self._striped(number * self.size, self.stripe)

    def _striped(self, offset: int, stripe: int) -> dict[int, int]:
        parts: dict[int, int] = {}
        left = self.size
        while left > 0:
            size = min(left, stripe - offset % stripe)
            server = self.servers[offset // stripe % len(self.servers)]
            parts[server] = parts.get(server, 0) + size
            offset += size
            left -= size
        return parts


def steady(
    application: str,
    rate: float,
    end: float,
    *,
    processes: int = 32,
    size: int = MB,
    begin: float = 0.0,
) -> Clients:
    """Return an IOR-like group with a constant rate (bytes/s) until `end` (s)."""
    return Clients(application, processes, size, (RateSegment(begin, end, rate),))


def saturating(
    application: str, end: float, *, processes: int = 32, size: int = MB
) -> Clients:
    """Return a group that issues requests as fast as answers arrive."""
    return steady(application, inf, end, processes=processes, size=size)


def ramp(
    application: str,
    first: float,
    last: float,
    end: float,
    *,
    processes: int = 32,
    size: int = MB,
) -> Clients:
    """Return a group whose rate (bytes/s) changes linearly from first to last."""
    return Clients(application, processes, size, (RateSegment(0.0, end, first, last),))


def on_off(
    application: str,
    rate: float,
    period: float,
    end: float,
    *,
    processes: int = 32,
    size: int = MB,
) -> Clients:
    """Return a group that alternates between issuing and pausing, a period (s) each."""
    segments = []
    begin = 0.0
    while begin < end:
        segments.append(RateSegment(begin, min(begin + period, end), rate))
        begin += 2 * period
    return Clients(application, processes, size, tuple(segments))


def btio_large(end: float, *, processes: int = 16) -> Clients:
    """Return a BTIO-like group with requests of 1 MB (collective buffering)."""
    return saturating("btio", end, processes=processes, size=MB)


def btio_small(end: float, *, processes: int = 4, size: int = 600) -> Clients:
    """Return a BTIO-like group with requests of a few hundred bytes."""
    return replace(saturating("btio", end, processes=processes), size=size)
