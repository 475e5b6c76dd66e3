# SPDX-License-Identifier: MIT
"""Share throughput in proportion to the SLOs, at a fixed depth (SFQ(D), DSFQ).

Rule
    Start-time fair queueing. A request of application i with cost c (bytes) and weight
    t_i has the tags

        S = max(v, F' + d / t_i)     (start tag)
        F = S + c / t_i              (finish tag)

    where v is the virtual time (the start tag of the request sent last), F' the finish
    tag of the application's previous request, and d its service on other servers since
    that request (`penstock.qos.remote_service`). The smallest start tag goes first;
    among equal tags, the tag that was assigned first.

Parameters
    depth
        D, requests at the storage at once; 0: any number. Default 8.

Properties
    O(log m) per request, with m applications that have queued requests. While i and j
    both have queued requests, the service W sent for them differs by at most one
    request each:

        |W_i / t_i - W_j / t_j| <= c_i / t_i + c_j / t_j,

    where c_i is the largest cost of a request of i. For completed service the bound is
    D + 1 times as large. No application starves. If a request fails or ends short, the
    unused part of its cost is subtracted from the cost of the application's next
    requests; the minimum cost is always charged, so that failed calls are not free.

Source
    Two-level scheduling, sections 2 and 3.1: SFQ(D) (Jin, Chase, Kaur 2004), DSFQ
    (Wang, Merchant 2007). Only the head of each application's queue has a tag. This
    gives the same order: while a request is queued, v does not pass the tags of the
    request before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

from penstock.qos.guarantees import Guarantees
from penstock.qos.remote_service import Layout, RemoteService, ReportedService
from penstock.qos.request import Request
from penstock.qos.scheduler import DEPTH, Queue, SingleQueueScheduler, depth_parameter
from penstock.qos.slo import Slo, slo_of

__all__ = ["PARAMETERS", "ApplicationQueues", "StartTagQueue", "TaggedQueue", "make"]

PARAMETERS: Final = (depth_parameter(DEPTH),)


class TaggedQueue:
    """The queued requests of one application, its finish tag and its service."""

    __slots__ = (
        *("application", "charged_bytes", "finish_tag", "last_cost_bytes", "latency_s"),
        *("local_bytes", "remote_bytes", "requests", "unused_bytes", "weight"),
    )

    def __init__(self, application: str, slo: Slo) -> None:
        self.application = application
        self.requests: deque[Request] = deque()
        self.finish_tag = 0.0
        """F' of the application's next request."""
        self.last_cost_bytes = 0
        """Cost of the request sent last."""
        self.unused_bytes = 0
        """Refunds that are not yet subtracted from the cost of later requests."""
        self.charged_bytes = 0
        """Cost of the request sent last, minus the refunds subtracted from it."""
        self.local_bytes = self.remote_bytes = 0.0
        """Service on this server, and on other servers as far as it is known."""
        self.set_slo(slo)

    def local_share(self) -> float:
        """Return the fraction of the application's service that is on this server."""
        if not (self.local_bytes or self.remote_bytes):
            return 1.0
        return self.local_bytes / (self.local_bytes + self.remote_bytes)

    def set_slo(self, slo: Slo) -> None:
        """Set the weight t_i (bytes/s) and the latency bound l_i."""
        self.weight = slo.throughput_bytes_per_s
        self.latency_s = slo.latency_s


F = TypeVar("F", bound=TaggedQueue)


class ApplicationQueues(Generic[F]):
    """The queues of all applications, with the start tags of their first requests.

    A subclass decides which request goes next.

    Parameters
    ----------
    queue_class
        Class of the per-application queues.
    """

    def __init__(self, slos: Mapping[str, Slo], queue_class: type[F]) -> None:
        self.queues: dict[str, F] = {}
        self._slos = slos
        self._queue_class = queue_class
        self._virtual_time = 0.0
        self._heads: list[tuple[float, int, F]] = []
        self._number = 0
        self.waiting = 0
        """Number of queued requests."""
        self._reported = ReportedService()
        self._remote_service: RemoteService = self._reported

    def __len__(self) -> int:
        return self.waiting

    def queue_of(self, application: str) -> F:
        """Return the queue of an application; create it at the first call."""
        queue = self.queues.get(application)
        if queue is None:
            queue = self._queue_class(application, slo_of(self._slos, application))
            self.queues[application] = queue
        return queue

    def push(self, request: Request) -> None:
        """Add a request that has just arrived."""
        queue = self.queue_of(request.application)
        queue.requests.append(request)
        self.waiting += 1
        if len(queue.requests) == 1:
            self._tag_head(queue)

    def refund(self, request: Request, unused_bytes: int) -> None:
        """Subtract the unused cost of a request from the application's next costs."""
        self.queue_of(request.application).unused_bytes += unused_bytes

    def record_remote_service(
        self, server: str, served_bytes: Mapping[str, float]
    ) -> None:
        """Record what another server has served since it started."""
        self._reported.record(server, served_bytes)

    def set_layout(self, factors: Mapping[str, int]) -> None:
        """Infer service on other servers from the number of servers in use."""
        self._remote_service = Layout(factors)

    def set_slos(self, slos: Mapping[str, Slo]) -> None:
        """Replace the weights; tags that are already assigned do not change."""
        self._slos = dict(slos)
        for application, queue in self.queues.items():
            queue.set_slo(slo_of(slos, application))

    def _charge(self, queue: F, start_tag: float, request: Request) -> None:
        """Charge a request that leaves the queue: v = S, F = S + c / t_i."""
        self.waiting -= 1
        if start_tag > self._virtual_time:
            self._virtual_time = start_tag
        queue.last_cost_bytes = cost = request.cost_bytes
        if queue.unused_bytes:
            refund = min(queue.unused_bytes, cost)
            queue.unused_bytes -= refund
            cost -= refund
        queue.charged_bytes = cost
        queue.local_bytes += cost
        queue.finish_tag = start_tag + cost / queue.weight

    def _tag_head(self, queue: F) -> None:
        """Assign the start tag to the first request of a queue."""
        heappush(self._heads, (self._next_start_tag(queue), self._next_number(), queue))

    def _next_number(self) -> int:
        """Return a serial number: among equal tags the lower number goes first."""
        self._number += 1
        return self._number

    def _next_start_tag(self, queue: F) -> float:
        """Return S = max(v, F' + d / t_i) of the queue's next request."""
        return max(self._virtual_time, self._backlogged_start_tag(queue))

    def _backlogged_start_tag(self, queue: F) -> float:
        """Return F' + d / t_i: the start tag of a queue that is always backlogged."""
        delay_bytes = self._remote_service.take_delay_bytes(
            queue.application, queue.charged_bytes
        )
        queue.remote_bytes += delay_bytes
        return queue.finish_tag + delay_bytes / queue.weight


class StartTagQueue(ApplicationQueues[F], Queue):
    """Requests in the order of their start tags."""

    def pop(self) -> Request:
        """Remove and return the request with the smallest start tag."""
        start_tag, _, queue = heappop(self._heads)
        request = queue.requests.popleft()
        self._charge(queue, start_tag, request)
        if queue.requests:
            self._tag_head(queue)
        return request


def make(
    slos: Mapping[str, Slo],
    now: float,  # noqa: ARG001
    depth: float,
) -> SingleQueueScheduler:
    """Return a scheduler that starts at `now`."""
    return SingleQueueScheduler(
        StartTagQueue(slos, TaggedQueue), depth, Guarantees(shares=True)
    )
