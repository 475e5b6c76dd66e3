# SPDX-License-Identifier: MIT
"""Exact simulation of burst buffers and staging strategies, request by request.

The processes of a writer work, write, and wait in fsync and close. A request goes to
the storage targets, or to a buffer, from which it is *drained* later. A drain is an
operation like a write: it is striped over targets, and shares each target with the
requests that wait for it. Fsync and close wait until nothing of a process is staged.
Processes that run in step are simulated as one group.

Order at equal times. One turn of the loop in `_Simulation.run` is one instant. As in
the engine, times that differ by rounding errors only are one instant
(`penstock.policies.rounding.instant_end`):

1. requests and drains that are complete end; then work that is complete. Every process
   goes on to its next step that takes time;
2. the strategy decides once, if what it is shown has changed since its last decision
   (apart from the clock), or if it asked to be called now;
3. requests that wait begin; where a request goes is decided when it begins. A process
   with staged data stages further requests until its buffer is empty: data reach the
   storage in the order in which they were written. A writer that does not redirect
   keeps the targets that it had when it opened its files; one that merges drains to
   them, keeps them while the files are young (`penstock.staging.redirection`), and
   writes to them what it has redirected, before it uses others, stages or closes;
4. a drain begins for every group whose application has its turn: all that it has staged
   now, as one operation. Drains of applications whose turn is over stop where they are;
5. every target on which a request began, ended, stopped or went on is shared again
   (`buffers_sharing`), also if its policy asked to be called now;
6. the clock moves to the next instant at which anything ends or was asked for.

The files: `model` describes what is simulated, `state` what changes during a run,
`queue` holds the requests that wait for a target, `regions` all targets; `sharing`
shares one, `status` says what a strategy is shown, `delta` makes delta-graphs. Here
decisions make flows, which `penstock.sim.engine` knows before it starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf, nextafter
from typing import Final

from penstock.errors import InputError, PolicyError
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.policies.rounding import instant_end
from penstock.sim.buffers.model import Act, Buffer, Storage, Writer
from penstock.sim.buffers.queue import Operation, Part, TargetQueue
from penstock.sim.buffers.regions import Regions, RegionSplitError
from penstock.sim.buffers.setup import Setup
from penstock.sim.buffers.sharing import Columns
from penstock.sim.buffers.state import (
    BufferedRun,
    PhaseTable,
    ProcessGroup,
    WriteRequest,
    WriterState,
    groups_of,
)
from penstock.sim.buffers.status import status_of
from penstock.staging import (
    ApplicationStatus,
    Situation,
    StagingOrder,
    Strategy,
    follows,
    get_strategy,
)

__all__ = ["BufferedRun", "WriteRequest", "simulate_buffers"]

#: Relative rounding error granted when room in a buffer is compared with a request.
_ROUNDING: Final = 1e-9


def simulate_buffers(
    storage: Storage,
    writers: Sequence[Writer],
    strategy: Strategy | str = "none",
    buffer: Buffer | None = None,
    *,
    sharing: Policy | str | None = None,
    draining: Policy | str | None = None,
    most_instants: float = inf,
) -> BufferedRun:
    """Run `writers` until all are done.

    Parameters
    ----------
    buffer
        The burst buffers. Without any, a strategy that stages is refused.
    sharing
        The bandwidth-sharing policy of every target. Default: all requests that wait
        for a target get the same share.
    draining
        The policy that shares the rest of a target among drains, for strategies whose
        drains only get what writers leave. Default: `sharing`.
    most_instants
        Highest number of instants to simulate.

    Raises
    ------
    InputError
        If there is no writer, two have the same name, a request does not fit into its
        buffer, the strategy cannot serve these writers, or `most_instants` are over.
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
    shared = get_policy(sharing) if isinstance(sharing, str) else sharing
    drained = get_policy(draining) if isinstance(draining, str) else draining
    setup = Setup(
        storage,
        writers,
        get_strategy(strategy) if isinstance(strategy, str) else strategy,
        buffer,
        shared,
        drained or shared,
        most_instants,
    )
    regions = [tuple(range(storage.targets))]
    while True:
        try:
            return _Simulation(setup, regions).run()
        except RegionSplitError as split:
            regions = split.regions


class _Simulation:
    def __init__(self, setup: Setup, regions: Sequence[tuple[int, ...]]) -> None:
        self._setup, self._buffer = setup, setup.buffer
        self._apps = [WriterState(w, i) for i, w in enumerate(setup.writers)]
        self._now = min(w.start_s for w in setup.writers)
        self._timers: list[tuple[float, int, ProcessGroup | None]] = []
        self._timer_count = 0
        for app in self._apps:
            app.groups = groups_of(app)
            app.resume()
            for group in app.groups:
                group.work_ends_s = app.writer.start_s
                self._set_timer(app.writer.start_s, group)
            if app.writer.opened_s is not None:
                self._set_timer(app.writer.opened_s, None)
        self._now = self._until = self._origin = self._timers[0][0]
        """Events up to `_until` belong to the instant `_now` (s)."""
        self._running = sum(len(app.groups) for app in self._apps)
        self._background = False
        self._regions = Regions(setup.storage, setup.rules(), regions, self._columns)
        self._is_limited = (
            setup.buffer is not None and setup.buffer.capacity_bytes < inf
        )
        self._staging = TargetQueue(-1)
        self._pending: list[ProcessGroup] = []
        self._orders: Sequence[StagingOrder] = ()
        self._memory: object = None
        """What the strategy has asked to keep."""
        self._is_changed = True
        self._wake = inf
        self._instants = self._decisions = 0
        self._warnings: dict[str, None] = {}
        self._phase_tables = [PhaseTable(w) for w in setup.writers]
        self._window = self._now, setup.horizon()

    def run(self) -> BufferedRun:
        # This is the main loop. One turn is one instant; the module's docstring gives
        # the order of what happens in it.
        while True:
            self._count_instant()
            self._end_operations()
            self._end_work()
            if not self._running:
                return self._outcome()
            self._coordinate()
            self._share()
            self._advance(self._next_instant())

    # --- Time -------------------------------------------------------------------------

    def _count_instant(self) -> None:
        self._instants += 1
        if self._instants > self._setup.most_instants:
            raise InputError(f"more than {self._setup.most_instants:g} instants")

    def _set_timer(self, time: float, group: ProcessGroup | None) -> None:
        self._timer_count += 1
        heappush(self._timers, (time, self._timer_count, group))

    def _next_instant(self) -> float:
        """Return when something happens next (s)."""
        ends = self._staging.completion, self._regions.next_instant()
        instant = min(self._wake, *ends, *map(self._when_room, self._pending))
        if self._timers:
            instant = min(instant, self._timers[0][0])
        if instant == inf:
            waiting = [
                app.writer.name
                for app in self._apps
                if any(g.position < len(g.steps) for g in app.groups)
            ]
            sharing = self._setup.sharing
            policy = f" with policy {sharing.label}" if sharing else ""
            raise PolicyError(
                f"strategy {self._setup.strategy.label}{policy} at "
                f"t = {self._now:g} s: {', '.join(waiting)} would wait for ever"
            )
        return instant

    def _advance(self, instant: float) -> None:
        """Move the clock, and add to the lost time of applications that wait for I/O.

        A process whose request has a share s of what it demands loses 1 - s of the
        time.
        """
        elapsed = instant - self._now
        for app in self._apps:
            if app.waiting > 0:
                lost = app.waiting - self._served(app)
                app.lost += elapsed * lost / app.writer.processes
        for group in (g for g in self._pending if not g.is_merging):
            application = group.application
            lost = group.processes * (1.0 - (group.drain.share() if group.drain else 0))
            application.lost += elapsed * lost / application.writer.processes
        self._now, self._until = instant, instant_end(instant, self._origin)

    def _served(self, app: WriterState) -> float:
        """Return the waiting processes, each weighted by its rate over its demand."""
        served = self._regions.served(app.number)
        if app.syncing:
            for group, drain in app.drains.items():
                if group.is_syncing:
                    served += group.processes * drain.share()
        return served

    # --- 1: what ends -----------------------------------------------------------------

    def _end_operations(self) -> None:
        for group in self._regions.take_done(self._now, self._until):
            if group.drain is not None and not group.drain.parts:
                self._complete_drain(group, group.drain)
            elif group.write is not None:
                self._complete_write(group, group.write)
        if self._staging.completion <= self._until:
            for part in self._staging.take_done(self._now, self._until):
                self._complete_write(part.operation.group, part.operation)

    def _end_work(self) -> None:
        while self._timers and self._timers[0][0] <= self._until:
            group = heappop(self._timers)[2]
            if group is None:
                self._is_changed = True
            elif group.write is not None:
                self._complete_write(group, group.write)
            else:
                self._next_step(group)

    def _complete_drain(self, group: ProcessGroup, drain: Operation) -> None:
        app = group.application
        group.drain = None
        del app.drains[group]
        app.drained += drain.volume
        self._is_changed = app.is_turn_due = True
        if group.has_staged:
            return
        del app.holders[group]
        if group.is_syncing:
            group.is_syncing = False
            app.syncing -= 1
            app.waiting -= group.processes
            self._close_files(group)
            self._next_step(group)

    def _complete_write(self, group: ProcessGroup, write: Operation) -> None:
        app = group.application
        group.write = None
        if group.is_merging:
            self._end_merge(group)
            return
        app.written += write.volume
        if write.staged:
            group.undrained_bytes += write.volume
            app.undrained_bytes += write.volume
            app.holders[group] = None
            app.most_staged = max(app.most_staged, app.staged(self._now))
            self._is_changed = app.is_turn_due = True
        else:
            app.through += write.volume
            app.waiting -= group.processes
            group.note_apart(write.volume)
        app.requests.append(
            WriteRequest(
                group.pending_since,
                self._now,
                write.volume,
                write.staged,
                group.number,
            )
        )
        if group.number == 0:
            self._count_iteration(app, write.volume)
        self._next_step(group)

    def _begin_merge(self, group: ProcessGroup) -> None:
        """Begin to write redirected data to the targets of the files."""
        group.is_merging = True
        group.application.waiting += group.processes
        merge = Operation(group, self._now, group.apart_bytes)
        self._regions.start(merge, group.targets, group.application.number, 1.0)
        group.write = merge

    def _end_merge(self, group: ProcessGroup) -> None:
        """Go on with the step that waited for a merge; a request is pending already."""
        group.is_merging, group.apart_bytes = False, 0.0
        group.application.waiting -= group.processes
        self._close_files(group)
        if group.steps[group.position][0] is not Act.WRITE:
            self._next_step(group)

    def _close_files(self, group: ProcessGroup) -> None:
        """Close the files of a group, if that is its present step."""
        act = group.steps[group.position][0]
        if act is Act.CLOSE:
            group.application.close(group, self._now)
            self._is_changed = True
        elif act is Act.REOPEN:
            group.targets = group.application.targets = ()

    def _count_iteration(self, app: WriterState, volume: float) -> None:
        """Count a request of the first group.

        As in the engine: what precedes the first request is not an iteration.
        """
        app.operations += 1
        if app.operations > 1:
            whole = volume * app.writer.nodes / app.groups[0].nodes
            app.iterations += 1
            app.iteration_time += app.work_before
            app.iteration_time += whole / self._setup.alone(app.writer)
        app.work_before = 0.0

    def _next_step(self, group: ProcessGroup) -> None:
        """Move a group to its next step that takes time."""
        app = group.application
        group.work_ends_s = inf
        while True:
            group.position += 1
            if group.position == len(group.steps):
                self._running -= 1
                return
            act, amount = group.steps[group.position]
            if act is Act.WRITE:
                group.pending_bytes, group.pending_since = amount, self._now
                self._pending.append(group)
                if not group.in_phase:
                    app.open(group, self._now)
                    self._is_changed = True
                return
            if act is Act.WORK:
                if group.number == 0:
                    app.work_before += amount
                if amount > 0:
                    group.work_ends_s = self._now + amount
                    self._set_timer(group.work_ends_s, group)
                    return
            elif group.has_staged:
                group.is_syncing = True
                app.syncing += 1
                app.waiting += group.processes
                self._is_changed = app.is_turn_due = True
                return
            elif group.apart_bytes > 0:
                self._begin_merge(group)
                return
            else:
                self._close_files(group)

    # --- 2, 3, 4: the strategy --------------------------------------------------------

    def _coordinate(self) -> None:
        """Let the strategy decide if something has changed, and execute its plan."""
        drains = self._regions.is_serving(len(self._apps))
        if self._is_changed or drains or self._wake <= self._until:
            self._decide()
        if len(self._pending) > 1:
            self._pending.sort(key=lambda g: (g.application.number, g.number))
        self._pending = [g for g in self._pending if not self._begin_write(g)]
        for group in self._pending:
            self._is_changed = group.application.is_turn_due = True
        for app in self._apps:
            if app.is_turn_due:
                self._take_turn(app, self._orders[app.number])

    def _decide(self) -> None:
        """Ask the strategy for its orders."""
        self._is_changed = False
        statuses = tuple(self._status(app) for app in self._apps)
        situation = Situation(
            self._now,
            self._setup.storage.targets,
            statuses,
            self._memory,
            self._setup.forecast,
        )
        plan = self._setup.strategy.decide(situation)
        self._memory = plan.memory
        self._decisions += 1
        self._wake = plan.wake_s
        if plan.orders != self._orders:
            warnings = self._setup.strategy.warnings(situation, plan)
            self._warnings |= dict.fromkeys(warnings)
            for app in self._apps:
                app.is_turn_due = True
        self._orders = plan.orders
        if plan.drains_in_background != self._background:
            self._background = plan.drains_in_background
            self._regions.replace_rules(self._setup.rules(background=self._background))
        for app in self._apps:
            opened = app.writer.opened_s
            is_before = not app.phases and app.phase_began == inf
            if opened is not None and self._now >= opened and is_before:
                app.targets = app.targets or self._orders[app.number].targets

    def _status(self, app: WriterState) -> ApplicationStatus:
        is_full = self._is_limited and any(
            group.application is app and not self._fits(group)
            for group in self._pending
        )
        return status_of(
            app,
            self._phase_tables[app.number],
            self._now,
            targets=self._orders[app.number].targets if self._orders else (),
            is_full=is_full,
            alone=self._setup.alone(app.writer),
        )

    def _begin_write(self, group: ProcessGroup) -> bool:
        """Begin the pending request of a group; return False if it must wait."""
        order = self._orders[group.application.number]
        if group.is_merging or self._must_flush(group, order):
            return False
        is_elsewhere = order.stage or group.apart_targets != order.targets
        if group.apart_bytes > 0 and is_elsewhere:
            self._begin_merge(group)
            return False
        if order.stage and self._buffer is None and not group.is_committed:
            raise InputError(
                f"strategy {self._setup.strategy.label} stages, and there is no buffer",
                remedy="give buffers, or use none, 3a or 3b",
            )
        volume = group.pending_bytes
        if group.is_committed or not (order.stage or group.has_staged):
            group.write = self._start(group, volume, order, drains=False)
            group.application.waiting += group.processes
        elif self._fits(group):
            self._begin_staging(group, volume)
        else:
            return False
        group.pending_bytes, group.is_committed = 0.0, False
        return True

    def _must_flush(self, group: ProcessGroup, order: StagingOrder) -> bool:
        """Return True if an inline writer must empty its buffer before it goes on."""
        if group.is_committed:
            return False
        begun = group.drain is not None or not order.stage
        return self._setup.is_inline and order.drain and begun and group.has_staged

    def _targets_of(self, group: ProcessGroup, order: StagingOrder) -> tuple[int, ...]:
        """Return where a group writes: as ordered now, or when it opened its files."""
        app = group.application
        if group.is_committed and group.write_targets:
            return group.write_targets
        if app.writer.keeps_targets and not group.targets:
            group.open_files(order.targets, self._now)
        stays = not app.writer.redirects
        if app.writer.merges:
            stays = stays or not follows(group.opened_s, self._now)
        return group.targets if stays else order.targets

    def _start(
        self, group: ProcessGroup, volume: float, order: StagingOrder, *, drains: bool
    ) -> Operation:
        """Begin a write or a drain on the targets of a group."""
        operation = Operation(group, self._now, volume)
        entry = group.application.number + (len(self._apps) if drains else 0)
        gain = self._setup.gain if drains else 1.0
        targets = self._targets_of(group, order)
        if drains:
            targets = group.targets if group.application.writer.merges else targets
            return self._regions.start(operation, targets, entry, gain)
        group.write_targets = targets
        files = group.redirected_files
        return self._regions.start(operation, targets, entry, gain, files)

    def _take_turn(self, app: WriterState, order: StagingOrder) -> None:
        """Begin, continue or stop the drains of an application; record its turns."""
        app.is_turn_due = is_draining = False
        for group in app.holders:
            drains = order.drain and (not self._setup.is_inline or group.waits)
            if drains and group.drain is None:
                volume, group.undrained_bytes = group.undrained_bytes, 0.0
                app.undrained_bytes -= volume
                group.drain = self._start(group, volume, order, drains=True)
                app.drains[group] = group.drain
            if group.drain:
                rate = order.drain_bytes_per_s
                self._regions.let_drain(group.drain, rate, self._now, drains=drains)
            is_draining = is_draining or drains
        if is_draining and app.turn_began == inf:
            app.turn_began = self._now
            self._is_changed = True
        elif not is_draining and app.turn_began < inf:
            app.turn_began, app.turn_ended = inf, self._now
            self._is_changed = True

    # --- Buffers ----------------------------------------------------------------------

    def _begin_staging(self, group: ProcessGroup, volume: float) -> None:
        """Write a request into the buffer of the group, or into the shared one."""
        assert self._buffer is not None  # noqa: S101 - `_begin_write` refuses that
        self._targets_of(group, self._orders[group.application.number])
        group.write = Operation(group, self._now, volume, staged=True)
        if not self._buffer.shared:
            speed = group.nodes * self._buffer.speed_bytes_per_s
            self._set_timer(self._now + volume / speed, group)
            return
        part = Part(group.write, self._staging, 1, volume / group.processes)
        self._staging.request_cap = self._staging.cap = self._buffer.speed_bytes_per_s
        self._staging.add(part, self._now)

    def _sharers(self, group: ProcessGroup) -> list[ProcessGroup]:
        """Return the groups that use the same buffer."""
        if not self._setup.is_buffer_shared:
            return [group]
        return [g for app in self._apps for g in app.groups]

    def _room(self, group: ProcessGroup) -> float:
        """Return the free room in the buffer of a group (bytes)."""
        if self._buffer is None or self._buffer.capacity_bytes == inf:
            return inf
        nodes = 1 if self._buffer.shared else group.nodes
        used = sum(
            other.staged(self._now)
            + (other.write.volume if other.write and other.write.staged else 0.0)
            for other in self._sharers(group)
        )
        return nodes * self._buffer.capacity_bytes - used

    def _fits(self, group: ProcessGroup) -> bool:
        return group.pending_bytes * (1.0 - _ROUNDING) <= self._room(group)

    def _when_room(self, group: ProcessGroup) -> float:
        """Return when there will be room for the request of a group (s)."""
        lacking = group.pending_bytes - self._room(group)
        if not lacking > 0:
            return inf
        freed = sum(g.drain.rate() for g in self._sharers(group) if g.drain)
        wait_s = lacking / freed if freed > 0 else inf
        return max(self._now + wait_s, nextafter(self._now, inf))

    # --- 5: the bandwidth -------------------------------------------------------------

    def _share(self) -> None:
        """Share the targets, and the shared buffer."""
        self._regions.share(self._now, self._until)
        if self._staging.weight > 0:
            self._staging.set_rate(self._staging.cap, self._now)

    def _columns(self) -> Columns:
        everyone = [*self._apps, *self._apps]
        begin, end = self._window
        return Columns(
            window_begin=begin,
            window_end=end,
            dedicated_events=2.0 * sum(p.writes for p in self._phase_tables),
            release=[app.writer.start_s for app in everyone],
            nodes=[app.writer.nodes for app in everyone],
            lost=[app.lost for app in everyone],
            operations=[app.operations for app in everyone],
            iterations=[app.iterations for app in everyone],
            iteration_time=[app.iteration_time for app in everyone],
            work_before=[app.work_before for app in everyone],
        )

    # --- After the run ----------------------------------------------------------------

    def _outcome(self) -> BufferedRun:
        apps = self._apps
        return BufferedRun(
            strategy=self._setup.strategy.label,
            phases=tuple(tuple(app.phases) for app in apps),
            requests=tuple(tuple(app.requests) for app in apps),
            through=tuple(app.through for app in apps),
            drained=tuple(app.drained for app in apps),
            most_staged=tuple(app.most_staged for app in apps),
            lost=tuple(app.lost for app in apps),
            carried=self._regions.carried(),
            end_s=self._now,
            decisions=self._decisions,
            warnings=tuple(self._warnings),
        )
