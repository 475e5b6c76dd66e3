# SPDX-License-Identifier: MIT
"""The model of a simulation with burst buffers: storage, buffers and writers.

Times in seconds, volumes in bytes, bandwidths in bytes per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Self

from penstock.errors import InputError
from penstock.model.platform import check_targets

__all__ = ["Act", "Buffer", "Step", "Storage", "Writer"]


class Act(StrEnum):
    """What a writer does in one step."""

    WORK = "work"
    WRITE = "write"
    SYNC = "sync"
    """Wait until all that was written is on the storage (fsync)."""
    CLOSE = "close"
    """As `SYNC`, and end the I/O phase; the next write begins a new one."""


class Step(NamedTuple):
    """One step of a writer."""

    act: Act
    amount: float = 0.0
    """Seconds of work, or bytes to write."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Equal storage targets.

    Without a `profile` the rates on a target add up to its bandwidth at most (bandwidth
    sharing). With one, an application alone on n targets draws b(n), and the users of a
    target share its time (target allocation).
    """

    bandwidth: float
    """B of all targets together, without a profile (bytes/s)."""
    targets: int = 1
    profile: tuple[float, ...] = ()
    """b(1), b(2), ...: what an application draws alone on so many targets (bytes/s)."""
    efficiency: float = 1.0
    """Fraction of a target's capacity that is left when it serves several applications
    at the same time: the cost of interference beyond sharing."""

    def __post_init__(self) -> None:
        _positive("bandwidth", self.bandwidth, "give bytes per second")
        check_targets(self.targets)
        if self.profile and len(self.profile) != self.targets:
            raise InputError(
                f"{len(self.profile)} bandwidths for {self.targets} targets",
                where="profile",
                remedy="give one for every number of targets",
            )
        for value in self.profile:
            _positive("profile", value, "give bytes per second")
        if not 0 < self.efficiency <= 1:
            raise InputError(
                f"{self.efficiency!r} is out of range",
                where="efficiency",
                remedy="above 0, and 1 at most",
            )

    @property
    def target_bandwidth(self) -> float:
        """Bandwidth of one target (bytes/s)."""
        return self.bandwidth / self.targets

    def alone(self, targets: int, limit: float = math.inf) -> float:
        """Return what an application draws alone on some targets (bytes/s).

        `limit` is the most that its own nodes can draw (bytes/s).
        """
        most = targets * self.target_bandwidth
        return min(self.profile[targets - 1] if self.profile else most, limit)


@dataclass(frozen=True, slots=True)
class Buffer:
    """Burst buffers: one on every node, or one for all.

    Draining reads a buffer; the speed that this takes is neglected.
    """

    speed: float
    """Speed of the buffer of one node, or of the shared one (bytes/s)."""
    capacity: float = math.inf
    """Capacity of the buffer of one node, or of the shared one (bytes)."""
    shared: bool = False
    """True: one buffer for all. False: an application has those of its nodes."""
    inline: bool = False
    """True: an application flushes by itself, as with BBIO (burst-buffer coordination,
    section IV): its buffer is drained only while it waits, and it waits until the
    buffer is empty. False: the buffer is drained while the application goes on."""

    def __post_init__(self) -> None:
        _positive("speed", self.speed, "give bytes per second")
        if not self.capacity > 0:
            raise InputError(
                f"{self.capacity!r} is not a capacity",
                where="capacity",
                remedy="give bytes, more than 0",
            )

    def check(self, writers: tuple[Writer, ...]) -> None:
        """Raise `InputError` if a request can never be staged."""
        for number, writer in enumerate(writers):
            room = self.capacity if self.shared else writer.nodes * self.capacity
            if writer.largest > room:
                raise InputError(
                    f"a request of {writer.largest:g} bytes does not fit into a buffer "
                    f"of {room:g}",
                    where=f"writers[{number}] ({writer.name})",
                    remedy="give it a larger buffer, or let it write smaller requests",
                )


@dataclass(frozen=True, slots=True)
class Writer:
    """An application that writes: its steps, in order."""

    name: str
    steps: tuple[Step, ...]
    start: float = 0.0
    """When its first step begins (s)."""
    nodes: int = 1
    processes: int = 1
    limit: float = math.inf
    """Most that its own nodes can draw (bytes/s)."""
    priority: float = 0.0
    """For strategies with ``flush=priority``; the highest goes first."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.start):
            raise InputError(
                f"{self.start!r} is not a time",
                where="start",
                remedy="give a finite number of seconds",
            )
        if math.isnan(self.priority):
            raise InputError(
                "nan is not a priority", where="priority", remedy="give a number"
            )
        for name in ("nodes", "processes"):
            count = getattr(self, name)
            if type(count) is not int or count < 1:
                raise InputError(
                    f"{count!r} is out of range",
                    where=name,
                    remedy="a whole number, at least 1",
                )
        _positive("limit", self.limit, "give bytes per second", finite=False)
        for number, step in enumerate(self.steps):
            _check_step(step, f"steps[{number}]")
        self._check_closed()

    def _check_closed(self) -> None:
        """Raise `InputError` if a write is not followed by a close."""
        is_open = False
        for step in self.steps:
            if step.act in (Act.WRITE, Act.CLOSE):
                is_open = step.act is Act.WRITE
        if is_open:
            raise InputError(
                f"{self.name!r} writes and never closes",
                where=f"steps[{len(self.steps)}]",
                remedy="end its steps with a close",
            )

    @classmethod
    def of_requests(
        cls, name: str, count: int, size: float, delay: float = 0.0, **rest: object
    ) -> Self:
        """Return a writer of `count` requests of `size` bytes, `delay` s apart.

        It opens a file, writes and closes it: one I/O phase.
        """
        if count < 1:
            raise InputError(
                f"{count!r} requests", where="requests", remedy="at least 1"
            )
        write, pause = Step(Act.WRITE, size), Step(Act.WORK, delay)
        steps = (write, *(step for _ in range(count - 1) for step in (pause, write)))
        return cls(name, (*steps, Step(Act.CLOSE)), **rest)  # type: ignore[arg-type]

    @property
    def largest(self) -> float:
        """Size of its largest request (bytes); 0 if it writes nothing."""
        return max((s.amount for s in self.steps if s.act is Act.WRITE), default=0.0)


def _check_step(step: Step, where: str) -> None:
    low = 0.0 if step.act is not Act.WRITE else math.ulp(0.0)
    if not (math.isfinite(step.amount) and step.amount >= low):
        remedy = "give 0 s or more" if step.act is Act.WORK else "give bytes, above 0"
        raise InputError(
            f"{step.amount!r} is not an amount to {step.act}",
            where=where,
            remedy=remedy,
        )


def _positive(where: str, value: float, remedy: str, *, finite: bool = True) -> None:
    if not value > 0 or (finite and math.isinf(value)):
        raise InputError(f"{value!r} is out of range", where=where, remedy=remedy)
