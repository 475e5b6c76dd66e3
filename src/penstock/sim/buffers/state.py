# SPDX-License-Identifier: MIT
"""State of a simulation with burst buffers, and its result.

The main loop in `penstock.sim.buffers` changes it. Times in seconds, volumes in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from numpy.random import default_rng

from penstock.sim.buffers.model import Act, Writer
from penstock.sim.buffers.queue import Operation

__all__ = [
    "BufferedRun",
    "Phase",
    "PhaseTable",
    "ProcessGroup",
    "WriteRequest",
    "WriterState",
    "groups_of",
]


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write of a group of processes that is done."""

    posted: float
    """When the processes wanted to write (s)."""
    done: float
    """When the processes could go on (s)."""
    volume: float
    """Bytes of all processes of the group."""
    staged: bool
    """True if it went to the buffer."""
    group: int = 0
    """Number of its node, or 0 if all processes run in step."""


@dataclass(frozen=True, slots=True)
class BufferedRun:
    """Result of a simulation; tuples by writer."""

    strategy: str
    """Name of the strategy, with its parameters."""
    phases: tuple[tuple[tuple[float, float], ...], ...] = field(repr=False)
    """Begin and end of every I/O phase: from the first open to the last close (s)."""
    requests: tuple[tuple[WriteRequest, ...], ...] = field(repr=False)
    """Requests of each group of processes, in the order in which they were done."""
    through: tuple[float, ...]
    """Data written through (bytes)."""
    drained: tuple[float, ...]
    """Data staged and drained (bytes)."""
    most_staged: tuple[float, ...]
    """Most that the buffers held at a time (bytes)."""
    lost: tuple[float, ...]
    """Mean time that processes waited for I/O beyond what it takes alone (s)."""
    carried: tuple[float, ...]
    """Data written to each storage target (bytes); by target."""
    end_s: float
    """When the last writer ended (s)."""
    decisions: int
    """How often the strategy was asked."""
    warnings: tuple[str, ...]
    """Warnings of the strategy, each once."""

    @property
    def io_times(self) -> tuple[float, ...]:
        """Time in I/O phases, from open to close, pauses included (s)."""
        return tuple(sum(end - begin for begin, end in p) for p in self.phases)


@dataclass(slots=True, eq=False)
class ProcessGroup:
    """Processes of a writer that run in step: those of a node, or all."""

    application: WriterState
    number: int
    """Its index among the groups of the application."""
    nodes: int
    processes: float
    steps: tuple[tuple[Act, float], ...]
    """The steps of the writer, with the bytes of this group."""
    position: int = -1
    """Index of its present step; -1 before its start."""
    pending_bytes: float = 0.0
    """Request that has not begun (bytes); 0: none."""
    pending_since: float = 0.0
    """When that request arrived (s)."""
    write: Operation | None = None
    drain: Operation | None = None
    undrained_bytes: float = 0.0
    """Data that are staged and in no drain yet (bytes)."""
    is_syncing: bool = False
    """True if it waits in fsync or close until its data are drained."""
    phase: int = -1
    """Number of its present or last I/O phase."""
    in_phase: bool = False
    targets: tuple[int, ...] = ()
    """Targets of its open files, if it does not redirect, or merges."""
    opened_s: float = inf
    """When it opened these files (s)."""
    apart_bytes: float = 0.0
    """Data on other targets than those of its files, to be merged (bytes)."""
    apart_targets: tuple[int, ...] = ()
    """Targets of these data."""
    is_merging: bool = False
    """True if `write` merges such data."""
    write_targets: tuple[int, ...] = ()
    """Targets of its present or last request to the storage."""
    is_committed: bool = False
    """True if its next request goes to the storage, whatever the strategy orders."""
    work_ends_s: float = inf
    """When its present work ends (s); inf: it does not work."""

    @property
    def waits(self) -> bool:
        """True if a request has not begun, or it is in fsync or close."""
        return self.pending_bytes > 0 or self.is_syncing

    @property
    def has_staged(self) -> bool:
        """True if its buffer is not empty."""
        return self.undrained_bytes > 0 or self.drain is not None

    @property
    def redirected_files(self) -> int:
        """Its open files, if `write_targets` are not theirs; 0: data is striped."""
        is_whole = self.application.writer.by_file
        if not is_whole or self.write_targets == self.targets:
            return 0
        return round(self.processes) * len(self.targets)

    def open_files(self, targets: tuple[int, ...], now: float) -> None:
        """Open files on these targets, unless that was done before the first write."""
        app = self.application
        self.targets, self.opened_s = targets, now
        if app.targets and app.writer.opened_s is not None:
            self.targets, self.opened_s = app.targets, app.writer.opened_s

    def note_apart(self, volume: float) -> None:
        """Note a request that is done: perhaps its data must be merged later."""
        if self.application.writer.merges and self.write_targets != self.targets:
            self.apart_bytes += volume
            self.apart_targets = self.write_targets

    def staged(self, now: float) -> float:
        """Return what its buffer holds (bytes)."""
        return self.undrained_bytes + (self.drain.remaining(now) if self.drain else 0.0)


@dataclass(slots=True, eq=False)
class WriterState:
    """What the processes of a writer have done so far, taken together."""

    writer: Writer
    number: int
    """Its index among the writers."""
    groups: list[ProcessGroup] = field(default_factory=list)
    holders: dict[ProcessGroup, None] = field(default_factory=dict)
    """Groups with staged data, in the order in which they began to stage."""
    undrained_bytes: float = 0.0
    """Data of all groups that are staged and in no drain yet (bytes)."""
    drains: dict[ProcessGroup, Operation] = field(default_factory=dict)
    """Drains that have begun, by group."""
    waiting: float = 0.0
    """Processes that wait for a write to the storage, or in fsync or close."""
    syncing: int = 0
    """Groups that wait in fsync or close."""
    is_turn_due: bool = True
    """True if something changed that may begin or stop one of its drains."""
    turn_began: float = inf
    """When its turn to drain began (s); inf if it is not its turn."""
    turn_ended: float = -inf
    """When its last turn to drain ended (s)."""
    targets: tuple[int, ...] = ()
    """Targets of files that were opened before the first write."""
    operations: int = 0
    """Completed requests of its first process."""
    work_before: float = 0.0
    """Work of its first process since that one's last request (s)."""
    iterations: int = 0
    """Completed requests of its first process after the first one."""
    iteration_time: float = 0.0
    """Time that those iterations take alone (s)."""
    lost: float = 0.0
    """Mean time that its processes waited for I/O beyond what it takes alone (s)."""
    written: float = 0.0
    """Data written in the present I/O phase, through or staged (bytes)."""
    through: float = 0.0
    """Data written through (bytes)."""
    drained: float = 0.0
    """Data staged and drained (bytes)."""
    most_staged: float = 0.0
    """Most that its buffers held at a time (bytes)."""
    phases: list[tuple[float, float]] = field(default_factory=list)
    """Begin and end of its I/O phases so far (s)."""
    requests: list[WriteRequest] = field(default_factory=list)
    _opened: list[float] = field(default_factory=list)
    """When each phase began (s)."""
    _closed: list[int] = field(default_factory=list)
    """How many groups have ended each phase."""

    @property
    def phase_began(self) -> float:
        """When its I/O phase began (s); inf outside of phases."""
        done = len(self.phases)
        return self._opened[done] if done < len(self._opened) else inf

    def open(self, group: ProcessGroup, now: float) -> None:
        """Begin the next I/O phase of a group: that of all, if it is the first."""
        group.phase += 1
        group.in_phase = True
        if group.phase == len(self._opened):
            self._opened.append(now)
            self._closed.append(0)

    def close(self, group: ProcessGroup, now: float) -> None:
        """End the I/O phase of a group: that of all, if it is the last one."""
        if not group.in_phase:
            return
        group.in_phase, group.targets = False, ()
        self._closed[group.phase] += 1
        if self._closed[group.phase] == len(self.groups):
            self.phases.append((self._opened[group.phase], now))
            self.targets, self.written = (), 0.0

    def resume(self) -> None:
        """Continue the I/O phase that has begun before the start, if there is one."""
        phase = self.writer.open_phase
        if phase is None:
            return
        part = 1.0 / len(self.groups)
        for group in self.groups:
            self.open(group, phase.began_s)
            group.is_committed, group.write_targets = phase.is_writing, phase.targets
            group.targets = phase.targets if self.writer.keeps_targets else ()
            group.opened_s = phase.began_s
            group.undrained_bytes = part * phase.staged_bytes
            if phase.staged_bytes > 0:
                self.holders[group] = None
        self.undrained_bytes = phase.staged_bytes
        self.written = phase.written_bytes

    def staged(self, now: float) -> float:
        """Return what its buffers hold (bytes)."""
        left = [drain.remaining(now) for drain in self.drains.values()]
        return max(self.undrained_bytes, 0.0) + sum(left)


def groups_of(application: WriterState) -> list[ProcessGroup]:
    """Return the groups of processes that run in step.

    Without jitter that is one group; with it, one per node, whose work differs.
    """
    writer = application.writer
    count = writer.nodes if writer.jitter > 0 else 1
    shape = count, len(writer.steps)
    spread = writer.jitter * default_rng(writer.seed).uniform(-1.0, 1.0, shape)
    return [
        ProcessGroup(
            application,
            number,
            nodes=writer.nodes // count,
            processes=writer.processes / count,
            steps=tuple(
                (act, amount / count if act is Act.WRITE else amount * factor)
                for (act, amount), factor in zip(writer.steps, factors, strict=True)
            ),
        )
        for number, factors in enumerate((1.0 + spread).tolist())
    ]


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
        self._steps = steps = list(writer.steps)
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

    def work_after_phase(self, position: int) -> float:
        """Return the work between the present or next phase and the one after it (s).

        inf: none follows.
        """
        for number in range(max(position, 0), len(self._steps)):
            if self._steps[number].act is Act.CLOSE:
                return self.work_before_write(number)
        return inf

    def work_before_write(self, position: int) -> float:
        """Return the work after a step until the next write (s); inf: none follows."""
        work_s = 0.0
        for act, amount in self._steps[position + 1 :]:
            if act is Act.WRITE:
                return work_s
            if act is Act.WORK:
                work_s += amount
        return inf

    def at(self, position: int) -> Phase:
        """Return the phase to which a step belongs; the last one after the end."""
        if not self._by_step:
            return Phase()
        return self._by_step[min(max(position, 0), len(self._by_step) - 1)]
