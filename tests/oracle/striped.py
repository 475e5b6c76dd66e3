# SPDX-License-Identifier: MIT
"""The simulation over many storage targets in exact arithmetic.

An operation of volume v of application i is n_i independent *flows* of volume
v / n_i and cap b_i / n_i, one on each of its targets (target allocation, section
3.2.2). The operation completes with its last flow.

A target is shared by bandwidth (rates add up to B / N at most) or by time
(fractions of the caps add up to 1 at most). A strategy sees one target at a time:
the unfinished flows on it, in bytes and bytes/s where bandwidth is shared, in
seconds (cap 1, capacity 1, volume v / b_i) where time is.

At one instant all that happens is applied first (starts, then completions by
index, then posts by index); then one decision is taken on every target on which
an operation was posted, a flow completed or a wake-up was due. All other targets
keep their rates. Instants at or after the window's end are not processed, but the
instant of the first end of an application is, in a run that stops there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from oracle.simulator import ZERO, Active, OracleError, State, Strategy
from penstock.model import Application, Instance, Sharing

__all__ = ["Decided", "StripedRun", "simulate"]

#: Time, target, and rate (bytes/s) of every unfinished flow on it by application.
Decided: TypeAlias = tuple[Fraction, int, dict[int, Fraction]]


@dataclass
class StripedRun:
    """The result of a simulation; the names are those of `penstock.sim.Run`."""

    end: Fraction
    """End of the window: as given, or the first end of an application."""
    yields: list[Fraction] = field(default_factory=list)
    """By application, at the window's end (in an open run: at its own end)."""
    lost: list[Fraction] = field(default_factory=list)
    """Time lost since the release (s)."""
    work: list[Fraction] = field(default_factory=list)
    """Work done inside the window (s)."""
    volume: list[Fraction] = field(default_factory=list)
    """Volume transferred inside the window (bytes)."""
    operations: list[int] = field(default_factory=list)
    """Completed operations."""
    occupied: list[Fraction] = field(default_factory=list)
    """By target: time inside the window with an unfinished flow on it (s)."""
    log: list[tuple[Fraction, str, int]] = field(default_factory=list)
    """(time, "post" or "completion", application) of every operation."""
    flow_ends: list[tuple[Fraction, int, int]] = field(default_factory=list)
    """(time, application, target) of every flow of a volume above 0."""
    decisions: list[Decided] = field(default_factory=list)


class _Flow:
    """The part of an operation that one target serves."""

    def __init__(self, target: int, cap: Fraction, volume: Fraction) -> None:
        self.target = target
        self.cap = cap
        self.volume = volume
        self.remaining = volume
        self.rate = ZERO


class _Running:
    """One application as it runs."""

    def __init__(self, index: int, application: Application, cap: Fraction) -> None:
        self.index = index
        self.name = application.name
        self.nodes = application.nodes
        self.cap = cap
        self.targets = application.targets
        self.work_phases = [Fraction(w) for w in application.work.tolist()]
        self.volumes = [Fraction(v) for v in application.volume.tolist()]
        self.release = Fraction(application.release)
        self.start = Fraction(application.start)
        self.period = Fraction(application.period)
        done = Fraction(application.done_work)
        done += Fraction(application.done_volume) / cap
        # A history may exceed the age by a rounding error: nothing lost then.
        self.lost = max(self.start - self.release - done, ZERO)
        self.phase = "waiting"  # then "working" and "transferring", and "ended"
        self.completed = 0
        self.work_ends = ZERO
        self.ended_at: Fraction | None = None
        self.posted_at = ZERO
        self.flows: list[_Flow] = []  # of the present operation, finished or not
        self.iteration_lengths: list[Fraction] = []
        self.work = ZERO
        self.volume = ZERO

    def unfinished(self) -> list[_Flow]:
        """Return the flows that have something left to transfer."""
        return [flow for flow in self.flows if flow.remaining > 0]

    def iteration_length(self) -> Fraction | None:
        """Return w + v / b of the present operation; None for the first operation."""
        number = self.completed
        if number == 0:
            return None
        return self.work_phases[number] + self.volumes[number] / self.cap

    def begin_work(self, now: Fraction) -> None:
        """Enter the work phase before the next operation."""
        self.phase = "working"
        self.work_ends = now + self.work_phases[self.completed]

    def post(self, now: Fraction) -> None:
        """Post the next operation: one flow per target."""
        self.phase = "transferring"
        self.posted_at = now
        width = len(self.targets)
        volume = self.volumes[self.completed] / width
        self.flows = [_Flow(r, self.cap / width, volume) for r in self.targets]

    def complete(self, now: Fraction) -> None:
        """Complete the operation; an iteration ends, unless it is the first one."""
        length = self.iteration_length()
        if length is not None:
            self.iteration_lengths.append(length)
        self.completed += 1
        self.flows = []
        self.begin_work(now)

    def next_instants(self, now: Fraction) -> Iterator[Fraction]:
        """Iterate over the times of its next events if its rates stay."""
        if self.phase == "waiting":
            yield self.start
        if self.phase == "working":
            yield self.work_ends
        for flow in self.unfinished():
            if flow.rate > 0:
                yield now + flow.remaining / flow.rate

    def advance(self, length: Fraction, measured: Fraction) -> None:
        """Let it run for `length` seconds, the last `measured` in the window.

        alpha of the application is the mean of those of its flows, of which one
        that is done has none: the sum of their rates over b_i.
        """
        if self.phase == "working":
            self.work += measured
        elif self.phase == "transferring":
            rate = sum((flow.rate for flow in self.flows), ZERO)
            self.lost += (1 - rate / self.cap) * length
            self.volume += rate * measured
            for flow in self.flows:
                flow.remaining -= flow.rate * length

    def seen(self, flow: _Flow, unit: Fraction, now: Fraction) -> Active:
        """Return one of its flows as a strategy sees it, with volumes over `unit`."""
        return Active(
            index=self.index,
            cap=flow.cap / unit,
            posted_at=self.posted_at,
            volume=flow.volume / unit,
            remaining=flow.remaining / unit,
            age=now - self.release,
            lost=self.lost,
            iterations=tuple(self.iteration_lengths),
            current_iteration=self.iteration_length(),
            period=self.period,
            work_before=self.work_phases[self.completed],
            nodes=self.nodes,
        )


class _Simulation:
    """All applications and targets, and the records."""

    def __init__(
        self, instance: Instance, strategy: Strategy, steady: bool, first_end: bool
    ) -> None:
        self.strategy = strategy
        self.steady = steady
        self.stops_at_first_end = first_end
        self.begin = Fraction(instance.window.begin)
        self.end = Fraction(instance.window.end)
        self.dedicated_events = instance.dedicated_events()
        platform = instance.platform
        self.by_time = platform.sharing is Sharing.TIME
        self.capacity = Fraction(platform.bandwidth) / platform.targets
        if self.by_time:
            self.capacity = Fraction(1)
        self.applications = [
            _Running(index, application, Fraction(cap))
            for index, (application, cap) in enumerate(instance.with_caps())
        ]
        self.targets = range(platform.targets)
        self.wakes: dict[int, Fraction] = {}
        self.occupied = [ZERO for _ in self.targets]
        self.result = StripedRun(self.end)

    def run(self) -> StripedRun:
        """Simulate up to the window's end."""
        now = min(a.start for a in self.applications)
        while now < self.end:
            undecided = self.apply(now)
            if self.stops_at_first_end and any(
                a.phase == "ended" for a in self.applications
            ):
                self.end = now
                break
            for target in sorted(undecided):
                self.decide(target, now)
            then = self.next_instant(now)
            self.advance(now, then)
            now = then
        return self.finish()

    def apply(self, now: Fraction) -> set[int]:
        """Apply all that happens now; return the targets that need a decision."""
        undecided = {target for target, wake in self.wakes.items() if wake == now}
        for application in self.applications:
            if application.phase == "waiting" and application.start == now:
                application.begin_work(now)
        for application in self.applications:
            undecided |= self.end_flows(application, now)
        for application in self.applications:
            undecided |= self.leave_work(application, now)
        return undecided

    def end_flows(self, application: _Running, now: Fraction) -> set[int]:
        """Stop the flows that are done now, and the operation after its last."""
        ending = [f for f in application.flows if f.rate > 0 and f.remaining == 0]
        for flow in ending:
            flow.rate = ZERO
            self.result.flow_ends.append((now, application.index, flow.target))
        if ending and not application.unfinished():
            self.complete(application, now)
        return {flow.target for flow in ending}

    def leave_work(self, application: _Running, now: Fraction) -> set[int]:
        """Post what is due now, again and again if phases of length 0 follow."""
        undecided: set[int] = set()
        while application.phase == "working" and application.work_ends == now:
            if application.completed == len(application.volumes):
                self.end_application(application, now)
                break
            application.post(now)
            self.result.log.append((now, "post", application.index))
            undecided |= set(application.targets)
            if not application.unfinished():
                self.complete(application, now)
        return undecided

    def complete(self, application: _Running, now: Fraction) -> None:
        application.complete(now)
        self.result.log.append((now, "completion", application.index))

    def end_application(self, application: _Running, now: Fraction) -> None:
        application.phase = "ended"
        application.ended_at = now
        if self.steady and not self.stops_at_first_end:
            raise OracleError(
                f"application {application.name!r} ends at {float(now):g}, inside the "
                f"window that ends at {float(self.end):g}"
            )

    def on(self, target: int) -> list[tuple[_Running, _Flow]]:
        """Return the unfinished flows on a target, by application."""
        return [
            (application, flow)
            for application in self.applications
            for flow in application.unfinished()
            if flow.target == target
        ]

    def unit(self, flow: _Flow) -> Fraction:
        """Return the unit of volume that a strategy sees (bytes)."""
        return flow.cap if self.by_time else Fraction(1)

    def decide(self, target: int, now: Fraction) -> None:
        """Ask the strategy about one target; its older wake-up is forgotten."""
        self.wakes.pop(target, None)
        sharers = self.on(target)
        if not sharers:
            return
        seen = tuple(a.seen(flow, self.unit(flow), now) for a, flow in sharers)
        state = State(
            now, self.begin, self.end, self.capacity, seen, self.dedicated_events
        )
        shares, wake = self.strategy.decide(state)
        self.check(shares, seen)
        for application, flow in sharers:
            flow.rate = shares.get(application.index, ZERO) * self.unit(flow)
        if wake is not None:
            self.wakes[target] = wake
        rates = {application.index: flow.rate for application, flow in sharers}
        self.result.decisions.append((now, target, rates))

    def check(self, shares: dict[int, Fraction], seen: tuple[Active, ...]) -> None:
        """Raise an error if a decision breaks a rule of sharing."""
        caps = {a.index: a.cap for a in seen}
        if any(not 0 <= share <= caps[i] for i, share in shares.items()):
            raise OracleError("a share is negative or above the flow's cap")
        if sum(shares.values()) > self.capacity:
            raise OracleError("a target gives more than it has")

    def next_instant(self, now: Fraction) -> Fraction:
        """Return the time of the next event, the window's end at the latest."""
        instants = [t for a in self.applications for t in a.next_instants(now)]
        return min([*instants, *self.wakes.values(), self.end])

    def advance(self, now: Fraction, then: Fraction) -> None:
        """Let everything run from `now` to `then`; the window only measures."""
        measured = max(ZERO, then - max(now, self.begin))
        for target in self.targets:
            if self.on(target):
                self.occupied[target] += measured
        for application in self.applications:
            application.advance(then - now, measured)

    def finish(self) -> StripedRun:
        """Measure everything at the window's end."""
        result = self.result
        result.end = self.end
        result.occupied = self.occupied
        for a in self.applications:
            age = (self.end if a.ended_at is None else a.ended_at) - a.release
            # An application that ended at its release was never delayed.
            result.yields.append(1 - a.lost / age if age > 0 else Fraction(1))
            result.lost.append(a.lost)
            result.work.append(a.work)
            result.volume.append(a.volume)
            result.operations.append(a.completed)
        return result


def simulate(
    instance: Instance,
    strategy: Strategy,
    *,
    steady: bool = True,
    until_first_end: bool = False,
) -> StripedRun:
    """Simulate `instance` under `strategy`, exactly.

    A run `until_first_end` of any application stops there; in another `steady`
    run an application that ends before the window does is an error.
    """
    return _Simulation(instance, strategy, steady, until_first_end).run()
