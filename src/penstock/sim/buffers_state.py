# SPDX-License-Identifier: MIT
"""Writers, operations and flows of `penstock.sim.buffers` as they stand at an instant.

Remaining volumes are kept lazily, as in the engine: what was left when the rate last
changed, from which the present value follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from penstock.sim.buffers_model import Act, Writer

__all__ = ["Flow", "Operation", "Phase", "Phases", "WriteRequest", "Writing"]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write."""

    posted: float
    """When the writer wanted to write (s)."""
    done: float
    """When it could go on (s)."""
    volume: float
    """Bytes."""
    staged: bool


@dataclass(slots=True, eq=False)
class Flow:
    """What an operation sends to one target, or to a buffer (target -1)."""

    target: int
    unit: float
    """Bytes in one unit of its volume: 1, or its cap where time is shared."""
    cap: float
    """In units per second."""
    volume: float
    remaining_then: float
    since: float
    rate: float = 0.0
    completion: float = inf
    done: bool = False

    def remaining(self, now: float) -> float:
        """Return what is left, in units."""
        if self.done:
            return 0.0
        return max(self.remaining_then - self.rate * (now - self.since), 0.0)

    def hold(self, rate: float, now: float) -> None:
        """Go on at `rate`; one that does not change changes nothing."""
        if rate == self.rate:
            return
        self.remaining_then = self.remaining(now)
        self.since, self.rate = now, rate
        self.completion = now + self.remaining_then / rate if rate > 0 else inf

    def finish(self) -> None:
        """End it."""
        self.done, self.rate, self.completion = True, 0.0, inf


@dataclass(slots=True, eq=False)
class Operation:
    """A request, or a drain of all that was staged."""

    posted: float
    volume: float
    flows: list[Flow]
    staged: bool = False
    limit: float = inf
    """Most that it may draw (bytes/s); 0 for a drain whose turn is over."""

    @property
    def is_done(self) -> bool:
        """Whether all its flows are done."""
        return all(flow.done for flow in self.flows)

    def remaining(self, now: float) -> float:
        """Return what is left (bytes)."""
        return sum(f.unit * f.remaining(now) for f in self.flows)

    def share(self) -> float:
        """Return the mean over its flows of rate / cap."""
        return sum(f.rate / f.cap for f in self.flows) / len(self.flows)


@dataclass(slots=True, eq=False)
class Writing:
    """A writer as it stands."""

    writer: Writer
    number: int
    position: int = -1
    until: float = inf
    """End of its work (s)."""
    wants: float = 0.0
    """Request that has not begun (bytes)."""
    wanted_since: float = 0.0
    write: Operation | None = None
    drain: Operation | None = None
    waiting: float = 0.0
    """Staged and in no drain yet (bytes)."""
    began: float = inf
    turn_began: float = inf
    turn_ended: float = -inf
    work_before: float = 0.0
    iterations: int = 0
    iteration_time: float = 0.0
    lost: float = 0.0
    through: float = 0.0
    drained: float = 0.0
    most_staged: float = 0.0
    phases: list[tuple[float, float]] = field(default_factory=list)
    requests: list[WriteRequest] = field(default_factory=list)

    @property
    def act(self) -> Act | None:
        """What it is doing; None before it starts and after its end."""
        if 0 <= self.position < len(self.writer.steps):
            return self.writer.steps[self.position].act
        return None

    @property
    def is_over(self) -> bool:
        """Whether it has done all its steps."""
        return self.position == len(self.writer.steps)

    @property
    def waits(self) -> bool:
        """Whether it wants to write and has not begun, or is in fsync or close."""
        return self.wants > 0 or self.act in (Act.SYNC, Act.CLOSE)

    def staged(self, now: float) -> float:
        """Return what its buffer holds (bytes)."""
        return self.waiting + (self.drain.remaining(now) if self.drain else 0.0)

    def operations(self) -> Iterator[Operation]:
        """Yield what it has under way."""
        if self.write:
            yield self.write
        if self.drain:
            yield self.drain


@dataclass(frozen=True, slots=True)
class Phase:
    """What an I/O phase consists of."""

    volume: float = 0.0
    request: float = 0.0
    pause: float = 0.0


class Phases:
    """The I/O phases of a writer, by step."""

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
