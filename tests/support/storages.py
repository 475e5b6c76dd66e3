# SPDX-License-Identifier: MIT
"""A storage that serves calls, with jobs that control paces: for pure tests.

Every job has one caller that moves `call_bytes` per call. It then waits until the grant
covers the call, as the preload library does. Calls inside the storage share its
capacity equally, up to what a single stream can draw, or are served one by one. Writes
may go to memory first, which the storage empties; a full memory lets writes wait.

Time advances from event to event (a call begins or ends, a wait ends), so no capacity
is lost between two calls; the capacity and the memory are looked at every `STEP_S`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from penstock.live.control.activity.usage import Kind, Usage
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.control.storage.bandwidth import BandwidthEstimator, Reason
from penstock.live.node.pages.page import CREDIT_S
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    Grants,
    JobCounters,
    JobJoined,
)

__all__ = ["Caller", "FluidStorage", "LearningSite"]

#: Longest time between two events.
STEP_S = 0.005
_EPSILON = 1e-9


@dataclass(slots=True, eq=False)
class Caller:
    """One job with one caller."""

    key: str
    call_bytes: float = 250e3
    reads: bool = False
    stream: float = inf
    """Most that it draws, alone on the storage."""
    think_s: float = 0.0
    """Time between two calls."""
    sync_bytes: float = inf
    """It calls fsync after this volume."""
    begin_s: float = 0.0
    end_s: float = inf
    storage: str = ":/storage"
    """Name of its storage, as an agent reports it."""
    rate: float = inf
    """Its grant."""
    moved_bytes: float = 0.0
    busy_s: float = 0.0
    held_up_s: float = 0.0
    left_bytes: float = 0.0
    _since_sync_bytes: float = 0.0
    _state: str = "idle"
    _until_s: float = 0.0
    _began_s: float = 0.0
    _granted: float = 0.0
    _charged: float = 0.0

    @property
    def usage(self) -> Usage:
        moved = (self.moved_bytes, 0.0) if self.reads else (0.0, self.moved_bytes)
        return Usage(*moved, self.busy_s, self.held_up_s, self._state == "inside")

    @property
    def is_held(self) -> bool:
        return self._state == "held"

    def is_active(self, now: float) -> bool:
        return self.begin_s <= now < self.end_s

    @property
    def syncs(self) -> bool:
        return self._since_sync_bytes >= self.sync_bytes

    def begin(self, now: float) -> None:
        """Begin a call if there is none and it is time for one."""
        if self._state == "idle" and now >= self._until_s - _EPSILON:
            self._state, self._began_s = "inside", now
            self.left_bytes = self.call_bytes
            if self.rate < inf:
                least = self._granted - CREDIT_S * self.rate
                self._charged = max(self._charged, least) + self.call_bytes

    def end(self, now: float) -> None:
        """End a call that is served, and a wait that the grant covers."""
        if self._state == "inside" and self.left_bytes <= _EPSILON * self.call_bytes:
            self.moved_bytes += self.call_bytes
            self._since_sync_bytes += self.call_bytes
            self._state = "held"
        if self._state == "held" and self.wait_s <= _EPSILON:
            self._state, self._until_s = "idle", now + self.think_s

    @property
    def wait_s(self) -> float:
        """Time until the grant covers the last call."""
        missing = self._charged - self._granted
        if self.rate == inf or missing <= 0.0:
            return 0.0
        return missing / self.rate if self.rate > 0.0 else inf

    def advance(self, duration_s: float, service: float) -> None:
        """Let time pass, during which the storage serves it at a rate."""
        if self.rate < inf:
            self._granted += self.rate * duration_s
        if self._state == "inside":
            self.busy_s += duration_s
            self.left_bytes -= service * duration_s
        elif self._state == "held":
            self.held_up_s += duration_s

    def next_event_s(self, now: float, service: float) -> float:
        """Return the time until something changes if it is served at a rate."""
        if self._state == "inside":
            return self.left_bytes / service if service > 0.0 else inf
        return self.wait_s if self._state == "held" else self._until_s - now


@dataclass(slots=True)
class FluidStorage:
    """A storage and its callers; `run` is the loop."""

    capacity: Callable[[float], float]
    callers: list[Caller]
    write_factor: float = 1.0
    """Capacity for writes in parts of that for reads."""
    memory_bytes: float = 0.0
    """Writes go to memory of this size first."""
    one_by_one: bool = False
    """True: the calls are served in the order of their begin."""
    latency_s: float = 0.0
    """With `one_by_one`: time that the storage needs for each call, beside its bytes.
    It serves one call at a time."""
    memory_rate: float = 2e9
    now: float = 0.0
    dirty_bytes: float = 0.0

    def run(self, until_s: float) -> None:
        """Advance to `until_s`."""
        while self.now < until_s - _EPSILON:
            active = [caller for caller in self.callers if caller.is_active(self.now)]
            for caller in active:
                caller.begin(self.now)
            drained = self._drained()
            service = self._service(active, self.capacity(self.now) - drained)
            duration_s = min(STEP_S, until_s - self.now)
            for caller in active:
                event_s = caller.next_event_s(self.now, service.get(caller.key, 0.0))
                duration_s = min(duration_s, max(event_s, _EPSILON))
            absorbed = self._absorbed(service) if self.memory_bytes else 0.0
            self.dirty_bytes += (absorbed - drained) * duration_s
            self.dirty_bytes = max(self.dirty_bytes, 0.0)
            self.now += duration_s
            for caller in active:
                caller.advance(duration_s, service.get(caller.key, 0.0))
                if caller.syncs and self.dirty_bytes <= self._small_bytes:
                    caller._since_sync_bytes = 0.0
                caller.end(self.now)

    @property
    def _small_bytes(self) -> float:
        return self.capacity(self.now) * STEP_S

    def _drained(self) -> float:
        """Return the rate at which the storage empties the memory."""
        return self.capacity(self.now) if self.dirty_bytes > self._small_bytes else 0.0

    def _absorbed(self, service: dict[str, float]) -> float:
        return sum(
            service.get(caller.key, 0.0) for caller in self.callers if not caller.reads
        )

    def _service(self, active: list[Caller], capacity: float) -> dict[str, float]:
        """Return the rate at which each call inside is served."""
        inside = [caller for caller in active if caller._state == "inside"]
        service = dict[str, float]()
        if self.memory_bytes:
            writers = [caller for caller in inside if not caller.reads]
            room = self.dirty_bytes < self.memory_bytes
            rate = self.memory_rate if room else self.capacity(self.now)
            for caller in writers:
                service[caller.key] = 0.0 if caller.syncs else rate / len(writers)
            inside = [caller for caller in inside if caller.reads]
        return service | self._divided(inside, capacity)

    def _divided(self, inside: list[Caller], capacity: float) -> dict[str, float]:
        """Divide the capacity among calls: equally, or in order of their begin."""
        if self.latency_s:
            first = min(inside, key=_began_s, default=None)
            return {first.key: self.lone_rate(first)} if first else {}
        service = dict[str, float]()
        order = _began_s if self.one_by_one else _stream
        left = sorted(inside, key=order)
        for index, caller in enumerate(left):
            cost = 1.0 if caller.reads else 1.0 / self.write_factor
            share = capacity if self.one_by_one else capacity / (len(left) - index)
            service[caller.key] = min(share / cost, caller.stream)
            capacity -= service[caller.key] * cost
        return service

    def lone_rate(self, caller: Caller) -> float:
        """Return what a caller draws alone, on a storage with a latency."""
        moving_s = caller.call_bytes / self.capacity(self.now)
        return caller.call_bytes / (self.latency_s + moving_s)

    def grant(self, caller: Caller, rate: float) -> None:
        """Change the grant of a caller."""
        if caller.rate == inf:
            caller._granted = caller._charged = 0.0
        caller.rate = rate


def _began_s(caller: Caller) -> float:
    return caller._began_s


def _stream(caller: Caller) -> float:
    return caller.stream


class LearningSite:
    """A coordinator that learns the bandwidth of a `FluidStorage` on one node.

    Parameters
    ----------
    policy
        Name of the policy.
    known
        Bandwidths known from before, by kind.
    """

    def __init__(
        self,
        storage: FluidStorage,
        policy: str = "fair-share",
        known: dict[Kind, tuple[float, Reason]] | None = None,
    ) -> None:
        self.storage = storage
        config = AgentConfig("control", [], 0.05, 0.1, 3.0, inf, reads=True)
        self.coordinator = Coordinator(
            Controller(policy, 1e9, compiled=False),
            config,
            estimator=lambda _: BandwidthEstimator(known),
        )
        self._due = dict.fromkeys((caller.key for caller in storage.callers), 0.0)
        self._joined: set[str] = set()
        self.coordinator.receive("n", AgentHello([]), 0.0)
        self._decide()

    @property
    def now(self) -> float:
        return self.storage.now

    def run(self, duration_s: float) -> None:
        """Let the jobs run; report every 100 ms and when an operation begins."""
        until = self.now + duration_s
        while self.now < until - _EPSILON:
            due = [
                max(self._due[each.key], each.begin_s) for each in self.storage.callers
            ]
            self.storage.run(min(until, max(min(due), self.now + _EPSILON)))
            for caller in self.storage.callers:
                self._report(caller)

    def _report(self, caller: Caller) -> None:
        now, key = self.now, f"0:{caller.key}"
        if now < max(caller.begin_s, self._due[caller.key]) - _EPSILON:
            return
        if key not in self._joined:
            self._joined.add(key)
            joined = JobJoined(key, 0, "0", 0, 0.0, caller.storage)
            self.coordinator.receive("n", joined, now)
            self._send(caller, 0, inf)
        self._due[caller.key] = now + 0.1
        self._send(caller, 1, 0.0 if caller.is_active(now) else inf)
        self._decide()

    def _send(self, caller: Caller, begun: int, idle_s: float) -> None:
        usage = caller.usage
        is_read = caller.reads
        counters = JobCounters(
            f"0:{caller.key}",
            begun,
            usage.moved_bytes,
            usage.held_up_s,
            waiting=caller.is_held,
            idle_s=idle_s,
            quiet_s=idle_s,
            read_bytes=usage.read_bytes,
            written_bytes=usage.written_bytes,
            read_busy_s=usage.busy_s if is_read else 0.0,
            written_busy_s=0.0 if is_read else usage.busy_s,
        )
        report = CounterReport([counters], len(self._joined))
        self.coordinator.receive("n", report, self.now)

    def _decide(self) -> None:
        callers = {f"0:{caller.key}": caller for caller in self.storage.callers}
        for _, message in self.coordinator.decide(self.now).messages:
            if isinstance(message, Grants):
                for key, rate in message.rates.items():
                    self.storage.grant(callers[key], rate)

    @property
    def bandwidth(self) -> float | None:
        """What is believed now."""
        return self.coordinator.status(self.now).bandwidth

    def mean_bandwidth(self, duration_s: float) -> float:
        """Let the jobs run; return what is believed on average."""
        beliefs = []
        for _ in range(round(duration_s / 0.1)):
            self.run(0.1)
            beliefs.append(self.bandwidth or inf)
        return sum(beliefs) / len(beliefs)

    def shares(self, duration_s: float) -> dict[str, float]:
        """Let the jobs run; return each one's part of what is drawn."""
        before = {caller.key: caller.moved_bytes for caller in self.storage.callers}
        self.run(duration_s)
        drawn = {
            caller.key: caller.moved_bytes - before[caller.key]
            for caller in self.storage.callers
        }
        return {key: each / sum(drawn.values()) for key, each in drawn.items()}
