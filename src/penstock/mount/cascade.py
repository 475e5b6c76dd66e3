# SPDX-License-Identifier: MIT
"""A scheduler in front of a limiter: the scheduler orders, the limiter delays.

To the scheduler the limiter is the storage: requests that the scheduler has sent wait
in the limiter, first come, first served, and are outstanding until they complete. So
the total throughput is exactly the limit, and the scheduler's depth is the length of
the limiter's queue. Requests that move no data (``sync``) do not pass the limiter.

Pure: time (s) is passed in.
"""

from __future__ import annotations

from math import inf

from penstock.mount.limiter import DATA_KINDS, Limiter
from penstock.qos import Request, Scheduler

__all__ = ["Cascade"]


class Cascade:
    """Sends requests in the order of a scheduler, within limits."""

    def __init__(self, scheduler: Scheduler, limiter: Limiter) -> None:
        self.wake_s = inf
        self._scheduler = scheduler
        self._limiter = limiter

    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request."""
        self._scheduler.arrive(request, now)

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests to send now, and set `wake_s`."""
        ordered = self._scheduler.dispatch(now)
        if self._limiter.is_open:
            self.wake_s = self._scheduler.wake_s
            return ordered
        to_send = []
        for request in ordered:
            if request.kind in DATA_KINDS:
                self._limiter.arrive(request, now)
            else:
                to_send.append(request)
        to_send += self._limiter.dispatch(now)
        self.wake_s = min(self._scheduler.wake_s, self._limiter.wake_s)
        return to_send

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Record that a request is complete."""
        if request.kind in DATA_KINDS:
            self._limiter.complete(request, moved_bytes, now)
        self._scheduler.complete(request, moved_bytes, now)
