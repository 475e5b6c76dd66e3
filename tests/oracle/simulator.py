# SPDX-License-Identifier: MIT
"""The simulation: scan all applications at every event, in exact arithmetic.

At one instant all that happens is applied first (starts, then completions by
index, then posts by index), then one decision is taken, if there was a post, a
completion or a wake-up and an application is active. Instants at or after the
window's end are not processed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, TypeAlias

from penstock.model import Application, Instance

__all__ = [
    "Active",
    "Decision",
    "OracleError",
    "OracleRun",
    "State",
    "Strategy",
    "simulate",
]

#: Rates by application index, and the time of the wake-up wanted, if any.
Decision: TypeAlias = tuple[dict[int, Fraction], Fraction | None]

ZERO = Fraction(0)


class OracleError(Exception):
    """An application ended inside the window, or a strategy broke a rule."""


@dataclass(frozen=True)
class Active:
    """An application with an unfinished operation, as a strategy sees it."""

    index: int
    cap: Fraction
    """b_i."""
    posted_at: Fraction
    """R_i."""
    volume: Fraction
    """Volume of the operation when it was posted."""
    remaining: Fraction
    """V_i."""
    age: Fraction
    """A_i: time since the release."""
    lost: Fraction
    """Time lost since the release."""
    iterations: tuple[Fraction, ...] = ()
    """w + v / b_i of every completed iteration."""
    current_iteration: Fraction | None = None
    """w + v / b_i of the one under way; None if it is no iteration."""
    period: Fraction = ZERO
    """Mean length of an iteration as given beforehand; 0 if not known."""
    work_before: Fraction = ZERO
    """Work before the operation."""
    nodes: int = 1
    """p_i."""

    @property
    def progress(self) -> Fraction:
        """P_i: work done plus volume transferred over b_i (s)."""
        return self.age - self.lost

    @property
    def time_at_cap(self) -> Fraction:
        """V_i / b_i."""
        return self.remaining / self.cap

    @property
    def yield_now(self) -> Fraction:
        """Return the yield y_i now (bandwidth sharing, eq. 6); 0 at the release."""
        return self.progress / self.age if self.age > 0 else ZERO

    def yield_after(self, horizon: Fraction, rate: Fraction) -> Fraction:
        """y_i at the end of `horizon` seconds at `rate`, V_i at most."""
        moved = min(rate * horizon, self.remaining)
        return (self.progress + moved / self.cap) / (self.age + horizon)


@dataclass(frozen=True)
class State:
    """What a strategy sees at a decision; `active` is in order of index."""

    time: Fraction
    window_begin: Fraction
    window_end: Fraction
    bandwidth: Fraction
    """B."""
    active: tuple[Active, ...]
    dedicated_events: int = 0
    """E of bandwidth sharing, eq. 5."""


class Strategy(Protocol):
    """Anything that shares the bandwidth."""

    def decide(self, state: State) -> Decision:
        """Return the rates of the active applications and the next wake-up."""
        ...


@dataclass
class OracleRun:
    """The result of a simulation; lists are in the order of the applications."""

    yields: list[Fraction] = field(default_factory=list)
    """At the window's end (in an open run: at the application's own end)."""
    lost: list[Fraction] = field(default_factory=list)
    """Time lost since the release (s)."""
    work_in_window: list[Fraction] = field(default_factory=list)
    volume_in_window: list[Fraction] = field(default_factory=list)
    events: int = 0
    """Posts and completions strictly before the window's end."""
    decisions: list[tuple[Fraction, dict[int, Fraction]]] = field(default_factory=list)
    """Rate of every active application, zeros included, at every decision."""
    log: list[tuple[Fraction, str, int]] = field(default_factory=list)
    """(time, "completion" or "post", index) and (time, "wake", -1)."""


class _Running:
    """One application as it runs."""

    def __init__(self, index: int, application: Application, cap: Fraction) -> None:
        self.index = index
        self.name = application.name
        self.nodes = application.nodes
        self.cap = cap
        self.work = [Fraction(w) for w in application.work.tolist()]
        self.volume = [Fraction(v) for v in application.volume.tolist()]
        self.release = Fraction(application.release)
        self.start = Fraction(application.start)
        self.period = Fraction(application.period)
        done = Fraction(application.done_work)
        done += Fraction(application.done_volume) / cap
        # A history may exceed the age by a rounding error: nothing lost then.
        self.lost = max(self.start - self.release - done, ZERO)
        self.phase = "waiting"  # then "working" and "transferring", and "ended"
        self.operation = 0  # number of the next operation, or of the present one
        self.work_ends = ZERO
        self.ended_at: Fraction | None = None
        self.posted_at = ZERO
        self.remaining = ZERO
        self.rate = ZERO
        self.iterations: list[Fraction] = []
        self.work_in_window = ZERO
        self.volume_in_window = ZERO

    def iteration(self) -> Fraction | None:
        """Return w + v / b of the present operation; None for the first operation."""
        number = self.operation
        if number == 0:
            return None
        return self.work[number] + self.volume[number] / self.cap

    def begin_work(self, now: Fraction) -> None:
        """Enter the work phase before operation number `operation`."""
        self.phase = "working"
        self.work_ends = now + self.work[self.operation]

    def post(self, now: Fraction) -> None:
        """Post the next operation."""
        self.phase = "transferring"
        self.posted_at = now
        self.remaining = self.volume[self.operation]
        self.rate = ZERO

    def complete(self, now: Fraction) -> None:
        """Complete the operation; an iteration ends, unless it is the first one."""
        iteration = self.iteration()
        if iteration is not None:
            self.iterations.append(iteration)
        self.operation += 1
        self.rate = ZERO
        self.begin_work(now)

    def next_instant(self, now: Fraction) -> Fraction | None:
        """Return the time of its next event if its rate stays."""
        if self.phase == "waiting":
            return self.start
        if self.phase == "working":
            return self.work_ends
        if self.phase == "transferring" and self.rate > 0:
            return now + self.remaining / self.rate
        return None

    def advance(self, now: Fraction, then: Fraction, begin: Fraction) -> None:
        """Advance from `now` to `then`; measure only the time after `begin`."""
        length = then - now
        measured = max(ZERO, then - max(now, begin))
        if self.phase == "working":
            self.work_in_window += measured
        elif self.phase == "transferring":
            self.remaining -= self.rate * length
            self.volume_in_window += self.rate * measured
            self.lost += (1 - self.rate / self.cap) * length

    def seen(self, now: Fraction) -> Active:
        """Return the application as a strategy sees it."""
        return Active(
            index=self.index,
            cap=self.cap,
            posted_at=self.posted_at,
            volume=self.volume[self.operation],
            remaining=self.remaining,
            age=now - self.release,
            lost=self.lost,
            iterations=tuple(self.iterations),
            current_iteration=self.iteration(),
            period=self.period,
            work_before=self.work[self.operation],
            nodes=self.nodes,
        )


class _Simulation:
    """All applications, the end of the clock, and the records."""

    def __init__(self, instance: Instance, strategy: Strategy, steady: bool) -> None:
        self.strategy = strategy
        self.steady = steady
        self.begin = Fraction(instance.window.begin)
        self.end = Fraction(instance.window.end)
        self.bandwidth = Fraction(instance.platform.bandwidth)
        node = Fraction(instance.platform.node_bandwidth)
        self.applications = [
            _Running(index, a, min(a.nodes * node, self.bandwidth))
            for index, a in enumerate(instance.applications)
        ]
        self.dedicated_events = sum(
            2 * _dedicated_posts(a, self.begin, self.end) for a in self.applications
        )
        self.wake: Fraction | None = None
        self.result = OracleRun()

    def run(self) -> OracleRun:
        """Simulate up to the window's end."""
        now = min(a.start for a in self.applications)
        while now < self.end:
            if self.apply(now):
                self.decide(now)
            then = self.next_instant(now)
            for application in self.applications:
                application.advance(now, then, self.begin)
            now = then
        return self.finish()

    def apply(self, now: Fraction) -> bool:
        """Apply all that happens now; return whether a decision is due."""
        logged = len(self.result.log)
        for application in self.applications:
            if application.phase == "waiting" and application.start == now:
                application.begin_work(now)
        for application in self.applications:
            if application.phase == "transferring" and application.remaining == 0:
                self.complete(application, now)
        for application in self.applications:
            self.leave_work(application, now)
        if self.wake == now:
            self.result.log.append((now, "wake", -1))
        return len(self.result.log) > logged

    def leave_work(self, application: _Running, now: Fraction) -> None:
        """Post what is due now, again and again if phases of length 0 follow."""
        while application.phase == "working" and application.work_ends == now:
            if application.operation == len(application.volume):
                self.end_application(application, now)
                return
            application.post(now)
            self.count("post", application, now)
            if application.remaining == 0:
                self.complete(application, now)

    def complete(self, application: _Running, now: Fraction) -> None:
        application.complete(now)
        self.count("completion", application, now)

    def count(self, kind: str, application: _Running, now: Fraction) -> None:
        self.result.events += 1
        self.result.log.append((now, kind, application.index))

    def end_application(self, application: _Running, now: Fraction) -> None:
        application.phase = "ended"
        application.ended_at = now
        if self.steady:
            raise OracleError(
                f"application {application.name!r} ends at {float(now):g}, inside the "
                f"window that ends at {float(self.end):g}"
            )

    def decide(self, now: Fraction) -> None:
        """Ask the strategy if an application is active; forget an older wake-up."""
        self.wake = None
        active = [a for a in self.applications if a.phase == "transferring"]
        if not active:
            return
        state = State(
            now,
            self.begin,
            self.end,
            self.bandwidth,
            tuple(a.seen(now) for a in active),
            self.dedicated_events,
        )
        rates, self.wake = self.strategy.decide(state)
        self.check(rates, active, now)
        for application in active:
            application.rate = rates.get(application.index, ZERO)
        self.result.decisions.append((now, {a.index: a.rate for a in active}))

    def check(
        self, rates: dict[int, Fraction], active: list[_Running], now: Fraction
    ) -> None:
        """Raise an error if a decision breaks a rule (bandwidth sharing, 3.1.2)."""
        caps = {a.index: a.cap for a in active}
        if not rates.keys() <= caps.keys():
            raise OracleError("bandwidth for an application that is not active")
        if any(not 0 <= rate <= caps[i] for i, rate in rates.items()):
            raise OracleError("a rate is negative or above the application's cap")
        if sum(rates.values()) > self.bandwidth:
            raise OracleError("more bandwidth than there is")
        if self.wake is not None and self.wake <= now:
            raise OracleError("a wake-up that is not in the future")

    def next_instant(self, now: Fraction) -> Fraction:
        """Return the time of the next event, the window's end at the latest."""
        instants = [a.next_instant(now) for a in self.applications]
        return min(t for t in [*instants, self.wake, self.end] if t is not None)

    def finish(self) -> OracleRun:
        """Measure every application at the window's end."""
        result = self.result
        for a in self.applications:
            last = self.end if a.ended_at is None else a.ended_at
            age = last - a.release
            result.yields.append(1 - a.lost / age if age > 0 else ZERO)
            result.lost.append(a.lost)
            result.work_in_window.append(a.work_in_window)
            result.volume_in_window.append(a.volume_in_window)
        return result


def _dedicated_posts(application: _Running, begin: Fraction, end: Fraction) -> int:
    """Return Nop: operations posted in [begin, end) if the application ran alone."""
    posts = 0
    now = application.start
    for work, volume in zip(application.work, application.volume, strict=False):
        now += work
        posts += begin <= now < end
        now += volume / application.cap
    return posts


def simulate(
    instance: Instance, strategy: Strategy, *, steady: bool = True
) -> OracleRun:
    """Simulate `instance` under `strategy`, exactly.

    In a `steady` run an application that ends before the window does is an error.
    """
    return _Simulation(instance, strategy, steady).run()
