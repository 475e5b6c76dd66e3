# SPDX-License-Identifier: MIT
"""The model of a simulation with burst buffers: storage, buffers and writers.

A writer is an application whose processes issue requests one after the other, with
pauses. All its processes do the same steps. Those of one node run in step. The nodes
begin together and drift apart if their pauses vary (`Writer.jitter`).

Times in seconds, volumes in bytes, bandwidths in bytes per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Self

from penstock.errors import InputError
from penstock.model.platform import check_targets

__all__ = ["Act", "Buffer", "Congestion", "OpenPhase", "Step", "Storage", "Writer"]


class Act(StrEnum):
    """What a writer does in one step."""

    WORK = "work"
    WRITE = "write"
    SYNC = "sync"
    """Wait until all that was written is on the storage (fsync)."""
    REOPEN = "reopen"
    """As `SYNC`, and close the files; the next write opens others. The I/O phase goes
    on."""
    CLOSE = "close"
    """As `SYNC`, and end the I/O phase; the next write begins a new one."""


class Step(NamedTuple):
    """One step of a writer."""

    act: Act
    amount: float = 0.0
    """Seconds of work, or bytes that all processes together write."""


@dataclass(frozen=True, slots=True)
class Congestion:
    """Capacity that a storage target loses when many requests wait for it.

    With n waiting requests, 1 / (1 + loss (n / reference_requests)^exponent) of it is
    left. The formula means something only in the range of n in which its numbers were
    fitted (for burst-buffer coordination: 256 to 512). Beyond it the loss grows without
    a limit: with an exponent of 8, twice the requests cost 256 times as much.
    """

    loss: float = 0.0
    """Loss with `reference_requests` waiting requests; 0: nothing is ever lost."""
    reference_requests: float = 1.0
    exponent: float = 1.0
    """The larger, the later and the steeper the loss sets in."""

    def __post_init__(self) -> None:
        if not 0 <= self.loss < math.inf:
            raise InputError(
                f"{self.loss!r} is out of range", where="loss", remedy="give 0 or more"
            )
        positive = "give a number above 0"
        _positive("reference_requests", self.reference_requests, positive)
        _positive("exponent", self.exponent, "give a number above 0")

    def efficiency(self, waiting: float) -> float:
        """Return the part of the capacity that is left with `waiting` requests."""
        if self.loss == 0.0:
            return 1.0
        crowding: float = (waiting / self.reference_requests) ** self.exponent
        return 1.0 / (1.0 + self.loss * crowding)


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
    congestion: Congestion = field(default_factory=Congestion)
    """What waiting requests cost beyond sharing; default: nothing."""

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

    speed_bytes_per_s: float
    """Speed of the buffer of one node, or of the shared one (bytes/s)."""
    capacity_bytes: float = math.inf
    """Capacity of the buffer of one node, or of the shared one (bytes)."""
    shared: bool = False
    """True: one buffer for all. False: an application has those of its nodes."""
    inline: bool = False
    """True: an application flushes by itself, as with BBIO (burst-buffer coordination,
    section IV): its buffer is drained only while it waits, and it waits until the
    buffer is empty. False: the buffer is drained while the application goes on."""
    gain: float = 1.0
    """Storage time of writes divided by that of draining the same bytes (1.3: a drain
    is 1.3 times as fast). A journal combines contiguous requests into larger ones."""

    def __post_init__(self) -> None:
        _positive("speed_bytes_per_s", self.speed_bytes_per_s, "give bytes per second")
        _positive("gain", self.gain, "give a number above 0")
        if not self.capacity_bytes > 0:
            raise InputError(
                f"{self.capacity_bytes!r} is not a capacity",
                where="capacity_bytes",
                remedy="give bytes, more than 0",
            )

    def check(self, writers: tuple[Writer, ...]) -> None:
        """Raise `InputError` if a request can never be staged."""
        for number, writer in enumerate(writers):
            nodes = 1 if self.shared else writer.nodes
            room = nodes * self.capacity_bytes
            if writer.largest > room:
                raise InputError(
                    f"a request of {writer.largest:g} bytes does not fit into a buffer "
                    f"of {room:g}",
                    where=f"writers[{number}] ({writer.name})",
                    remedy="give it a larger buffer, or let it write smaller requests",
                )


@dataclass(frozen=True, slots=True)
class OpenPhase:
    """An I/O phase that has begun before the first step of its writer.

    The steps of the writer are those that are left.
    """

    began_s: float
    """When it began (s)."""
    written_bytes: float = 0.0
    """What was written before the start."""
    staged_bytes: float = 0.0
    """What the buffer of the writer holds at the start."""
    is_writing: bool = False
    """True if the first step is what is left of a request that goes to the storage,
    whatever the strategy orders."""
    targets: tuple[int, ...] = ()
    """Where that request goes; if the writer does not redirect, where its files are.
    None: as the strategy orders."""


@dataclass(frozen=True, slots=True)
class Writer:
    """An application that writes: its steps, in order, which all its processes do."""

    name: str
    steps: tuple[Step, ...]
    start_s: float = 0.0
    """When its first step begins (s)."""
    nodes: int = 1
    processes: int = 1
    """Its processes, equally many on every node; each issues one request at a time."""
    jitter: float = 0.0
    """Relative variation of the work of each node, uniformly distributed."""
    seed: int = 0
    """For the variation; writers with the same seed vary alike."""
    limit_bytes_per_s: float = math.inf
    """Most that its own nodes can draw (bytes/s)."""
    priority: float = 0.0
    """For strategies with ``flush=priority``; the highest goes first."""
    redirects: bool = True
    """True: every request goes to the targets that the strategy chooses now. False:
    its files stay on the targets that were chosen when it opened them."""
    merges: bool = False
    """For a writer that redirects. True: what it has written to other targets than
    those of its open files is written once more, to these, when it closes or syncs
    them, or when the targets change again (as the preload library does). Files that
    have just been opened stay on their targets: see `penstock.staging.redirection`."""
    by_file: bool = False
    """For a writer that redirects. True: it has one open file for every process on each
    of the targets on which it opens them, and redirects a file as a whole. So n files
    use n other targets at most, and evenly only if n is a multiple of their number.
    False: what it redirects is striped over all targets."""
    opened_s: float | None = None
    """When it opens its files (s), if before the first write. For partitions: a writer
    that does not redirect keeps the targets of this moment."""
    open_phase: OpenPhase | None = None
    """The I/O phase in which it is at the start; None: in none."""
    foreseen: bool = True
    """False: strategies do not know when its first I/O phase will begin."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.start_s):
            raise InputError(
                f"{self.start_s!r} is not a time",
                where="start_s",
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
        _positive(
            "limit_bytes_per_s",
            self.limit_bytes_per_s,
            "give bytes per second",
            finite=False,
        )
        if not 0 <= self.jitter <= 1:
            raise InputError(
                f"{self.jitter!r} is not a jitter", where="jitter", remedy="give 0 to 1"
            )
        if self.opened_s is not None and not self.opened_s <= self.start_s:
            raise InputError(
                f"{self.opened_s!r} is after the start",
                where="opened_s",
                remedy="give a time up to the start, or None",
            )
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
    def keeps_targets(self) -> bool:
        """True if it matters on which targets it has opened its files."""
        return self.merges or self.by_file or not self.redirects

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
