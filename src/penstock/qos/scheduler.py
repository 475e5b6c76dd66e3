# SPDX-License-Identifier: MIT
"""One queue before the storage, and so many requests at the storage at once.

What fifo, sfq and edf have in common; they differ in the queue.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf
from typing import Final

from penstock.qos.request import Request
from penstock.qos.slo import Slo
from penstock.registry import Parameter

__all__ = ["DEPTH", "OneQueue", "Queue", "depth_parameter"]

#: Requests at the storage at once, where nothing else is said.
DEPTH: Final = 8


def depth_parameter(default: int) -> Parameter:
    """Return the parameter `depth`."""
    return Parameter("depth", "requests at the storage at once; 0: any number", default)


class Queue(ABC):
    """Requests that wait, in some order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def push(self, request: Request) -> None:
        """Take in a request that has just arrived."""

    @abstractmethod
    def pop(self) -> Request:
        """Take out the next one."""

    def refund(self, request: Request, unused: int) -> None:  # noqa: B027
        """Hear that `unused` bytes of a request's cost were not used."""

    def hear(self, server: str, totals: Mapping[str, float]) -> None:  # noqa: B027
        """Learn what another server has served since it began (bytes)."""

    def spread(self, factors: Mapping[str, int]) -> None:  # noqa: B027
        """Learn on how many servers each application's files lie."""

    def change(self, slos: Mapping[str, Slo]) -> None:  # noqa: B027
        """Set other objectives."""


class OneQueue:
    """Sends from one queue while fewer than `depth` are at the storage."""

    def __init__(self, queue: Queue, depth: float) -> None:
        self.wake = inf
        self.outstanding = 0
        self.depth = depth or inf
        self.served: dict[str, int] = {}
        self.hear = queue.hear
        self.spread = queue.spread
        self._queue = queue

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return len(self._queue)

    def arrive(self, request: Request, now: float) -> None:
        """Take a request in."""
        request.arrived = now
        self._queue.push(request)

    def dispatch(self, now: float) -> list[Request]:
        """Return the next ones, as many as there is room for."""
        gone: list[Request] = []
        queue, served = self._queue, self.served
        while self.outstanding < self.depth and len(queue):
            request = queue.pop()
            request.sent = now
            self.outstanding += 1
            name = request.application
            served[name] = served.get(name, 0) + request.cost
            gone.append(request)
        return gone

    def complete(self, request: Request, moved: int, now: float) -> None:  # noqa: ARG002
        """Make room; give back what was not used."""
        self.outstanding -= 1
        if unused := request.unused(moved):
            self.served[request.application] -= unused
            self._queue.refund(request, unused)

    def change(self, slos: Mapping[str, Slo], now: float) -> None:  # noqa: ARG002
        """Set other objectives."""
        self._queue.change(slos)
