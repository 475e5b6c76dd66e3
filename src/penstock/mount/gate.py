# SPDX-License-Identifier: MIT
"""All that moves data passes one gate: it drives a scheduler in real time, and counts.

Only the event loop touches it. A request that may not go yet waits in the loop, not in
a thread, so that thousands can wait and all others still pass.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import trio

from penstock.mount.limiter import KINDS
from penstock.mount.meters import Meter
from penstock.qos import Kind, Request, Scheduler

__all__ = ["Gate", "Tally"]


@dataclass(slots=True)
class Tally:
    """What has passed."""

    requests: int = 0
    bytes: int = 0
    waited_s: float = 0.0


class Gate:
    """Lets requests through when a scheduler says so."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.tallies: dict[Kind, Tally] = {kind: Tally() for kind in KINDS}
        self.meters: Mapping[str, Meter] = {}
        """What measures the service of an application; others are not measured."""
        self._scheduler = scheduler
        self._waiting: dict[Request, trio.Event] = {}
        self._asleep_until = inf
        self._sooner = trio.Event()
        self._closed = False

    async def enter(self, request: Request) -> float:
        """Return when a request may go; the value is when it came (s)."""
        self._check_open()
        came: float = trio.current_time()
        self._scheduler.arrive(request, came)
        if request in self._let_go(came):
            return came
        event = self._waiting[request] = trio.Event()
        await event.wait()
        self._check_open()
        if request.kind in self.tallies:
            self.tallies[request.kind].waited_s += trio.current_time() - came
        return came

    def leave(self, request: Request, moved: int, came: float) -> None:
        """Note that a request is done, with the bytes that it has moved."""
        now = trio.current_time()
        if request.kind in self.tallies:
            tally = self.tallies[request.kind]
            tally.requests += 1
            tally.bytes += moved
        if request.application in self.meters:
            self.meters[request.application].answer(now - came, moved, now)
        self._scheduler.complete(request, moved, now)
        self._let_go(now)

    def dispatch(self) -> None:
        """Let go who may; to be called whenever the scheduler has been changed."""
        self._let_go(trio.current_time())

    def _let_go(self, now: float) -> list[Request]:
        gone = self._scheduler.dispatch(now)
        for request in gone:
            if request in self._waiting:
                self._waiting.pop(request).set()
        if self._scheduler.wake_s < self._asleep_until:
            self._sooner.set()
        return gone

    async def run(self) -> None:
        """Ask the scheduler at the times it wants to be asked, for ever."""
        while True:
            self._asleep_until = self._scheduler.wake_s
            with trio.move_on_at(self._asleep_until):
                await self._sooner.wait()
            self._sooner = trio.Event()
            # Asked at a time that it no longer wants, it would close a window there.
            if self._scheduler.wake_s <= trio.current_time():
                self.dispatch()

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        return len(self._waiting)

    def queued(self) -> Counter[str]:
        """Return how many requests wait, by application."""
        return Counter(request.application for request in self._waiting)

    def close(self) -> None:
        """Turn away all who wait and all who come."""
        self._closed = True
        for event in self._waiting.values():
            event.set()
        self._waiting.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
