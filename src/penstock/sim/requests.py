# SPDX-License-Identifier: MIT
"""Requests one by one: clients, schedulers, servers, and messages between schedulers.

Every server has a scheduler of its own, the same object that a mount runs. A request
is cut into pieces by the layout of its application's files, and answered with the last
of them.

At equal times: completions, then changes of capacity, messages, requests that are
issued, and wake-ups that a scheduler asked for; among those of a kind, in the order in
which they were planned. A scheduler is asked what may go after each of these. Same
seed, same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import Any, Final

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.qos import (
    QosScheduler,
    Request,
    SchedulerSpec,
    ServiceReporter,
    Slo,
    get_scheduler,
)
from penstock.sim.requests_server import Server, ServerSpec
from penstock.workloads.clients import Clients, RateSegment

__all__ = ["Exchange", "RequestRun", "simulate_requests"]

_COMPLETION: Final = 0
_CAPACITY: Final = 1
_MESSAGE: Final = 2
_ISSUE: Final = 3
_WAKE: Final = 4


@dataclass(frozen=True, slots=True)
class Exchange:
    """How schedulers learn of service on other servers: by broadcast, or by layout."""

    threshold: float = inf
    """Service of an application (bytes) after which the others are told; inf: never."""
    late: float = 0.0
    """A message takes up to so long (s), uniformly; so one may overtake another."""
    lost: float = 0.0
    """Share of the messages that are lost."""
    layout: bool = False
    """Whether service elsewhere is inferred from the layout instead."""

    def __post_init__(self) -> None:
        good = {
            "threshold": self.threshold > 0,
            "late": 0 <= self.late < inf,
            "lost": 0 <= self.lost <= 1,
        }
        for name, fits in good.items():
            if not fits:
                raise InputError(
                    f"{getattr(self, name)!r} is out of range",
                    where=f"exchange.{name}",
                    remedy="a threshold above 0, 0 s or more, a share from 0 to 1",
                )


@dataclass(frozen=True)
class RequestRun:
    """What came of a simulation: a row per answered request, and the depths."""

    scheduler: str
    """Label."""
    applications: tuple[str, ...]
    application: NDArray[np.int64]
    """Index into `applications`, of every request."""
    issued: NDArray[np.float64]
    """When (s)."""
    answered: NDArray[np.float64]
    """When (s)."""
    size: NDArray[np.int64]
    """Bytes."""
    depths: tuple[NDArray[np.float64], ...]
    """By server: rows of (time, s; depth from then on)."""
    unanswered: int
    """Requests that were still under way at the end."""

    def of(self, application: str) -> NDArray[np.bool_]:
        """Return which requests are an application's."""
        mask: NDArray[np.bool_] = self.application == self.applications.index(
            application
        )
        return mask


def simulate_requests(
    scheduler: str,
    slos: Mapping[str, Slo],
    clients: Sequence[Clients],
    servers: Sequence[ServerSpec],
    until: float,
    *,
    exchange: Exchange | None = None,
    seed: int = 1,
) -> RequestRun:
    """Simulate until a time (s), with a scheduler for each server."""
    _check(clients, servers)
    maker = get_scheduler(scheduler)
    run = _RequestSimulation(
        maker, slos, clients, servers, exchange or Exchange(), seed
    )
    run.loop(until)
    return run.result(maker.label)


def _check(clients: Sequence[Clients], servers: Sequence[ServerSpec]) -> None:
    for group in clients:
        for server in group.servers:
            if not 0 <= server < len(servers):
                raise InputError(
                    f"there is no server {server}",
                    where=f"clients of {group.application}",
                    remedy=f"there are {len(servers)}, from 0 on",
                )
    if not clients:
        raise InputError("nobody issues requests")


@dataclass(slots=True)
class _Process:
    """One process of a group."""

    clients: Clients
    number: int
    """In its group."""
    random: Generator
    stage: RateSegment
    planned: float
    """When its next request would be issued, were the last one answered (s)."""
    issued: int = 0

    def file_offset(self) -> int:
        """Return which request of the group's file its next one is."""
        return self.issued * self.clients.processes + self.number


@dataclass(slots=True)
class _Call:
    """A request of a process, and its pieces that are under way."""

    process: _Process
    issued: float
    pieces: int


@dataclass(slots=True)
class _ScheduledServer:
    """A server with its scheduler."""

    name: str
    scheduler: QosScheduler
    server: Server
    teller: ServiceReporter | None
    version: int = 0
    """Of what is planned to complete: plans of an older one are void."""
    wake: float = inf
    depths: list[tuple[float, float]] = field(default_factory=list)


class _RequestSimulation:
    def __init__(
        self,
        maker: SchedulerSpec,
        slos: Mapping[str, Slo],
        clients: Sequence[Clients],
        servers: Sequence[ServerSpec],
        exchange: Exchange,
        seed: int,
    ) -> None:
        self._events: list[tuple[float, int, int, Any]] = []
        self._serial = 0
        self._exchange = exchange
        self._random = default_rng(SeedSequence((seed, 0)))
        self._calls: dict[Request, _Call] = {}
        self._done: list[tuple[str, float, float, int]] = []
        self._under_way = 0
        tells = exchange.threshold < inf and not exchange.layout
        self._nodes = [
            _ScheduledServer(
                str(index),
                maker.make(slos, 0.0),
                Server(spec),
                ServiceReporter(exchange.threshold) if tells else None,
            )
            for index, spec in enumerate(servers)
        ]
        self._applications = tuple(dict.fromkeys(c.application for c in clients))
        self._lay_out(clients)
        self._plan_changes(servers)
        self._start(clients, seed)

    def _lay_out(self, clients: Sequence[Clients]) -> None:
        used: dict[str, set[int]] = {}
        for group in clients:
            used.setdefault(group.application, set()).update(group.servers)
        factors = {application: len(servers) for application, servers in used.items()}
        for node in self._nodes:
            if self._exchange.layout:
                node.scheduler.spread(factors)
            node.depths.append((0.0, node.scheduler.depth))

    def _plan_changes(self, servers: Sequence[ServerSpec]) -> None:
        for node, spec in zip(self._nodes, servers, strict=True):
            for time, _ in spec.changes:
                self._plan(time, _CAPACITY, node)

    def _start(self, clients: Sequence[Clients], seed: int) -> None:
        for group, which in enumerate(clients):
            for number in range(which.processes):
                random = default_rng(SeedSequence((seed, 1, group, number)))
                found = which.first(number, 0.0)
                if found is not None:
                    time, stage = found
                    process = _Process(which, number, random, stage, time)
                    self._plan(time, _ISSUE, process)

    def _plan(self, time: float, kind: int, what: Any) -> None:
        self._serial += 1
        heappush(self._events, (time, kind, self._serial, what))

    def loop(self, until: float) -> None:
        """Handle one event after the other, in their total order."""
        handlers: dict[int, Callable[[Any, float], None]] = {
            _COMPLETION: self._complete,
            _CAPACITY: self._change,
            _MESSAGE: self._hear,
            _ISSUE: self._issue,
            _WAKE: self._wake,
        }
        events = self._events
        # The main loop.
        while events and events[0][0] <= until:
            now, kind, _, what = heappop(events)
            handlers[kind](what, now)

    def _complete(self, what: tuple[_ScheduledServer, int], now: float) -> None:
        node, version = what
        if version != node.version:
            return
        request = node.server.take(now)
        node.scheduler.complete(request, request.size, now)
        self._ask(node, now)
        call = self._calls.pop(request)
        call.pieces -= 1
        if not call.pieces:
            self._answer(call, now)

    def _answer(self, call: _Call, now: float) -> None:
        clients = call.process.clients
        self._under_way -= 1
        self._done.append((clients.application, call.issued, now, clients.size))
        if clients.closed:
            self._go_on(call.process, now)

    def _change(self, node: _ScheduledServer, now: float) -> None:
        node.server.refresh(now)
        self._expect(node)

    def _hear(
        self, what: tuple[_ScheduledServer, str, Mapping[str, int]], now: float
    ) -> None:
        node, server, totals = what
        node.scheduler.hear(server, totals)
        self._ask(node, now)

    def _issue(self, process: _Process, now: float) -> None:
        clients = process.clients
        pieces = clients.pieces(process.file_offset())
        call = _Call(process, now, len(pieces))
        self._under_way += 1
        process.issued += 1
        self._space(process, now)
        for index, size in pieces.items():
            request = Request("write", size, clients.application, process.number)
            self._calls[request] = call
            node = self._nodes[index]
            node.scheduler.arrive(request, now)
            self._ask(node, now)
        if not clients.closed:
            self._go_on(process, now)

    def _space(self, process: _Process, now: float) -> None:
        """Set when the next request of a process would be issued."""
        clients = process.clients
        period = clients.period(process.stage, now)
        if clients.jitter and period:
            period *= 1 + clients.jitter * process.random.uniform(-1.0, 1.0)
        process.planned = now + period

    def _go_on(self, process: _Process, now: float) -> None:
        """Plan the next request of a process, in this stage or a later one."""
        time = max(now, process.planned)
        if time >= process.stage.end:
            found = process.clients.first(process.number, time)
            if found is None:
                return
            time, process.stage = found
        self._plan(time, _ISSUE, process)

    def _wake(self, node: _ScheduledServer, now: float) -> None:
        if now == node.wake:
            node.wake = inf
            self._ask(node, now)

    def _ask(self, node: _ScheduledServer, now: float) -> None:
        """Send what may go; plan what follows from it."""
        scheduler = node.scheduler
        gone = scheduler.dispatch(now)
        for request in gone:
            node.server.put(request, now)
        self._expect(node)
        if scheduler.depth != node.depths[-1][1]:
            node.depths.append((now, scheduler.depth))
        if scheduler.wake < inf and scheduler.wake != node.wake:
            node.wake = max(now, scheduler.wake)
            self._plan(node.wake, _WAKE, node)
        if gone and node.teller is not None:
            self._tell(node, node.teller, now)

    def _expect(self, node: _ScheduledServer) -> None:
        """Plan the next completion anew."""
        node.version += 1
        time = node.server.next
        if time < inf:
            self._plan(time, _COMPLETION, (node, node.version))

    def _tell(
        self, node: _ScheduledServer, teller: ServiceReporter, now: float
    ) -> None:
        totals = teller.news(node.scheduler.served)
        if totals is None:
            return
        for other in self._nodes:
            if other is not node:
                lost, late = self._random.random(2)
                if lost >= self._exchange.lost:
                    time = now + late * self._exchange.late
                    self._plan(time, _MESSAGE, (other, node.name, totals))

    def result(self, label: str) -> RequestRun:
        """Return what was noted."""
        numbers = {name: k for k, name in enumerate(self._applications)}
        rows = self._done
        return RequestRun(
            label,
            self._applications,
            np.array([numbers[name] for name, _, _, _ in rows], dtype=np.int64),
            np.array([issued for _, issued, _, _ in rows], dtype=np.float64),
            np.array([answered for _, _, answered, _ in rows], dtype=np.float64),
            np.array([size for _, _, _, size in rows], dtype=np.int64),
            tuple(np.array(node.depths, dtype=np.float64) for node in self._nodes),
            self._under_way,
        )
