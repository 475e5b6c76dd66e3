# SPDX-License-Identifier: MIT
"""One queue in front of the storage, and at most ``depth`` requests at the storage.

The common part of fifo, sfq and edf: each is a `SingleQueueScheduler` with another
`Queue`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from math import inf
from typing import Final

from penstock.qos.guarantees import Guarantees
from penstock.qos.request import Request
from penstock.qos.slo import Slo
from penstock.registry import Parameter

__all__ = ["DEPTH", "Queue", "SingleQueueScheduler", "depth_parameter"]

#: Default of the parameter `depth` in sfq and edf.
DEPTH: Final = 8


def depth_parameter(default: int) -> Parameter:
    """Return the declaration of the parameter `depth`."""
    return Parameter("depth", "requests at the storage at once; 0: any number", default)


class Queue(ABC):
    """Queued requests in the order of one discipline."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def push(self, request: Request) -> None:
        """Add a request that has just arrived."""

    @abstractmethod
    def pop(self) -> Request:
        """Remove and return the next request."""

    def refund(self, request: Request, unused_bytes: int) -> None:  # noqa: B027
        """Give back the part of a request's cost that was not used."""

    def record_remote_service(  # noqa: B027
        self, server: str, served_bytes: Mapping[str, float]
    ) -> None:
        """Record what another server has served since it started."""

    def set_layout(self, factors: Mapping[str, int]) -> None:  # noqa: B027
        """Set the number of servers that hold each application's files."""

    def set_slos(self, slos: Mapping[str, Slo]) -> None:  # noqa: B027
        """Replace the SLOs."""


class SingleQueueScheduler:
    """Sends from one queue while fewer than `depth` requests are at the storage."""

    def __init__(
        self,
        queue: Queue,
        depth: float,
        guarantees: Guarantees = Guarantees(),  # noqa: B008
    ) -> None:
        self.guarantees = guarantees
        self.wake_s = inf
        self.outstanding = 0
        self.depth = depth or inf
        self.served_bytes: dict[str, int] = {}
        self.set_layout = queue.set_layout
        self._queue = queue

    @property
    def waiting(self) -> int:
        """Number of queued requests."""
        return len(self._queue)

    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request."""
        request.arrived_s = now
        self._queue.push(request)

    def dispatch(self, now: float) -> list[Request]:
        """Return the next requests, until `depth` requests are at the storage."""
        to_send: list[Request] = []
        queue, served_bytes = self._queue, self.served_bytes
        while self.outstanding < self.depth and len(queue):
            request = queue.pop()
            request.sent_s = now
            self.outstanding += 1
            name = request.application
            served_bytes[name] = served_bytes.get(name, 0) + request.cost_bytes
            to_send.append(request)
        return to_send

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:  # noqa: ARG002
        """Free a slot at the storage; refund the unused part of the cost."""
        self.outstanding -= 1
        if unused_bytes := request.unused_bytes(moved_bytes):
            self.served_bytes[request.application] -= unused_bytes
            self._queue.refund(request, unused_bytes)

    def record_remote_service(
        self,
        server: str,
        served_bytes: Mapping[str, float],
        now: float,  # noqa: ARG002
        wanting: Iterable[str] = (),  # noqa: ARG002
    ) -> None:
        """Record a report: what another server has served since it started."""
        self._queue.record_remote_service(server, served_bytes)

    def wanting(self, now: float) -> tuple[str, ...]:  # noqa: ARG002
        """Return the applications to report as wanting more service: none."""
        return ()

    def set_slos(self, slos: Mapping[str, Slo], now: float) -> None:  # noqa: ARG002
        """Replace the SLOs."""
        self._queue.set_slos(slos)
