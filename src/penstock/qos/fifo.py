# SPDX-License-Identifier: MIT
"""Send requests in order of arrival.

Rule
    First come, first served. The number of requests at the storage is not limited
    unless a depth is set. This is how a storage without a scheduler behaves.

Parameters
    depth
        Requests at the storage at once; 0, the default: any number.

Properties
    O(1) per request. The application that issues most requests gets most service.

Source
    The baseline ("native") of two-level scheduling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from penstock.qos.request import Request
from penstock.qos.scheduler import Queue, SingleQueueScheduler, depth_parameter
from penstock.qos.slo import Slo

__all__ = ["PARAMETERS", "ArrivalQueue", "make"]

PARAMETERS: Final = (depth_parameter(0),)


class ArrivalQueue(Queue):
    """Requests in order of arrival."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._requests)

    def push(self, request: Request) -> None:
        """Add a request that has just arrived."""
        self._requests.append(request)

    def pop(self) -> Request:
        """Remove and return the oldest request."""
        return self._requests.popleft()


def make(
    slos: Mapping[str, Slo],  # noqa: ARG001
    now: float,  # noqa: ARG001
    depth: float,
) -> SingleQueueScheduler:
    """Return a scheduler that starts at `now`."""
    return SingleQueueScheduler(ArrivalQueue(), depth)
