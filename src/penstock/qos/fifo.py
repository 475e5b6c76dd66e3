# SPDX-License-Identifier: MIT
"""Send requests as they come.

Rule
    First come, first served; as many at the storage at once as there are, unless a
    depth is set. What a storage without a scheduler does.

Parameters
    depth
        Requests at the storage at once; 0, the default: any number.

Properties
    O(1) per request. Whoever issues most gets most.

Source
    The baseline of papers/5 ("native").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from penstock.qos.request import Request
from penstock.qos.scheduler import OneQueue, Queue, depth_parameter
from penstock.qos.slo import Slo

__all__ = ["PARAMETERS", "Arrivals", "make"]

PARAMETERS: Final = (depth_parameter(0),)


class Arrivals(Queue):
    """Requests in the order in which they came."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()

    def __len__(self) -> int:
        return len(self._requests)

    def push(self, request: Request) -> None:
        """Take in a request that has just arrived."""
        self._requests.append(request)

    def pop(self) -> Request:
        """Take out the oldest."""
        return self._requests.popleft()


def make(slos: Mapping[str, Slo], now: float, depth: float) -> OneQueue:  # noqa: ARG001
    """Return a scheduler that begins now."""
    return OneQueue(Arrivals(), depth)
