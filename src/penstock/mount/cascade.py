# SPDX-License-Identifier: MIT
"""A scheduler before a limit: it orders what the limit then lets through.

The limit is the storage that the scheduler feeds: what the scheduler has sent waits
there, first come, first served, and counts as outstanding until it is complete. So the
total stays exactly what the limit says, and the scheduler's depth is that of a queue
which others cannot reorder. What moves no data (``sync``) passes the limit untouched.

Pure: time (s) is passed in.
"""

from __future__ import annotations

from math import inf

from penstock.mount.limiter import KINDS, Limiter
from penstock.qos import Request, Scheduler

__all__ = ["Cascade"]


class Cascade:
    """Lets requests go in the order of a scheduler, within limits."""

    def __init__(self, scheduler: Scheduler, limiter: Limiter) -> None:
        self.wake_s = inf
        self._scheduler = scheduler
        self._limiter = limiter

    def arrive(self, request: Request, now: float) -> None:
        """Take a request in."""
        self._scheduler.arrive(request, now)

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests that may go now, and set when to ask again."""
        sent = self._scheduler.dispatch(now)
        if self._limiter.is_open:
            self.wake_s = self._scheduler.wake_s
            return sent
        gone = []
        for request in sent:
            if request.kind in KINDS:
                self._limiter.arrive(request, now)
            else:
                gone.append(request)
        gone += self._limiter.dispatch(now)
        self.wake_s = min(self._scheduler.wake_s, self._limiter.wake_s)
        return gone

    def complete(self, request: Request, moved: int, now: float) -> None:
        """Hear that a request has moved so many bytes."""
        if request.kind in KINDS:
            self._limiter.complete(request, moved, now)
        self._scheduler.complete(request, moved, now)
