# SPDX-License-Identifier: MIT
"""Send small requests before large ones (a template: copy this file).

Rule
    Required. What the scheduler does, in words: a request of size s that arrives at
    time a has the rank a + s / ``rate``. The lowest rank goes first; among equal
    ranks, the request that arrived first.

Parameters
    rate (bytes/s)
        A large rate ranks by arrival, a small one by size. Default 100e6.
    depth
        Requests at the storage at once; 0: any number. Default 8.

Properties
    What it promises, and its cost: O(log n) per request, with n queued requests. No
    request starves: only requests that arrive less than s / ``rate`` later can
    overtake it.

Source
    Paper, section or equation; every deviation from it.
"""

# How to use your own scheduler, without touching penstock: name it by its dotted
# name, mypackage.mymodule:rate=1e9, where mypackage/mymodule.py is a copy of this
# file (the current folder counts), or announce it in your package under the
# entry-point group `penstock.schedulers`. A scheduler of penstock itself also gets a
# row in `penstock.qos.SCHEDULERS`.
#
# A scheduler in plain Python is slower than those of penstock: a mount calls it through
# a callback, which takes Python's lock. `penstock.qos.fifo` is a scheduler as kernels.

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final

from penstock.qos.interface import Guarantees, QosScheduler, Request, Slo
from penstock.registry import Parameter

__all__ = ["PARAMETERS", "SmallFirst", "make"]

# Optional. `make` receives the values by name, numbers in base units.
PARAMETERS: Final = (
    Parameter("rate", "divides the size in the rank", 100e6, unit="bytes/s", low=1.0),
    Parameter("depth", "requests at the storage at once; 0: any number", 8),
)


# Required: a class with the methods of `QosScheduler` (see `penstock.qos.interface`).
class SmallFirst(QosScheduler):
    """Sends by rank, then by arrival, while fewer than `depth` requests are sent."""

    # Required: `Guarantees` says what the scheduler guarantees; the conformance suite
    # (tests/schedulers) checks it. This one guarantees nothing beyond the common rules.
    guarantees = Guarantees()
    # Required: when `dispatch` must be called again if nothing happens; inf: never.
    wake_s = inf
    # Required: requests at the storage, the most of them, service by application.
    outstanding = 0
    depth = inf
    served_bytes: Mapping[str, int] = {}

    def __init__(self, rate: float, depth: int) -> None:
        self.depth = depth or inf
        self.served_bytes = self._served_bytes = dict[str, int]()
        self._rate = rate
        self._heap: list[tuple[float, int, Request]] = []
        self._number = 0

    # Required: the number of queued requests.
    @property
    def waiting(self) -> int:
        """Number of queued requests."""
        return len(self._heap)

    # Required.
    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request."""
        rank = now + request.size_bytes / self._rate
        self._number += 1
        heappush(self._heap, (rank, self._number, request))

    # Required.
    def dispatch(self, now: float) -> list[Request]:  # noqa: ARG002
        """Return the requests to send now: those with the lowest ranks."""
        to_send: list[Request] = []
        while self._heap and self.outstanding < self.depth:
            _, _, request = heappop(self._heap)
            self.outstanding += 1
            self._count(request.application, request.cost_bytes)
            to_send.append(request)
        return to_send

    # Required. A request that fails or ends short gets back what it did not use.
    def complete(self, request: Request, moved_bytes: int, now: float) -> None:  # noqa: ARG002
        """Record that the storage has completed a request."""
        self.outstanding -= 1
        self._count(request.application, -request.unused_bytes(moved_bytes))

    def _count(self, application: str, cost_bytes: int) -> None:
        before = self._served_bytes.get(application, 0)
        self._served_bytes[application] = before + cost_bytes

    # Optional: `set_slos`, `set_layout`, `record_remote_service` and `share_storage`;
    # those of `QosScheduler` do nothing. A scheduler that shares throughput needs them.


# Required: `make`. The scheduler starts at `now` (s). It must not read a clock, open
# files or draw random numbers: it learns the time from its callers only, so that the
# simulator and the mount can run the same code.
def make(slos: Mapping[str, Slo], now: float, rate: float, depth: int) -> QosScheduler:  # noqa: ARG001
    """Return a new scheduler for the applications in `slos`."""
    return SmallFirst(rate, depth)
