# SPDX-License-Identifier: MIT
"""Simulate single requests: clients, schedulers, servers, reports.

Every server has its own scheduler, the same object that a mount runs; or every client
node has one (``schedulers_at="nodes"``), which sends to all servers; or every client
node has one for each server (``schedulers_at="mounts"``). A client request is split
over the servers by the layout of its application's files, and is answered when its last
part is complete.

Order of events at equal times: completions, answers that arrive later than these,
changes of capacity, reports from other servers, messages of central credit, new
requests, wake-ups that a scheduler asked for.
Events of one kind are handled in the order in which they were planned. After each event
the scheduler concerned is asked which requests to send
(`_RequestSimulation._dispatch`). The same seed gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.qos import (
    CreditScheduler,
    QosScheduler,
    Request,
    Scheduler,
    ServiceReporter,
    Slo,
    get_scheduler,
    slo_of,
)
from penstock.qos.credit.front import with_credit
from penstock.sim.requests.credit import CreditMember, CreditMessages
from penstock.sim.requests.server import Server, ServerSpec
from penstock.workloads.clients import Clients, RateSegment

__all__ = ["Exchange", "RequestRun", "SchedulersAt", "simulate_requests"]

SchedulersAt: TypeAlias = Literal["servers", "nodes", "mounts"]

# Event kinds; at equal times the lower number goes first.
_COMPLETION: Final = 0
_ANSWER: Final = 1
_CAPACITY_CHANGE: Final = 2
_REPORT: Final = 3
_CREDIT: Final = 4
_ISSUE: Final = 5
_WAKE: Final = 6


@dataclass(frozen=True, slots=True)
class Exchange:
    """How schedulers learn of service on other servers: from reports, or by layout."""

    threshold_bytes: float = inf
    """Report after this much service of an application; inf: never."""
    max_delay_s: float = 0.0
    """A report takes a uniform random time up to this; reports may overtake."""
    loss_share: float = 0.0
    """Fraction of the reports that are lost."""
    layout: bool = False
    """Infer service on other servers from the layout instead."""
    credit: bool = False
    """Schedulers at client nodes share the servers by central credit instead
    (`penstock.qos.credit`); delay and loss hold for its messages. Schedulers at nodes
    share all servers as one storage; otherwise each server is one."""
    silent_s: Mapping[str, float] = field(default_factory=dict)
    """With `credit`: name of a scheduler (number of the node, or "node/server"), or
    "central", -> from when it sends nothing."""

    def __post_init__(self) -> None:
        valid = {
            "threshold_bytes": self.threshold_bytes > 0,
            "max_delay_s": 0 <= self.max_delay_s < inf,
            "loss_share": 0 <= self.loss_share <= 1,
        }
        for name, is_valid in valid.items():
            if not is_valid:
                raise InputError(
                    f"{getattr(self, name)!r} is out of range",
                    where=f"exchange.{name}",
                    remedy="give a threshold above 0, a delay of at least 0 s, "
                    "a share from 0 to 1",
                )


@dataclass(frozen=True)
class RequestRun:
    """Result of a simulation: one row per answered request, and the depths."""

    scheduler: str
    """Label of the scheduler."""
    applications: tuple[str, ...]
    application: NDArray[np.int64]
    """Index into `applications`, by request."""
    issued_s: NDArray[np.float64]
    """Time of issue, by request."""
    answered_s: NDArray[np.float64]
    """Time of the answer, by request."""
    size_bytes: NDArray[np.int64]
    """Size, by request."""
    depths: tuple[NDArray[np.float64], ...]
    """By scheduler: rows of (time in s, depth from then on)."""
    unanswered: int
    """Number of requests without an answer at the end."""

    def requests_of(self, application: str) -> NDArray[np.bool_]:
        """Return a mask of the requests of one application."""
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
    schedulers_at: SchedulersAt = "servers",
    answers_until: float = 0.0,
    seed: int = 1,
) -> RequestRun:
    """Simulate until the time `until` (s), with schedulers where the module says.

    After that no requests are issued, and the simulation goes on until all requests are
    answered, but not beyond `answers_until` (s).
    """
    _check(clients, servers)
    spec = get_scheduler(scheduler)
    exchange = exchange or Exchange()
    nodes = sorted({group.node for group in clients})
    places = [(node, server) for node in nodes for server in range(len(servers))]
    names = dict.fromkeys(_point_name(schedulers_at, *place) for place in places)
    points = [_point(name, spec.make(slos, 0.0), exchange) for name in names]
    simulation = _RequestSimulation(
        points,
        clients,
        servers,
        exchange,
        seed,
        schedulers_at=schedulers_at,
        slos=slos,
    )
    simulation.run(until)
    simulation.run_until_answered(answers_until)
    return simulation.result(spec.label)


def _point_name(schedulers_at: SchedulersAt, node: int, server: int) -> str:
    """Return the name of the scheduler for the requests of a node to a server."""
    if schedulers_at == "servers":
        return str(server)
    return str(node) if schedulers_at == "nodes" else f"{node}/{server}"


def _storage_of(schedulers_at: SchedulersAt, name: str) -> str:
    """Return the storage that a scheduler shares with others by credit."""
    return "all servers" if schedulers_at == "nodes" else name.rpartition("/")[2]


def _check(clients: Sequence[Clients], servers: Sequence[ServerSpec]) -> None:
    """Raise `InputError` if there are no clients or if one names a missing server."""
    for group in clients:
        for server in group.servers:
            if not 0 <= server < len(servers):
                raise InputError(
                    f"there is no server {server}",
                    where=f"clients of {group.application}",
                    remedy=f"use the numbers 0 to {len(servers) - 1}",
                )
    if not clients:
        raise InputError("there are no clients", remedy="give at least one group")


@dataclass(slots=True)
class _Process:
    """One process of a group of clients."""

    clients: Clients
    number: int
    """Index in the group."""
    random: Generator
    segment: RateSegment
    planned_s: float
    """Earliest time of its next request."""
    issued: int = 0
    """Number of requests issued."""

    def file_offset(self) -> int:
        """Return the index of its next request in the file of the group."""
        return self.issued * self.clients.processes + self.number


@dataclass(slots=True)
class _ClientRequest:
    """A request of a process, and the number of its incomplete parts."""

    process: _Process
    issued_s: float
    incomplete: int


@dataclass(slots=True)
class _Point:
    """A scheduler, at a server or at a client node."""

    name: str
    scheduler: QosScheduler
    entry: Scheduler
    """Where requests arrive: the scheduler, or a stage in front of it."""
    credit: CreditScheduler | None
    """Keeps the rates of central credit; None: there is no central credit."""
    reporter: ServiceReporter | None
    wake_s: float = inf
    depths: list[tuple[float, float]] = field(default_factory=list)


def _point(name: str, scheduler: QosScheduler, exchange: Exchange) -> _Point:
    reports = exchange.threshold_bytes < inf and not exchange.layout
    reporter = ServiceReporter(exchange.threshold_bytes) if reports else None
    credit = with_credit(scheduler) if exchange.credit else None
    return _Point(name, scheduler, credit or scheduler, credit, reporter)


@dataclass(slots=True)
class _Storage:
    """A server, and the version of its planned completion."""

    spec: ServerSpec
    server: Server
    version: int = 0
    """Events of older versions are void."""


class _Part(NamedTuple):
    """The part of a client request that goes to one server."""

    client_request: _ClientRequest
    point: _Point
    storage: _Storage


class _RequestSimulation:
    """The event queue and the state of one simulation."""

    def __init__(
        self,
        points: Sequence[_Point],
        clients: Sequence[Clients],
        servers: Sequence[ServerSpec],
        exchange: Exchange,
        seed: int,
        *,
        schedulers_at: SchedulersAt,
        slos: Mapping[str, Slo],
    ) -> None:
        self._events: list[tuple[float, int, int, Any]] = []
        self._serial = 0
        self._exchange = exchange
        self._random = default_rng(SeedSequence((seed, 0)))
        self._delay_random = default_rng(SeedSequence((seed, 2)))
        self._parts: dict[Request, _Part] = {}
        self._answered: list[tuple[str, float, float, int]] = []
        self._unanswered = 0
        self._points = {point.name: point for point in points}
        self._schedulers_at = schedulers_at
        self._storages = [_Storage(spec, Server(spec)) for spec in servers]
        self._applications = tuple(dict.fromkeys(c.application for c in clients))
        self._set_layouts(clients)
        self._plan_capacity_changes(servers)
        self._plan_first_requests(clients, seed)
        self.credit: CreditMessages | None = None
        if exchange.credit:
            self.credit = self._credit_messages(slos)

    def _credit_messages(self, slos: Mapping[str, Slo]) -> CreditMessages:
        """Start the messages between the schedulers and the central allocator."""
        members = {
            point.name: CreditMember(
                _storage_of(self._schedulers_at, point.name),
                point.scheduler,
                point.credit,
            )
            for point in self._points.values()
            if point.credit is not None
        }
        weights = {
            name: slo_of(slos, name).throughput_bytes_per_s
            for name in self._applications
        }
        return CreditMessages(
            members,
            weights,
            self._exchange,
            self._random,
            lambda time, action: self._plan(time, _CREDIT, action),
        )

    def _name_of(self, node: int, server: int) -> str:
        return _point_name(self._schedulers_at, node, server)

    def _set_layouts(self, clients: Sequence[Clients]) -> None:
        """Tell the schedulers the layout factors; record the first depths."""
        used: dict[str, set[str]] = {}
        for group in clients:
            names = (self._name_of(group.node, server) for server in group.servers)
            used.setdefault(group.application, set()).update(names)
        factors = {application: len(places) for application, places in used.items()}
        for point in self._points.values():
            if self._exchange.layout:
                point.scheduler.set_layout(factors)
            point.depths.append((0.0, point.scheduler.depth))

    def _plan_capacity_changes(self, specs: Sequence[ServerSpec]) -> None:
        for storage, spec in zip(self._storages, specs, strict=True):
            for time, _ in spec.changes:
                self._plan(time, _CAPACITY_CHANGE, storage)

    def _plan_first_requests(self, clients: Sequence[Clients], seed: int) -> None:
        for index, group in enumerate(clients):
            for number in range(group.processes):
                random = default_rng(SeedSequence((seed, 1, index, number)))
                first = group.first(number, 0.0)
                if first is not None:
                    time, segment = first
                    process = _Process(group, number, random, segment, time)
                    self._plan(time, _ISSUE, process)

    def _plan(self, time: float, kind: int, subject: Any) -> None:
        """Add an event to the queue."""
        self._serial += 1
        heappush(self._events, (time, kind, self._serial, subject))

    def run(self, until: float) -> None:
        """Handle all events up to the time `until` (s), in their total order.

        The order is (time, kind, serial number); see the module for the kinds.
        """
        events, handlers = self._events, self._handlers()
        # Main loop of the request simulator.
        while events and events[0][0] <= until:
            now, kind, _, subject = heappop(events)
            handlers[kind](subject, now)

    def run_until_answered(self, until: float) -> None:
        """Issue nothing more; go on until all is answered, or to the time `until`."""
        events, handlers = self._events, self._handlers()
        while self._unanswered and events and events[0][0] <= until:
            now, kind, _, subject = heappop(events)
            if kind != _ISSUE:
                handlers[kind](subject, now)

    def _handlers(self) -> dict[int, Callable[[Any, float], None]]:
        """Return what handles the events of each kind."""
        return {
            _COMPLETION: self._on_completion,
            _ANSWER: self._on_answer,
            _CAPACITY_CHANGE: self._on_capacity_change,
            _REPORT: self._on_report,
            _CREDIT: self._on_credit,
            _ISSUE: self._on_issue,
            _WAKE: self._on_wake,
        }

    def _on_completion(self, subject: tuple[_Storage, int], now: float) -> None:
        storage, version = subject
        if version != storage.version:
            return
        request = storage.server.take(now)
        self._plan_completion(storage)
        delay_s = self._delay_s(storage)
        if delay_s:
            self._plan(now + delay_s, _ANSWER, request)
        else:
            self._on_answer(request, now)

    def _delay_s(self, storage: _Storage) -> float:
        """Return the time from the end of a service to its answer."""
        delays_s = storage.spec.delays_s
        if len(delays_s) == 1:
            return delays_s[0]
        return delays_s[self._delay_random.integers(len(delays_s))]

    def _on_answer(self, request: Request, now: float) -> None:
        """Tell the scheduler, and the client if it was the last part."""
        client_request, point, _ = self._parts.pop(request)
        point.entry.complete(request, request.size_bytes, now)
        self._dispatch(point, now)
        client_request.incomplete -= 1
        if not client_request.incomplete:
            self._answer(client_request, now)

    def _answer(self, client_request: _ClientRequest, now: float) -> None:
        """Record an answer; a closed-loop process goes on."""
        clients = client_request.process.clients
        self._unanswered -= 1
        self._answered.append(
            (clients.application, client_request.issued_s, now, clients.size)
        )
        if clients.closed:
            self._plan_next_request(client_request.process, now)

    def _on_capacity_change(self, storage: _Storage, now: float) -> None:
        storage.server.refresh(now)
        self._plan_completion(storage)

    def _on_report(
        self,
        subject: tuple[_Point, str, Mapping[str, int]],
        now: float,
    ) -> None:
        point, sender, served_bytes = subject
        point.scheduler.record_remote_service(sender, served_bytes, now)
        self._dispatch(point, now)

    def _on_credit(self, action: Callable[[float], str | None], now: float) -> None:
        changed = action(now)
        if changed is not None:
            self._dispatch(self._points[changed], now)

    def _on_issue(self, process: _Process, now: float) -> None:
        clients = process.clients
        parts = clients.pieces(process.file_offset())
        client_request = _ClientRequest(process, now, len(parts))
        self._unanswered += 1
        process.issued += 1
        self._set_planned_time(process, now)
        for index, size_bytes in parts.items():
            request = Request("write", size_bytes, clients.application, process.number)
            point = self._points[self._name_of(clients.node, index)]
            self._parts[request] = _Part(client_request, point, self._storages[index])
            point.entry.arrive(request, now)
            self._dispatch(point, now)
        if not clients.closed:
            self._plan_next_request(process, now)

    def _set_planned_time(self, process: _Process, now: float) -> None:
        """Set the earliest time of the next request: one period from now."""
        clients = process.clients
        period_s = clients.period(process.segment, now)
        if clients.jitter and period_s:
            period_s *= 1 + clients.jitter * process.random.uniform(-1.0, 1.0)
        process.planned_s = now + period_s

    def _plan_next_request(self, process: _Process, now: float) -> None:
        """Plan the next request of a process, in this rate segment or a later one."""
        time = max(now, process.planned_s)
        if time >= process.segment.end:
            first = process.clients.first(process.number, time)
            if first is None:
                return
            time, process.segment = first
        self._plan(time, _ISSUE, process)

    def _on_wake(self, point: _Point, now: float) -> None:
        if now == point.wake_s:
            point.wake_s = inf
            self._dispatch(point, now)

    def _dispatch(self, point: _Point, now: float) -> None:
        """Send what the scheduler allows; plan completions, wake-up and reports."""
        scheduler, entry = point.scheduler, point.entry
        to_send = entry.dispatch(now)
        for request in to_send:
            storage = self._parts[request].storage
            storage.server.put(request, now)
            self._plan_completion(storage)
        if scheduler.depth != point.depths[-1][1]:
            point.depths.append((now, scheduler.depth))
        if entry.wake_s < inf and entry.wake_s != point.wake_s:
            point.wake_s = max(now, entry.wake_s)
            self._plan(point.wake_s, _WAKE, point)
        if to_send and point.reporter is not None:
            self._report(point, point.reporter, now)

    def _plan_completion(self, storage: _Storage) -> None:
        """Plan the next completion, and void the one planned before."""
        storage.version += 1
        time = storage.server.next
        if time < inf:
            self._plan(time, _COMPLETION, (storage, storage.version))

    def _report(self, point: _Point, reporter: ServiceReporter, now: float) -> None:
        """Send a report to all other schedulers if one is due."""
        report = reporter.next_report(point.scheduler.served_bytes)
        if report is None:
            return
        for other in self._points.values():
            if other is not point:
                lost, delay = self._random.random(2)
                if lost >= self._exchange.loss_share:
                    time = now + delay * self._exchange.max_delay_s
                    self._plan(time, _REPORT, (other, point.name, report))

    def result(self, label: str) -> RequestRun:
        """Return the answered requests and the depths."""
        numbers = {name: k for k, name in enumerate(self._applications)}
        rows = self._answered
        return RequestRun(
            label,
            self._applications,
            np.array([numbers[name] for name, _, _, _ in rows], dtype=np.int64),
            np.array([issued_s for _, issued_s, _, _ in rows], dtype=np.float64),
            np.array([answered_s for _, _, answered_s, _ in rows], dtype=np.float64),
            np.array([size for _, _, _, size in rows], dtype=np.int64),
            tuple(
                np.array(point.depths, dtype=np.float64)
                for point in self._points.values()
            ),
            self._unanswered,
        )
