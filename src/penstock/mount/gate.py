# SPDX-License-Identifier: MIT
"""The gate: drives a scheduler in real time, holds requests up, and counts them.

All reads, writes and syncs of a mount pass one gate. Only the event loop uses it. A
request that is held up waits in the event loop, not in a thread, so that thousands of
requests can wait without blocking others.

Order at equal times: an arrival or a completion first, then the scheduler is asked; a
wake-up of the scheduler is handled when the event loop is free.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import trio

from penstock.mount.limiter import DATA_KINDS
from penstock.mount.meters import Meter
from penstock.qos import Kind, Request, Scheduler

__all__ = ["AdmittedRequest", "Gate", "Tally"]


@dataclass(slots=True)
class Tally:
    """Totals of one kind of requests."""

    requests: int = 0
    moved_bytes: int = 0
    held_up_s: float = 0.0


@dataclass(frozen=True, eq=False, slots=True)
class AdmittedRequest:
    """A request that a gate has let through and that is not complete yet."""

    gate: Gate
    request: Request
    arrived_s: float

    def complete(self, moved_bytes: int) -> None:
        """Tell the gate that the request is complete and how many bytes it moved."""
        self.gate.record_completion(self, moved_bytes)


class Gate:
    """Holds requests up until a scheduler sends them."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.tallies: dict[Kind, Tally] = {kind: Tally() for kind in DATA_KINDS}
        self.meters: Mapping[str, Meter] = {}
        """Meters by application; applications without one are not measured."""
        self._scheduler = scheduler
        self._waiting: dict[Request, trio.Event] = {}
        self._sleeps_until_s = inf
        self._wake_earlier = trio.Event()
        self._closed = False

    async def admit(self, request: Request) -> AdmittedRequest:
        """Wait until the scheduler sends the request; then its data may be moved.

        Call `AdmittedRequest.complete` afterwards, even if the transfer fails.

        Raises OSError (ENOTCONN) if the gate is closed.
        """
        self._check_open()
        arrived_s: float = trio.current_time()
        self._scheduler.arrive(request, arrived_s)
        if request in self._dispatch_at(arrived_s):
            return AdmittedRequest(self, request, arrived_s)
        event = self._waiting[request] = trio.Event()
        await event.wait()
        self._check_open()
        if request.kind in self.tallies:
            self.tallies[request.kind].held_up_s += trio.current_time() - arrived_s
        return AdmittedRequest(self, request, arrived_s)

    def record_completion(self, admitted: AdmittedRequest, moved_bytes: int) -> None:
        """Count a completed request, and send what may go now."""
        request = admitted.request
        now = trio.current_time()
        if request.kind in self.tallies:
            tally = self.tallies[request.kind]
            tally.requests += 1
            tally.moved_bytes += moved_bytes
        if request.application in self.meters:
            meter = self.meters[request.application]
            meter.record(now - admitted.arrived_s, moved_bytes, now)
        self._scheduler.complete(request, moved_bytes, now)
        self._dispatch_at(now)

    def dispatch(self) -> None:
        """Send what may go; call this after every change of the scheduler."""
        self._dispatch_at(trio.current_time())

    def _dispatch_at(self, now: float) -> list[Request]:
        """Release the requests that the scheduler sends now, and return them."""
        to_send = self._scheduler.dispatch(now)
        for request in to_send:
            if request in self._waiting:
                self._waiting.pop(request).set()
        if self._scheduler.wake_s < self._sleeps_until_s:
            self._wake_earlier.set()
        return to_send

    async def run(self) -> None:
        """Call the scheduler at its wake-up times, for ever."""
        # Main loop of the gate.
        while True:
            self._sleeps_until_s = self._scheduler.wake_s
            with trio.move_on_at(self._sleeps_until_s):
                await self._wake_earlier.wait()
            self._wake_earlier = trio.Event()
            # Skip a wake-up that the scheduler has withdrawn: `dispatch` would close a
            # time window at the wrong time.
            if self._scheduler.wake_s <= trio.current_time():
                self.dispatch()

    @property
    def waiting(self) -> int:
        """Number of requests that are held up."""
        return len(self._waiting)

    def waiting_by_application(self) -> Counter[str]:
        """Return the number of requests that are held up, by application."""
        return Counter(request.application for request in self._waiting)

    def close(self) -> None:
        """Fail all requests that wait and all that arrive later."""
        self._closed = True
        for event in self._waiting.values():
            event.set()
        self._waiting.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
