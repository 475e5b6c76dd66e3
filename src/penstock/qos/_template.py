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

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Final

from penstock.qos.guarantees import Guarantees
from penstock.qos.request import QosScheduler, Request
from penstock.qos.scheduler import DEPTH, Queue, SingleQueueScheduler, depth_parameter
from penstock.qos.slo import Slo
from penstock.registry import Parameter

__all__ = ["PARAMETERS", "SmallFirstQueue", "make"]

# Optional. `make` receives the values by name, numbers in base units.
PARAMETERS: Final = (
    Parameter("rate", "divides the size in the rank", 100e6, unit="bytes/s", low=1.0),
    depth_parameter(DEPTH),
)


# Optional: `Queue` and `SingleQueueScheduler` are enough for every scheduler that has
# one queue and a fixed depth. Any other class with the methods of `QosScheduler`
# (see `penstock.qos.request`) will do.
class SmallFirstQueue(Queue):
    """Queued requests by rank, then by arrival."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._heap: list[tuple[float, int, Request]] = []
        self._number = 0

    # Required: the number of queued requests.
    def __len__(self) -> int:
        return len(self._heap)

    # Required. The scheduler has set `request.arrived_s`.
    def push(self, request: Request) -> None:
        """Add a request that has just arrived."""
        rank = request.arrived_s + request.size_bytes / self._rate
        self._number += 1
        heappush(self._heap, (rank, self._number, request))

    # Required.
    def pop(self) -> Request:
        """Remove and return the request with the lowest rank."""
        return heappop(self._heap)[2]

    # Optional: `refund`, `record_remote_service`, `set_layout` and `set_slos`; those of
    # `Queue` do nothing. A scheduler that shares throughput needs them.


# Required: `make`. The scheduler starts at `now` (s). It must not read a clock, open
# files or draw random numbers: it learns the time from its callers only, so that the
# simulator and the mount can run the same code.
def make(slos: Mapping[str, Slo], now: float, rate: float, depth: int) -> QosScheduler:  # noqa: ARG001
    """Return a new scheduler for the applications in `slos`."""
    # Optional: `Guarantees` says what the scheduler guarantees; the conformance suite
    # (tests/schedulers) checks it. This one guarantees nothing beyond the common rules.
    return SingleQueueScheduler(SmallFirstQueue(rate), depth, Guarantees())
