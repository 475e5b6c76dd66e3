# SPDX-License-Identifier: MIT
"""Storage with burst buffers: an exact fluid simulation of staging strategies.

Writers work, write, wait in fsync and close. A request goes to the storage, or to a
buffer, whence it is *drained*: a drain is an operation like any other, striped over
targets, whose flows share each target with those of the writers. Close and fsync wait
until nothing is staged. What happens at one instant, in this order:

1. the clock moves; flows that are done end, then work phases, by writer;
2. every writer goes on to its next step that takes time;
3. ONE decision of the staging strategy, which sees all of that. Requests that wait for
   it begin: where they go is settled for each request when it begins. An application
   with something staged stages on until its buffer is empty, so that what it wrote
   first gets to the storage first;
4. drains begin for those whose turn it is: all that is staged now, as one operation;
   those whose turn is over are held where they are;
5. ONE decision of the bandwidth-sharing policy for every target that was touched.

The loop is not that of `penstock.sim.engine`, which fixes all flows and their targets
before it starts and is compiled; here decisions make flows. Where nobody stages, both
give the same numbers, which a test checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import Final

from penstock.errors import InputError, PolicyError
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.sim.buffers_model import Act, Buffer, Storage, Writer
from penstock.sim.buffers_sharing import Columns, FlowDemand, share_target
from penstock.sim.buffers_state import Flow, Operation, Phases, WriteRequest, Writing
from penstock.staging import (
    ApplicationStatus,
    Situation,
    StagingOrder,
    Strategy,
    get_strategy,
)

__all__ = ["BufferedRun", "WriteRequest", "simulate_buffers"]

#: Relative rounding error granted when room in a buffer is compared with a request.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class BufferedRun:
    """What a simulation leaves behind; tuples by writer."""

    strategy: str
    """Name of the strategy, with its parameters."""
    phases: tuple[tuple[tuple[float, float], ...], ...] = field(repr=False)
    """Begin and end of every I/O phase: from open to close (s)."""
    requests: tuple[tuple[WriteRequest, ...], ...] = field(repr=False)
    through: tuple[float, ...]
    """What was written through (bytes)."""
    drained: tuple[float, ...]
    """What was staged and drained (bytes)."""
    most_staged: tuple[float, ...]
    """Most that a buffer held at a time (bytes)."""
    lost: tuple[float, ...]
    """Time spent waiting for I/O beyond what it takes alone (s)."""
    carried: tuple[float, ...]
    """By storage target: what was written there (bytes)."""
    end: float
    """When the last writer was done (s)."""
    decisions: int
    """How often the strategy was asked."""
    warnings: tuple[str, ...]
    """What the strategy warned of, each once."""

    @property
    def io_times(self) -> tuple[float, ...]:
        """Time in I/O phases, from open to close, pauses included (s)."""
        return tuple(sum(end - begin for begin, end in p) for p in self.phases)


def simulate_buffers(
    storage: Storage,
    writers: Sequence[Writer],
    strategy: Strategy | str = "none",
    buffer: Buffer | None = None,
    *,
    sharing: Policy | str = "fair-share",
    draining: Policy | str | None = None,
) -> BufferedRun:
    """Run `writers` until all are done.

    Parameters
    ----------
    buffer
        The burst buffers; without any, a strategy that stages is refused.
    sharing
        The policy of papers/1 that shares every target.
    draining
        The policy among drains, for strategies that let them have only what writers
        leave; default: `sharing`.
    """
    writers = tuple(writers)
    if not writers:
        raise InputError("no writer", where="writers", remedy="list at least one")
    if len({writer.name for writer in writers}) < len(writers):
        raise InputError(
            "two writers have the same name",
            where="writers",
            remedy="name each of them otherwise",
        )
    if buffer is not None:
        buffer.check(writers)
    sharing = get_policy(sharing) if isinstance(sharing, str) else sharing
    draining = get_policy(draining) if isinstance(draining, str) else draining
    return _Simulation(
        storage,
        writers,
        get_strategy(strategy) if isinstance(strategy, str) else strategy,
        buffer,
        sharing,
        draining or sharing,
    ).run()


class _Simulation:
    def __init__(
        self,
        storage: Storage,
        writers: tuple[Writer, ...],
        strategy: Strategy,
        buffer: Buffer | None,
        sharing: Policy,
        draining: Policy,
    ) -> None:
        self._storage, self._buffer, self._strategy = storage, buffer, strategy
        self._sharing, self._draining = sharing, draining
        self._all = [Writing(w, i) for i, w in enumerate(writers)]
        for it in self._all:
            it.until = it.writer.start
        self._now = min(w.start for w in writers)
        self._background = False
        self._wake = inf
        self._target_wakes = [inf] * storage.targets
        self._touched: set[int] = set()
        self._carried = [0.0] * storage.targets
        self._decisions = 0
        self._warnings: dict[str, None] = {}
        self._plans = [Phases(w) for w in writers]
        self._window = self._now, self._horizon(writers)

    def run(self) -> BufferedRun:
        # This is the main loop: one turn, one instant.
        while True:
            self._end_flows()
            for it in self._all:
                self._go_on(it)
            if all(it.is_over for it in self._all):
                return self._outcome()
            self._coordinate()
            self._share()
            self._advance(self._next_instant())

    # --- Time -------------------------------------------------------------------------

    def _next_instant(self) -> float:
        """Return when something happens next (s)."""
        instants = [self._wake, *self._target_wakes]
        instants += [it.until for it in self._all]
        instants += [flow.completion for flow in self._flows()]
        instants += [self._when_room(it) for it in self._all if it.wants]
        instant = min(instants)
        if instant == inf:
            waiting = [it.writer.name for it in self._all if not it.is_over]
            raise PolicyError(
                f"strategy {self._strategy.label} with policy {self._sharing.label} at "
                f"t = {self._now:g} s: {', '.join(waiting)} would wait for ever"
            )
        return instant

    def _advance(self, instant: float) -> None:
        """Move the clock; whoever waits for I/O loses what it does not get."""
        elapsed = instant - self._now
        for it in self._all:
            operation = self._waited_for(it)
            if operation is not None:
                it.lost += elapsed * (1.0 - operation.share())
            elif it.waits:
                it.lost += elapsed
        self._now = instant

    def _waited_for(self, it: Writing) -> Operation | None:
        """Return the operation on the storage that a writer waits for."""
        if it.write is not None:
            return None if it.write.staged else it.write
        return it.drain if it.waits else None

    def _flows(self) -> Iterator[Flow]:
        for it in self._all:
            for operation in it.operations():
                yield from operation.flows

    # --- 1, 2: what ends, and what follows --------------------------------------------

    def _end_flows(self) -> None:
        for it in self._all:
            for operation in list(it.operations()):
                self._end_flows_of(operation)
                if operation.is_done:
                    self._complete(it, operation)

    def _end_flows_of(self, operation: Operation) -> None:
        for flow in operation.flows:
            if flow.completion <= self._now:
                flow.finish()
                if flow.target >= 0:
                    self._touched.add(flow.target)
                    self._carried[flow.target] += flow.unit * flow.volume

    def _complete(self, it: Writing, operation: Operation) -> None:
        if operation is it.drain:
            it.drain = None
            it.drained += operation.volume
            return
        it.write = None
        if operation.staged:
            it.waiting += operation.volume
        else:
            it.through += operation.volume
        it.most_staged = max(it.most_staged, it.staged(self._now))
        it.requests.append(
            WriteRequest(it.wanted_since, self._now, operation.volume, operation.staged)
        )
        # As in the engine: operations before any work are not iterations.
        if it.iterations > 0 or it.work_before > 0:
            it.iterations += 1
            it.iteration_time += it.work_before + operation.volume / self._alone(it)
        it.work_before = 0.0
        self._next_step(it)

    def _go_on(self, it: Writing) -> None:
        """Pass everything that takes no time."""
        while not it.is_over:
            if it.act in (None, Act.WORK):
                if it.until > self._now:
                    return
                it.until = inf
            elif it.act is Act.WRITE or it.waiting > 0 or it.drain:
                return
            elif it.act is Act.CLOSE and it.began < inf:
                it.phases.append((it.began, self._now))
                it.began = inf
            self._next_step(it)

    def _next_step(self, it: Writing) -> None:
        it.position += 1
        if it.is_over:
            return
        act, amount = it.writer.steps[it.position]
        if act is Act.WORK:
            it.until = self._now + amount
            it.work_before += amount
        elif act is Act.WRITE:
            it.wants, it.wanted_since = amount, self._now
            it.began = min(it.began, self._now)

    # --- 3, 4: the strategy -----------------------------------------------------------

    def _coordinate(self) -> None:
        """Ask the strategy, and do as it says."""
        situation = Situation(
            self._now,
            self._storage.targets,
            tuple(self._standing(it) for it in self._all),
        )
        plan = self._strategy.decide(situation)
        self._decisions += 1
        self._wake = plan.wake
        self._warnings |= dict.fromkeys(self._strategy.warnings(situation, plan))
        if plan.background != self._background:
            self._background = plan.background
            self._touched |= set(range(self._storage.targets))
        for it, order in zip(self._all, plan.orders, strict=True):
            if it.wants and not self._flushes(it, order):
                self._begin_write(it, order.targets, stage=order.stage)
        for it, order in zip(self._all, plan.orders, strict=True):
            self._turn(it, order.targets, order.drain_rate, drains=order.drain)

    def _is_drained(self, it: Writing) -> bool:
        """Tell whether somebody is there to drain its buffer."""
        inline = self._buffer is not None and self._buffer.inline
        return not inline or it.waits

    def _flushes(self, it: Writing, order: StagingOrder) -> bool:
        """Tell whether `it` must empty its buffer before it goes on."""
        inline = self._buffer is not None and self._buffer.inline
        begun = it.drain is not None or not order.stage
        return inline and order.drain and begun and it.staged(self._now) > 0

    def _standing(self, it: Writing) -> ApplicationStatus:
        phase = self._plans[it.number].at(it.position)
        return ApplicationStatus(
            it.writer.name,
            began=it.began,
            volume=phase.volume,
            processes=it.writer.processes,
            priority=it.writer.priority,
            staged=it.staged(self._now),
            blocked=it.act in (Act.SYNC, Act.CLOSE)
            or (it.wants > 0 and not self._fits(it)),
            turn_began=it.turn_began,
            turn_ended=it.turn_ended,
            request=phase.request,
            pause=phase.pause,
            bandwidth=self._alone(it),
        )

    def _begin_write(
        self, it: Writing, targets: tuple[int, ...], *, stage: bool
    ) -> None:
        """Begin the request that `it` wants to write, if it can begin."""
        if stage and self._buffer is None:
            raise InputError(
                f"strategy {self._strategy.label} stages, and there is no buffer",
                remedy="give buffers, or use none, 3a or 3b",
            )
        if not stage and it.staged(self._now) == 0:
            it.write = self._striped(it, it.wants, targets)
        elif self._fits(it):
            cap = self._buffer_speed(it)
            flow = Flow(-1, 1.0, cap, it.wants, it.wants, self._now)
            it.write = Operation(self._now, it.wants, [flow], staged=True)
        else:
            return
        it.wants = 0.0

    def _striped(
        self, it: Writing, volume: float, targets: tuple[int, ...]
    ) -> Operation:
        """Return an operation in equal parts over `targets`."""
        width = len(targets)
        alone = self._storage.alone(width, it.writer.limit)
        unit = alone / width if self._storage.profile else 1.0
        part = volume / width / unit
        cap = alone / width / unit
        self._touched |= set(targets)
        flows = [Flow(target, unit, cap, part, part, self._now) for target in targets]
        return Operation(self._now, volume, flows)

    def _turn(
        self, it: Writing, targets: tuple[int, ...], rate: float, *, drains: bool
    ) -> None:
        """Begin, go on with, or hold the draining of `it`."""
        drains = drains and it.staged(self._now) > 0 and self._is_drained(it)
        if drains and it.drain is None:
            it.drain = self._striped(it, it.waiting, targets)
            it.waiting = 0.0
        limit = rate if drains else 0.0
        if it.drain is not None and it.drain.limit != limit:
            it.drain.limit = limit
            self._touched |= {flow.target for flow in it.drain.flows}
        if drains and it.turn_began == inf:
            it.turn_began = self._now
        elif not drains and it.turn_began < inf:
            it.turn_began, it.turn_ended = inf, self._now

    # --- Buffers ----------------------------------------------------------------------

    def _sharers(self, it: Writing) -> list[Writing]:
        """Return those who use the same buffer."""
        return self._all if self._buffer and self._buffer.shared else [it]

    def _room(self, it: Writing) -> float:
        """Return what the buffer of `it` can still hold (bytes)."""
        if self._buffer is None:
            return inf
        nodes = 1 if self._buffer.shared else it.writer.nodes
        used = sum(
            other.staged(self._now)
            + (other.write.volume if other.write and other.write.staged else 0.0)
            for other in self._sharers(it)
        )
        return nodes * self._buffer.capacity - used

    def _fits(self, it: Writing) -> bool:
        return it.wants <= self._room(it) + _ROUNDING * it.wants

    def _when_room(self, it: Writing) -> float:
        """Return when there will be room for the request of `it` (s)."""
        freed = sum(
            flow.unit * flow.rate
            for other in self._sharers(it)
            if other.drain
            for flow in other.drain.flows
        )
        lacking = it.wants - self._room(it)
        if not (freed > 0 and lacking > 0):
            return inf
        return max(self._now + lacking / freed, nextafter(self._now, inf))

    def _buffer_speed(self, it: Writing) -> float:
        assert self._buffer is not None  # noqa: S101 - `_begin_write` has refused it
        nodes = 1 if self._buffer.shared else it.writer.nodes
        return nodes * self._buffer.speed

    # --- 5: the bandwidth -------------------------------------------------------------

    def _share(self) -> None:
        """Ask the policy for every target that was touched or wants to be woken."""
        due = {r for r, at in enumerate(self._target_wakes) if at <= self._now}
        for target in sorted(self._touched | due):
            self._share_target(target)
        self._touched.clear()
        self._share_buffers()

    def _share_target(self, target: int) -> None:
        on_target: dict[int, Flow] = {}
        demands = []
        for entry, operation in self._by_entry():
            for flow in operation.flows:
                if flow.target == target and not flow.done:
                    on_target[entry] = flow
                    demands += self._demand(entry, operation, flow)
        by_time = bool(self._storage.profile)
        shares = share_target(
            self._sharing,
            self._draining,
            self._now,
            demands,
            self._columns(),
            capacity=1.0 if by_time else self._storage.target_bandwidth,
            efficiency=self._storage.efficiency,
            background=self._background,
        )
        for entry, flow in on_target.items():
            flow.hold(shares.rates.get(entry, 0.0), self._now)
        self._target_wakes[target] = shares.wake

    def _by_entry(self) -> Iterator[tuple[int, Operation]]:
        """Yield what is to be served: writes by writer, then drains by writer."""
        for it in self._all:
            if it.write:
                yield it.number, it.write
        for it in self._all:
            if it.drain:
                yield len(self._all) + it.number, it.drain

    def _demand(self, entry: int, operation: Operation, flow: Flow) -> list[FlowDemand]:
        """Return what a flow wants; nothing while its operation is held."""
        if operation.limit == 0:
            return []
        cap = min(flow.cap, operation.limit / len(operation.flows) / flow.unit)
        remaining = flow.remaining(self._now)
        return [FlowDemand(entry, cap, remaining, flow.volume, operation.posted)]

    def _columns(self) -> Columns:
        everyone = [*self._all, *self._all]
        begin, end = self._window
        return Columns(
            window_begin=begin,
            window_end=end,
            dedicated_events=2.0 * sum(p.writes for p in self._plans),
            release=[it.writer.start for it in everyone],
            nodes=[it.writer.nodes for it in everyone],
            lost=[it.lost for it in everyone],
            iterations=[it.iterations for it in everyone],
            iteration_time=[it.iteration_time for it in everyone],
            work_before=[it.work_before for it in everyone],
        )

    def _share_buffers(self) -> None:
        """Give every request that is being staged an equal part of its buffer."""
        flows = [
            flow
            for it in self._all
            if it.write and it.write.staged
            for flow in it.write.flows
        ]
        shared = len(flows) if self._buffer and self._buffer.shared else 1
        for flow in flows:
            flow.hold(flow.cap / shared, self._now)

    # --- What is known beforehand, and what comes out ---------------------------------

    def _alone(self, it: Writing) -> float:
        """Return b_i, on all targets (bytes/s)."""
        return self._storage.alone(self._storage.targets, it.writer.limit)

    def _horizon(self, writers: tuple[Writer, ...]) -> float:
        """Return an instant by which all could be done, one after the other (s)."""
        length = 0.0
        for writer in writers:
            alone = self._storage.alone(1, writer.limit) * self._storage.efficiency
            for act, amount in writer.steps:
                length += amount / alone if act is Act.WRITE else amount
        return max(w.start for w in writers) + 2 * length + 1.0

    def _outcome(self) -> BufferedRun:
        return BufferedRun(
            strategy=self._strategy.label,
            phases=tuple(tuple(it.phases) for it in self._all),
            requests=tuple(tuple(it.requests) for it in self._all),
            through=tuple(it.through for it in self._all),
            drained=tuple(it.drained for it in self._all),
            most_staged=tuple(it.most_staged for it in self._all),
            lost=tuple(it.lost for it in self._all),
            carried=tuple(self._carried),
            end=self._now,
            decisions=self._decisions,
            warnings=tuple(self._warnings),
        )
