# SPDX-License-Identifier: MIT
"""Programs that issue requests: processes, how fast, how large, on which servers.

A group of n processes that issues at a rate r has processes that issue a request of
size s every n s / r. In a *closed* loop a process also waits for its last request to be
answered, as a program with blocking calls does; in an *open* one it does not.
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
    """A time in which a group issues, at a rate that may change linearly."""

    begin: float
    """From when (s)"""
    end: float
    """until when (s)."""
    rate: float
    """At its begin (bytes/s); inf: as fast as answers come."""
    last_rate: float | None = None
    """At its end (bytes/s); None: the same."""

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.end:
            raise InputError(
                f"a stage from {self.begin!r} to {self.end!r} s",
                remedy="let it end after it begins",
            )
        changes = self.last_rate is not None
        if not self.rate > 0 or (changes and not self._is_ramp()):
            raise InputError(
                f"a rate of {self.rate!r} to {self.last_rate!r} bytes/s",
                remedy="give positive rates, finite ones where it changes",
            )

    def _is_ramp(self) -> bool:
        last = self.last_rate or 0.0
        return self.rate < inf and 0 < last < inf and self.end < inf

    def rate_at(self, time: float) -> float:
        """Return the rate (bytes/s) at some time of the stage."""
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
    """Of a request (bytes)."""
    stages: tuple[RateSegment, ...]
    closed: bool = True
    """Whether a process waits for its last answer before it goes on."""
    jitter: float = 0.0
    """Times between requests vary by this share, uniformly."""
    servers: tuple[int, ...] = (0,)
    """Those that its files lie on."""
    stripe: int | None = None
    """Bytes on one server before the next has its turn; None: a request is whole."""

    def __post_init__(self) -> None:
        where = f"clients of {self.application}"
        # Without a size there is no time between requests: they would never end.
        if self.processes < 1 or self.size < 1 or not self.servers or not self.stages:
            raise InputError("no process, size, server or stage", where=where)
        if not 0 <= self.jitter <= 1:
            raise InputError(
                f"a jitter of {self.jitter!r}", where=where, remedy="give 0 to 1"
            )
        if self.stripe is not None and self.stripe < 1:
            raise InputError(
                f"a stripe of {self.stripe!r} bytes", where=where, remedy="at least 1"
            )
        if not self.closed and any(stage.rate == inf for stage in self.stages):
            raise InputError(
                "an open loop as fast as possible never ends",
                where=where,
                remedy="give a rate",
            )

    def first(self, process: int, after: float) -> tuple[float, RateSegment] | None:
        """Return when a process issues first at or after a time (s), and the stage.

        Processes begin a stage one after the other, evenly over one period.
        """
        for stage in self.stages:
            if after < stage.end:
                begin = stage.begin + self.period(stage, stage.begin) * (
                    process / self.processes
                )
                time = max(begin, after)
                if time < stage.end:
                    return time, stage
        return None

    def period(self, stage: RateSegment, time: float) -> float:
        """Return the time (s) between two requests of one process."""
        return self.processes * self.size / stage.rate_at(time)

    def pieces(self, number: int) -> dict[int, int]:
        """Return the bytes of request `number` (0, 1, ...) by server.

        Requests lie one after the other in a file that is dealt out in stripes.
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
    """Return an IOR-like group that issues at one rate (bytes/s), until `end` (s)."""
    return Clients(application, processes, size, (RateSegment(begin, end, rate),))


def saturating(
    application: str, end: float, *, processes: int = 32, size: int = MB
) -> Clients:
    """Return a group that issues as fast as answers come."""
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
    """Return a group that issues for a period (s), is off for one, and so on."""
    stages = []
    begin = 0.0
    while begin < end:
        stages.append(RateSegment(begin, min(begin + period, end), rate))
        begin += 2 * period
    return Clients(application, processes, size, tuple(stages))


def btio_large(end: float, *, processes: int = 16) -> Clients:
    """Return a BTIO-like group with requests of 1 MB (collective buffering)."""
    return saturating("btio", end, processes=processes, size=MB)


def btio_small(end: float, *, processes: int = 4, size: int = 600) -> Clients:
    """Return a BTIO-like group with requests of some hundred bytes."""
    return replace(saturating("btio", end, processes=processes), size=size)
