# SPDX-License-Identifier: MIT
"""State of a simulation with burst buffers: writers, operations and flows.

The main loop in `penstock.sim.buffers` changes it. Times in seconds, volumes in bytes.

The remaining volume of a flow is kept lazily, as in the engine: a flow stores what was
left when its rate last changed, from which the present value follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from penstock.sim.buffers_model import Act, Writer

__all__ = ["Flow", "Operation", "Phase", "PhaseTable", "WriteRequest", "WriterState"]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write that is done."""

    posted: float
    """When the writer wanted to write (s)."""
    done: float
    """When the writer could go on (s)."""
    volume: float
    """Bytes."""
    staged: bool
    """True if it went to the buffer."""


@dataclass(slots=True, eq=False)
class Flow:
    """The part of an operation that goes to one target, or to a buffer (target -1).

    Its volume is counted in units: bytes, or seconds of the target's time where the
    users of a target share its time (`Storage.profile`).
    """

    target: int
    unit: float
    """Bytes in one unit."""
    cap: float
    """Most that it can draw (units/s)."""
    volume: float
    """Units."""
    remaining_then: float
    """Units that were left at `since`, when the rate last changed."""
    since: float
    rate: float = 0.0
    """Units/s."""
    completion: float = inf
    """When it ends at the present rate (s)."""
    done: bool = False

    def remaining(self, now: float) -> float:
        """Return what is left (units)."""
        if self.done:
            return 0.0
        return max(self.remaining_then - self.rate * (now - self.since), 0.0)

    def set_rate(self, rate: float, now: float) -> None:
        """Go on at `rate`. The same rate changes nothing, not even by rounding."""
        if rate == self.rate:
            return
        self.remaining_then = self.remaining(now)
        self.since, self.rate = now, rate
        self.completion = now + self.remaining_then / rate if rate > 0 else inf

    def finish(self) -> None:
        """Mark the flow as done."""
        self.done, self.rate, self.completion = True, 0.0, inf


@dataclass(slots=True, eq=False)
class Operation:
    """A write request, or a drain of all that was staged."""

    posted: float
    """When it began (s)."""
    volume: float
    """Bytes."""
    flows: list[Flow]
    staged: bool = False
    """True if it goes to the buffer."""
    limit: float = inf
    """Most that it may draw (bytes/s); 0 for a drain whose turn is over."""

    @property
    def is_done(self) -> bool:
        """True if all its flows are done."""
        return all(flow.done for flow in self.flows)

    def remaining(self, now: float) -> float:
        """Return what is left (bytes)."""
        return sum(f.unit * f.remaining(now) for f in self.flows)

    def share(self) -> float:
        """Return the mean over its flows of rate / cap."""
        return sum(f.rate / f.cap for f in self.flows) / len(self.flows)


@dataclass(slots=True, eq=False)
class WriterState:
    """Where a writer is in its steps, and what it has done so far."""

    writer: Writer
    number: int
    """Its index among the writers."""
    position: int = -1
    """Index of its present step; -1 before its start."""
    until: float = inf
    """When its present work ends (s)."""
    pending_bytes: float = 0.0
    """Request that has not begun (bytes); 0: none."""
    pending_since_s: float = 0.0
    """When that request arrived (s)."""
    write: Operation | None = None
    drain: Operation | None = None
    undrained_bytes: float = 0.0
    """Data that are staged and in no drain yet (bytes)."""
    phase_began: float = inf
    """When its I/O phase began (s); inf outside of phases."""
    turn_began: float = inf
    """When its turn to drain began (s); inf if it is not its turn."""
    turn_ended: float = -inf
    """When its last turn to drain ended (s)."""
    work_before: float = 0.0
    """Work since its last request (s)."""
    iterations: int = 0
    """Completed requests after the first one."""
    iteration_time: float = 0.0
    """Time that those iterations take alone (s)."""
    lost: float = 0.0
    """Time spent waiting for I/O beyond what it takes alone (s)."""
    through: float = 0.0
    """Data written through (bytes)."""
    drained: float = 0.0
    """Data staged and drained (bytes)."""
    most_staged: float = 0.0
    """Most that its buffer held at a time (bytes)."""
    phases: list[tuple[float, float]] = field(default_factory=list)
    """Begin and end of its I/O phases so far (s)."""
    requests: list[WriteRequest] = field(default_factory=list)

    @property
    def act(self) -> Act | None:
        """What it is doing; None before its start and after its end."""
        if 0 <= self.position < len(self.writer.steps):
            return self.writer.steps[self.position].act
        return None

    @property
    def is_over(self) -> bool:
        """True if it has done all its steps."""
        return self.position == len(self.writer.steps)

    @property
    def waits(self) -> bool:
        """True if a request has not begun, or it is in fsync or close."""
        return self.pending_bytes > 0 or self.act in (Act.SYNC, Act.CLOSE)

    def staged(self, now: float) -> float:
        """Return what its buffer holds (bytes)."""
        return self.undrained_bytes + (self.drain.remaining(now) if self.drain else 0.0)

    def operations(self) -> Iterator[Operation]:
        """Yield its operations that are under way."""
        if self.write:
            yield self.write
        if self.drain:
            yield self.drain


@dataclass(frozen=True, slots=True)
class Phase:
    """An I/O phase of a writer, as its steps describe it."""

    volume: float = 0.0
    """Bytes."""
    request: float = 0.0
    """Mean size of a request (bytes)."""
    pause: float = 0.0
    """Mean time between two requests (s)."""


class PhaseTable:
    """The I/O phase to which each step of a writer belongs."""

    def __init__(self, writer: Writer) -> None:
        self._by_step: list[Phase] = []
        self.writes = 0
        steps = list(writer.steps)
        begin = 0
        for number, step in enumerate(steps, 1):
            if step.act is Act.CLOSE or number == len(steps):
                self._add([(s.act, s.amount) for s in steps[begin:number]])
                begin = number

    def _add(self, steps: list[tuple[Act, float]]) -> None:
        writes = [amount for act, amount in steps if act is Act.WRITE]
        acts = [act for act, _ in steps]
        first = acts.index(Act.WRITE) if writes else len(steps)
        work = sum(amount for act, amount in steps[first:] if act is Act.WORK)
        count = len(writes)
        mean = sum(writes) / count if count else 0.0
        phase = Phase(sum(writes), mean, work / max(count - 1, 1))
        self._by_step += [phase] * len(steps)
        self.writes += count

    def at(self, position: int) -> Phase:
        """Return the phase to which a step belongs; the last one after the end."""
        if not self._by_step:
            return Phase()
        return self._by_step[min(max(position, 0), len(self._by_step) - 1)]
