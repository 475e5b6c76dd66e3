# SPDX-License-Identifier: MIT
"""Exact fluid simulation of burst buffers and staging strategies: the main loop.

A writer works, writes, and waits in fsync and close. A request goes to the storage
targets, or to a buffer, from which it is *drained* later. A drain is an operation like
a write: it is striped over targets, and its flows share each target with those of the
writers. Fsync and close wait until nothing of the writer is staged.

Order at equal times. One turn of the loop in `_Simulation.run` is one instant:

1. flows that are complete end, by writer; then work that is complete;
2. every writer goes on to its next step that takes time;
3. the strategy decides once, and sees the result of 1 and 2. Requests that wait begin;
   where a request goes is decided when it begins. A writer with staged data stages
   further requests until its buffer is empty: data reach the storage in the order in
   which they were written;
4. a drain begins for every application whose turn it is: all that it has staged now, as
   one operation. Drains of applications whose turn is over stop where they are;
5. the bandwidth-sharing policy decides once for every target on which a flow began,
   ended, stopped or went on, or at which the policy asked to be called again;
6. the clock moves to the next instant at which anything ends or was asked for.

The files: `buffers_model` describes what is simulated, `buffers_state` what changes
during a run, `buffers_sharing` asks the policy, `buffers_delta` makes delta-graphs.

The loop is not that of `penstock.sim.engine`, which knows all flows and their targets
before it starts, and is compiled; here decisions make flows. A test checks that both
give the same numbers where nothing is staged.
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
from penstock.sim.buffers_sharing import Columns, FlowDemand, TargetRules, share_target
from penstock.sim.buffers_state import (
    Flow,
    Operation,
    PhaseTable,
    WriteRequest,
    WriterState,
)
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
    """Result of a simulation; tuples by writer."""

    strategy: str
    """Name of the strategy, with its parameters."""
    phases: tuple[tuple[tuple[float, float], ...], ...] = field(repr=False)
    """Begin and end of every I/O phase: from open to close (s)."""
    requests: tuple[tuple[WriteRequest, ...], ...] = field(repr=False)
    through: tuple[float, ...]
    """Data written through (bytes)."""
    drained: tuple[float, ...]
    """Data staged and drained (bytes)."""
    most_staged: tuple[float, ...]
    """Most that a buffer held at a time (bytes)."""
    lost: tuple[float, ...]
    """Time spent waiting for I/O beyond what it takes alone (s)."""
    carried: tuple[float, ...]
    """Data written to each storage target (bytes); by target."""
    end: float
    """When the last writer ended (s)."""
    decisions: int
    """How often the strategy was asked."""
    warnings: tuple[str, ...]
    """Warnings of the strategy, each once."""

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
        The burst buffers. Without any, a strategy that stages is refused.
    sharing
        The bandwidth-sharing policy of every target.
    draining
        The policy that shares the rest of a target among drains, for strategies whose
        drains only get what writers leave. Default: `sharing`.

    Raises
    ------
    InputError
        If there is no writer, two have the same name, a request does not fit into its
        buffer, or the strategy cannot serve these writers.
    PolicyError
        If the strategy or a policy fails, breaks its contract or stops for ever.
    """
    writers = tuple(writers)
    if not writers:
        raise InputError("no writer", where="writers", remedy="list at least one")
    if len({writer.name for writer in writers}) < len(writers):
        raise InputError(
            "two writers have the same name",
            where="writers",
            remedy="give each writer a name of its own",
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
        self._states = [WriterState(w, i) for i, w in enumerate(writers)]
        for state in self._states:
            state.until = state.writer.start
        self._now = min(w.start for w in writers)
        self._background = False
        self._wake = inf
        self._target_wakes = [inf] * storage.targets
        self._undecided: set[int] = set()
        self._carried = [0.0] * storage.targets
        self._decisions = 0
        self._warnings: dict[str, None] = {}
        self._phase_tables = [PhaseTable(w) for w in writers]
        self._window = self._now, self._horizon(writers)

    def run(self) -> BufferedRun:
        # This is the main loop. One turn is one instant; the module's docstring gives
        # the order of what happens in it.
        while True:
            self._end_flows()
            for state in self._states:
                self._pass_instant_steps(state)
            if all(state.is_over for state in self._states):
                return self._outcome()
            self._coordinate()
            self._share()
            self._advance(self._next_instant())

    # --- Time -------------------------------------------------------------------------

    def _next_instant(self) -> float:
        """Return when something happens next (s)."""
        instants = [self._wake, *self._target_wakes]
        instants += [state.until for state in self._states]
        instants += [flow.completion for flow in self._flows()]
        instants += [
            self._when_room(state) for state in self._states if state.pending_bytes
        ]
        instant = min(instants)
        if instant == inf:
            waiting = [state.writer.name for state in self._states if not state.is_over]
            raise PolicyError(
                f"strategy {self._strategy.label} with policy {self._sharing.label} at "
                f"t = {self._now:g} s: {', '.join(waiting)} would wait for ever"
            )
        return instant

    def _advance(self, instant: float) -> None:
        """Move the clock, and add to the lost time of writers that wait for I/O.

        A writer whose operation has a share s of its cap loses 1 - s of the time.
        """
        elapsed = instant - self._now
        for state in self._states:
            operation = self._waited_for(state)
            if operation is not None:
                state.lost += elapsed * (1.0 - operation.share())
            elif state.waits:
                state.lost += elapsed
        self._now = instant

    def _waited_for(self, state: WriterState) -> Operation | None:
        """Return the operation on storage targets that a writer waits for."""
        if state.write is not None:
            return None if state.write.staged else state.write
        return state.drain if state.waits else None

    def _flows(self) -> Iterator[Flow]:
        for state in self._states:
            for operation in state.operations():
                yield from operation.flows

    # --- 1, 2: flows and steps that end -----------------------------------------------

    def _end_flows(self) -> None:
        for state in self._states:
            for operation in list(state.operations()):
                self._end_flows_of(operation)
                if operation.is_done:
                    self._complete(state, operation)

    def _end_flows_of(self, operation: Operation) -> None:
        for flow in operation.flows:
            if flow.completion <= self._now:
                flow.finish()
                if flow.target >= 0:
                    self._undecided.add(flow.target)
                    self._carried[flow.target] += flow.unit * flow.volume

    def _complete(self, state: WriterState, operation: Operation) -> None:
        if operation is state.drain:
            state.drain = None
            state.drained += operation.volume
            return
        state.write = None
        if operation.staged:
            state.undrained_bytes += operation.volume
        else:
            state.through += operation.volume
        state.most_staged = max(state.most_staged, state.staged(self._now))
        state.requests.append(
            WriteRequest(
                state.pending_since_s, self._now, operation.volume, operation.staged
            )
        )
        # As in the engine: what precedes the first operation is not an iteration.
        if len(state.requests) > 1:
            state.iterations += 1
            state.iteration_time += state.work_before + operation.volume / self._alone(
                state
            )
        state.work_before = 0.0
        self._next_step(state)

    def _pass_instant_steps(self, state: WriterState) -> None:
        """Move a writer to its next step that takes time."""
        while not state.is_over:
            if state.act in (None, Act.WORK):
                if state.until > self._now:
                    return
                state.until = inf
            elif state.act is Act.WRITE or state.undrained_bytes > 0 or state.drain:
                return
            elif state.act is Act.CLOSE and state.phase_began < inf:
                state.phases.append((state.phase_began, self._now))
                state.phase_began = inf
            self._next_step(state)

    def _next_step(self, state: WriterState) -> None:
        state.position += 1
        if state.is_over:
            return
        act, amount = state.writer.steps[state.position]
        if act is Act.WORK:
            state.until = self._now + amount
            state.work_before += amount
        elif act is Act.WRITE:
            state.pending_bytes, state.pending_since_s = amount, self._now
            state.phase_began = min(state.phase_began, self._now)

    # --- 3, 4: the strategy -----------------------------------------------------------

    def _coordinate(self) -> None:
        """Let the strategy decide, and execute its plan."""
        situation = Situation(
            self._now,
            self._storage.targets,
            tuple(self._status(state) for state in self._states),
        )
        plan = self._strategy.decide(situation)
        self._decisions += 1
        self._wake = plan.wake_s
        self._warnings |= dict.fromkeys(self._strategy.warnings(situation, plan))
        if plan.drains_in_background != self._background:
            self._background = plan.drains_in_background
            self._undecided |= set(range(self._storage.targets))
        for state, order in zip(self._states, plan.orders, strict=True):
            if state.pending_bytes and not self._flushes(state, order):
                self._begin_write(state, order.targets, stage=order.stage)
        for state, order in zip(self._states, plan.orders, strict=True):
            self._take_turn(
                state, order.targets, order.drain_bytes_per_s, drains=order.drain
            )

    def _is_drained(self, state: WriterState) -> bool:
        """Return True if its buffer can be drained now: inline, only while it waits."""
        inline = self._buffer is not None and self._buffer.inline
        return not inline or state.waits

    def _flushes(self, state: WriterState, order: StagingOrder) -> bool:
        """Return True if an inline writer must empty its buffer before it goes on."""
        inline = self._buffer is not None and self._buffer.inline
        begun = state.drain is not None or not order.stage
        return inline and order.drain and begun and state.staged(self._now) > 0

    def _status(self, state: WriterState) -> ApplicationStatus:
        phase = self._phase_tables[state.number].at(state.position)
        return ApplicationStatus(
            state.writer.name,
            phase_began_s=state.phase_began,
            phase_bytes=phase.volume,
            processes=state.writer.processes,
            priority=state.writer.priority,
            staged_bytes=state.staged(self._now),
            is_blocked=state.act in (Act.SYNC, Act.CLOSE)
            or (state.pending_bytes > 0 and not self._fits(state)),
            turn_began_s=state.turn_began,
            turn_ended_s=state.turn_ended,
            mean_request_bytes=phase.request,
            mean_pause_s=phase.pause,
            dedicated_bytes_per_s=self._alone(state),
        )

    def _begin_write(
        self, state: WriterState, targets: tuple[int, ...], *, stage: bool
    ) -> None:
        """Begin the pending request of a writer, if there is room for it."""
        if stage and self._buffer is None:
            raise InputError(
                f"strategy {self._strategy.label} stages, and there is no buffer",
                remedy="give buffers, or use none, 3a or 3b",
            )
        if not stage and state.staged(self._now) == 0:
            state.write = self._striped(state, state.pending_bytes, targets)
        elif self._fits(state):
            cap = self._buffer_speed(state)
            flow = Flow(
                -1, 1.0, cap, state.pending_bytes, state.pending_bytes, self._now
            )
            state.write = Operation(self._now, state.pending_bytes, [flow], staged=True)
        else:
            return
        state.pending_bytes = 0.0

    def _striped(
        self, state: WriterState, volume: float, targets: tuple[int, ...]
    ) -> Operation:
        """Return an operation in equal parts over `targets`."""
        width = len(targets)
        alone = self._storage.alone(width, state.writer.limit)
        unit = alone / width if self._storage.profile else 1.0
        part = volume / width / unit
        cap = alone / width / unit
        self._undecided |= set(targets)
        flows = [Flow(target, unit, cap, part, part, self._now) for target in targets]
        return Operation(self._now, volume, flows)

    def _take_turn(
        self, state: WriterState, targets: tuple[int, ...], rate: float, *, drains: bool
    ) -> None:
        """Begin, continue or stop the drain of a writer, and record its turns."""
        drains = drains and state.staged(self._now) > 0 and self._is_drained(state)
        if drains and state.drain is None:
            state.drain = self._striped(state, state.undrained_bytes, targets)
            state.undrained_bytes = 0.0
        limit = rate if drains else 0.0
        if state.drain is not None and state.drain.limit != limit:
            state.drain.limit = limit
            self._undecided |= {flow.target for flow in state.drain.flows}
        if drains and state.turn_began == inf:
            state.turn_began = self._now
        elif not drains and state.turn_began < inf:
            state.turn_began, state.turn_ended = inf, self._now

    # --- Buffers ----------------------------------------------------------------------

    def _sharers(self, state: WriterState) -> list[WriterState]:
        """Return the writers that use the same buffer."""
        return self._states if self._buffer and self._buffer.shared else [state]

    def _room(self, state: WriterState) -> float:
        """Return the free room in the buffer of a writer (bytes)."""
        if self._buffer is None:
            return inf
        nodes = 1 if self._buffer.shared else state.writer.nodes
        used = sum(
            other.staged(self._now)
            + (other.write.volume if other.write and other.write.staged else 0.0)
            for other in self._sharers(state)
        )
        return nodes * self._buffer.capacity - used

    def _fits(self, state: WriterState) -> bool:
        return (
            state.pending_bytes <= self._room(state) + _ROUNDING * state.pending_bytes
        )

    def _when_room(self, state: WriterState) -> float:
        """Return when there will be room for the request of a writer (s)."""
        freed = sum(
            flow.unit * flow.rate
            for other in self._sharers(state)
            if other.drain
            for flow in other.drain.flows
        )
        lacking = state.pending_bytes - self._room(state)
        if not (freed > 0 and lacking > 0):
            return inf
        return max(self._now + lacking / freed, nextafter(self._now, inf))

    def _buffer_speed(self, state: WriterState) -> float:
        assert self._buffer is not None  # noqa: S101 - `_begin_write` refuses that
        nodes = 1 if self._buffer.shared else state.writer.nodes
        return nodes * self._buffer.speed

    # --- 5: the bandwidth -------------------------------------------------------------

    def _share(self) -> None:
        """Let the policy share every target that has changed or is due."""
        due = {r for r, at in enumerate(self._target_wakes) if at <= self._now}
        for target in sorted(self._undecided | due):
            self._share_target(target)
        self._undecided.clear()
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
        rules = TargetRules(
            self._sharing,
            self._draining,
            capacity=1.0 if by_time else self._storage.target_bandwidth,
            efficiency=self._storage.efficiency,
            background=self._background,
        )
        shares = share_target(rules, self._now, demands, self._columns())
        for entry, flow in on_target.items():
            flow.set_rate(shares.rates.get(entry, 0.0), self._now)
        self._target_wakes[target] = shares.wake

    def _by_entry(self) -> Iterator[tuple[int, Operation]]:
        """Yield operations with their entry: writes by writer, then drains."""
        for state in self._states:
            if state.write:
                yield state.number, state.write
        for state in self._states:
            if state.drain:
                yield len(self._states) + state.number, state.drain

    def _demand(self, entry: int, operation: Operation, flow: Flow) -> list[FlowDemand]:
        """Return the demand of a flow; none while its operation is stopped."""
        if operation.limit == 0:
            return []
        cap = min(flow.cap, operation.limit / len(operation.flows) / flow.unit)
        remaining = flow.remaining(self._now)
        return [FlowDemand(entry, cap, remaining, flow.volume, operation.posted)]

    def _columns(self) -> Columns:
        everyone = [*self._states, *self._states]
        begin, end = self._window
        return Columns(
            window_begin=begin,
            window_end=end,
            dedicated_events=2.0 * sum(p.writes for p in self._phase_tables),
            release=[state.writer.start for state in everyone],
            nodes=[state.writer.nodes for state in everyone],
            lost=[state.lost for state in everyone],
            operations=[len(state.requests) for state in everyone],
            iterations=[state.iterations for state in everyone],
            iteration_time=[state.iteration_time for state in everyone],
            work_before=[state.work_before for state in everyone],
        )

    def _share_buffers(self) -> None:
        """Give every request that is being staged an equal share of its buffer."""
        flows = [
            flow
            for state in self._states
            if state.write and state.write.staged
            for flow in state.write.flows
        ]
        shared = len(flows) if self._buffer and self._buffer.shared else 1
        for flow in flows:
            flow.set_rate(flow.cap / shared, self._now)

    # --- Before and after the run -----------------------------------------------------

    def _alone(self, state: WriterState) -> float:
        """Return what a writer draws alone on all targets, b_i (bytes/s)."""
        return self._storage.alone(self._storage.targets, state.writer.limit)

    def _horizon(self, writers: tuple[Writer, ...]) -> float:
        """Return when all writers would be done if they ran one by one (s)."""
        length = 0.0
        for writer in writers:
            alone = self._storage.alone(1, writer.limit) * self._storage.efficiency
            for act, amount in writer.steps:
                length += amount / alone if act is Act.WRITE else amount
        return max(w.start for w in writers) + 2 * length + 1.0

    def _outcome(self) -> BufferedRun:
        return BufferedRun(
            strategy=self._strategy.label,
            phases=tuple(tuple(state.phases) for state in self._states),
            requests=tuple(tuple(state.requests) for state in self._states),
            through=tuple(state.through for state in self._states),
            drained=tuple(state.drained for state in self._states),
            most_staged=tuple(state.most_staged for state in self._states),
            lost=tuple(state.lost for state in self._states),
            carried=tuple(self._carried),
            end=self._now,
            decisions=self._decisions,
            warnings=tuple(self._warnings),
        )
