# SPDX-License-Identifier: MIT
"""Share throughput in proportion to the SLOs, a fixed number at once.

Rule
    Start-time fair queueing. A request of application i, cost c, weight t_i, has tags

        S = max(v, F' + d / t_i),    F = S + c / t_i,

    v: start tag of the request sent last; F': finish tag of the application's request
    before; d: its service elsewhere since that one (`penstock.qos.elsewhere`). The
    smallest start tag goes first; of equals the one that was given its tag first.

Parameters
    depth
        D, requests at the storage at once; 0: any number. Default 8.

Properties
    O(log m) per request, m applications that wait. While i and j both wait, what was
    sent for them differs by no more than one request each:

        |W_i / t_i - W_j / t_j| <= c_i / t_i + c_j / t_j,

    c_i: the largest cost of a request of i; what has been completed, by D + 1 times as
    much. Nobody starves. What a request did not use, for it ended short or failed, is
    taken off the next ones, but for the least cost: a call that fails is not free.

Source
    papers/5 sections 2 and 3.1: SFQ(D) (Jin, Chase, Kaur 2004), DSFQ (Wang, Merchant
    2007). Tags are given to the head of an application's queue, which is the same:
    while a request waits, v is not beyond the tags of the one before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

from penstock.qos.elsewhere import Layout, RemoteService, ReportedService
from penstock.qos.request import Request
from penstock.qos.scheduler import DEPTH, OneQueue, Queue, depth_parameter
from penstock.qos.slo import Slo, slo_of

__all__ = ["PARAMETERS", "StartTags", "TaggedQueue", "make"]

PARAMETERS: Final = (depth_parameter(DEPTH),)


class TaggedQueue:
    """The requests of one application that wait, and its tags."""

    __slots__ = (
        *("application", "charged", "finish", "here", "last", "latency", "requests"),
        *("there", "unused", "weight"),
    )

    def __init__(self, application: str, slo: Slo) -> None:
        self.application = application
        self.requests: deque[Request] = deque()
        self.finish = 0.0
        self.last = 0
        """Cost of the request that went last."""
        self.unused = 0
        """Bytes that were charged and not used; off the requests to come."""
        self.charged = 0
        """What the request that went last was charged, the unused taken off."""
        self.here = self.there = 0.0
        """Service on this server, and on others as far as is known (bytes)."""
        self.promise(slo)

    def part(self) -> float:
        """Return the part of its service that it has here."""
        return self.here / (self.here + self.there) if self.here else 1.0

    def promise(self, slo: Slo) -> None:
        """Set the SLO."""
        self.weight = slo.throughput
        self.latency = slo.latency


F = TypeVar("F", bound=TaggedQueue)


class StartTags(Queue, Generic[F]):
    """Requests in the order of their start tags.

    Parameters
    ----------
    flow
        What keeps the requests of one application.
    """

    def __init__(self, slos: Mapping[str, Slo], flow: type[F]) -> None:
        self.flows: dict[str, F] = {}
        self._slos = slos
        self._flow = flow
        self._virtual = 0.0
        self._heads: list[tuple[float, int, F]] = []
        self._number = 0
        self.waiting = 0
        """Number of requests."""
        self._heard = ReportedService()
        self._elsewhere: RemoteService = self._heard

    def __len__(self) -> int:
        return self.waiting

    def flow_of(self, application: str) -> F:
        """Return the queue of an application."""
        flow = self.flows.get(application)
        if flow is None:
            flow = self._flow(application, slo_of(self._slos, application))
            self.flows[application] = flow
        return flow

    def push(self, request: Request) -> None:
        """Take in a request that has just arrived."""
        flow = self.flow_of(request.application)
        flow.requests.append(request)
        self.waiting += 1
        if len(flow.requests) == 1:
            self._tag(flow)

    def pop(self) -> Request:
        """Take out the request with the smallest start tag."""
        start, _, flow = heappop(self._heads)
        request = flow.requests.popleft()
        self._charge(flow, start, request)
        if flow.requests:
            self._tag(flow)
        return request

    def refund(self, request: Request, unused: int) -> None:
        """Take what was not used off the tags to come."""
        self.flow_of(request.application).unused += unused

    def hear(self, server: str, totals: Mapping[str, float]) -> None:
        """Learn what another server has served since it began (bytes)."""
        self._heard.hear(server, totals)

    def spread(self, factors: Mapping[str, int]) -> None:
        """Infer service elsewhere from the number of servers in use."""
        self._elsewhere = Layout(factors)

    def change(self, slos: Mapping[str, Slo]) -> None:
        """Set other weights, for the tags to come."""
        self._slos = dict(slos)
        for application, flow in self.flows.items():
            flow.promise(slo_of(slos, application))

    def _charge(self, flow: F, start: float, request: Request) -> None:
        """Count a request that had the start tag `start`."""
        self.waiting -= 1
        if start > self._virtual:
            self._virtual = start
        flow.last = cost = request.cost
        if flow.unused:
            back = min(flow.unused, cost)
            flow.unused -= back
            cost -= back
        flow.charged = cost
        flow.here += cost
        flow.finish = start + cost / flow.weight

    def _tag(self, flow: F) -> None:
        """Give the head of a queue its start tag."""
        heappush(self._heads, (self._next_start(flow), self._next_number(), flow))

    def _next_number(self) -> int:
        """Return a number that decides between equal tags: first given, first."""
        self._number += 1
        return self._number

    def _next_start(self, flow: F) -> float:
        """Return S of the next request of an application."""
        return max(self._virtual, self._own_start(flow))

    def _own_start(self, flow: F) -> float:
        """Return F' + d / t_i: where the application stands, whatever others do."""
        delay = self._elsewhere.since(flow.application, flow.charged)
        flow.there += delay
        return flow.finish + delay / flow.weight


def make(slos: Mapping[str, Slo], now: float, depth: float) -> OneQueue:  # noqa: ARG001
    """Return a scheduler that begins now."""
    return OneQueue(StartTags(slos, TaggedQueue), depth)
