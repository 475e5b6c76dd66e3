# SPDX-License-Identifier: MIT
"""A storage in small steps of time, with jobs that control paces: for pure tests.

Every job has one caller that moves `call_bytes` per call, and waits in the call until
the grant covers it, as the preload library does. Callers inside the storage share its
capacity equally, up to what a single stream can draw. Writes may go to memory first,
which the storage empties; a full memory lets writes wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from penstock.live.control.bandwidth import BandwidthEstimator, Kind, Reason, Usage
from penstock.live.control.controller import Controller
from penstock.live.control.coordinator import Coordinator
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    Grants,
    JobCounters,
    JobJoined,
)

__all__ = ["Caller", "FluidStorage", "LearningSite"]

STEP_S = 0.001
CREDIT_S = 0.1


@dataclass(slots=True)
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


@dataclass(slots=True)
class FluidStorage:
    """A storage and its callers; `run` is the loop."""

    capacity: Callable[[float], float]
    callers: list[Caller]
    write_factor: float = 1.0
    """Capacity for writes in parts of that for reads."""
    memory_bytes: float = 0.0
    """Writes go to memory of this size first."""
    memory_rate: float = 2e9
    now: float = 0.0
    dirty_bytes: float = 0.0
    moved_log: list[tuple[float, ...]] = field(default_factory=list)

    def step(self) -> None:
        """Advance by `STEP_S`."""
        active = [caller for caller in self.callers if caller.is_active(self.now)]
        for caller in active:
            self._begin(caller)
        inside = [caller for caller in active if caller._state == "inside"]
        self._serve(inside)
        for caller in active:
            self._end(caller)
        self.now += STEP_S

    def _begin(self, caller: Caller) -> None:
        if caller.rate < inf:
            caller._granted += caller.rate * STEP_S
        if caller._state == "idle" and self.now >= caller._until_s:
            caller._state, caller.left_bytes = "inside", caller.call_bytes
            if caller.rate < inf:
                least = caller._granted - CREDIT_S * caller.rate
                caller._charged = max(caller._charged, least) + caller.call_bytes

    def _serve(self, inside: list[Caller]) -> None:
        """Move bytes of the calls inside; several calls of a caller fit in a step."""
        budget = self.capacity(self.now) * STEP_S
        absorbing = self.memory_bytes > 0.0
        writers = [caller for caller in inside if not caller.reads]
        if absorbing:
            drained = min(self.dirty_bytes, budget)
            self.dirty_bytes -= drained
            budget -= drained
            for caller in writers:
                room = self.memory_bytes - self.dirty_bytes
                syncs = caller._since_sync_bytes >= caller.sync_bytes
                if syncs:
                    if self.dirty_bytes <= 0.0:
                        caller._since_sync_bytes = 0.0
                    continue
                part = min(
                    caller.left_bytes, room, self.memory_rate * STEP_S / len(writers)
                )
                caller.left_bytes -= part
                self.dirty_bytes += part
            inside = [caller for caller in inside if caller.reads]
        left = [caller for caller in inside if caller.left_bytes > 0.0]
        limits = {caller.key: caller.stream * STEP_S for caller in left}
        while left and budget > 1e-6:
            share = budget / len(left)
            for caller in list(left):
                cost = 1.0 if caller.reads else 1.0 / self.write_factor
                part = min(share / cost, caller.left_bytes, limits[caller.key])
                caller.left_bytes -= part
                limits[caller.key] -= part
                budget -= part * cost
                if caller.left_bytes <= 0.0 or limits[caller.key] <= 1e-9:
                    left.remove(caller)

    def _end(self, caller: Caller) -> None:
        if caller._state == "inside":
            caller.busy_s += STEP_S
            if caller.left_bytes <= 0.0:
                caller.moved_bytes += caller.call_bytes
                caller._since_sync_bytes += caller.call_bytes
                caller._state = "held"
        elif caller._state == "held":
            caller.held_up_s += STEP_S
        if caller._state == "held" and (
            caller.rate == inf or caller._granted >= caller._charged
        ):
            caller._state, caller._until_s = "idle", self.now + caller.think_s

    def grant(self, caller: Caller, rate: float) -> None:
        """Change the grant of a caller."""
        if caller.rate == inf:
            caller._granted = caller._charged = 0.0
        caller.rate = rate


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
        while self.now < until:
            self.storage.step()
            for caller in self.storage.callers:
                self._report(caller)

    def _report(self, caller: Caller) -> None:
        now, key = self.now, f"0:{caller.key}"
        if now < caller.begin_s or now < self._due[caller.key]:
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

    def shares(self, duration_s: float) -> dict[str, float]:
        """Let the jobs run; return each one's part of what is drawn."""
        before = {caller.key: caller.moved_bytes for caller in self.storage.callers}
        self.run(duration_s)
        drawn = {
            caller.key: caller.moved_bytes - before[caller.key]
            for caller in self.storage.callers
        }
        return {key: each / sum(drawn.values()) for key, each in drawn.items()}
