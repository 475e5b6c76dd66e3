# SPDX-License-Identifier: MIT
"""All reads and writes pass one gate: it drives a scheduler in real time, and counts.

Only the event loop touches it. A request that may not go yet waits in the loop, not in
a thread, so that thousands can wait and all others still pass.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from math import inf

import trio

from penstock.mount.limiter import KINDS, Kind, Request, Scheduler

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
        self._scheduler = scheduler
        self._waiting: dict[Request, trio.Event] = {}
        self._asleep_until = inf
        self._sooner = trio.Event()
        self._closed = False

    async def enter(self, request: Request) -> None:
        """Return when a request may go."""
        self._check_open()
        came = trio.current_time()
        self._scheduler.arrive(request, came)
        if request in self.dispatch():
            return
        event = self._waiting[request] = trio.Event()
        await event.wait()
        self._check_open()
        self.tallies[request.kind].waited_s += trio.current_time() - came

    def leave(self, request: Request, moved: int) -> None:
        """Note that a request is done, with the bytes that it has moved."""
        tally = self.tallies[request.kind]
        tally.requests += 1
        tally.bytes += moved
        self._scheduler.complete(request, moved, trio.current_time())
        self.dispatch()

    def dispatch(self) -> list[Request]:
        """Let go who may; to be called whenever the scheduler has been changed."""
        gone = self._scheduler.dispatch(trio.current_time())
        for request in gone:
            if request in self._waiting:
                self._waiting.pop(request).set()
        if self._scheduler.wake < self._asleep_until:
            self._sooner.set()
        return gone

    async def run(self) -> None:
        """Ask the scheduler at the times it wants to be asked, for ever."""
        while True:
            self._asleep_until = self._scheduler.wake
            with trio.move_on_at(self._asleep_until):
                await self._sooner.wait()
            self._sooner = trio.Event()
            self.dispatch()

    def close(self) -> None:
        """Turn away all who wait and all who come."""
        self._closed = True
        for event in self._waiting.values():
            event.set()
        self._waiting.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
