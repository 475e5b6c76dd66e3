# SPDX-License-Identifier: MIT
"""Hold the requests of an application that has used up its credit.

A mount whose storage is shared with other mounts has this stage in front of its
scheduler. The allocator of all mounts (`penstock.qos.credit`) tells it a rate for
applications that are ahead of their share. The level of such an application fills at
its rate r, up to `BURST_S` seconds of it. A request passes if the level is not
negative, and takes its cost, so a large request passes like a small one and is paid for
afterwards. Applications without a rate pass at once.

Rates hold until the end of their lease. Then all requests pass: a mount that hears
nothing more loses its share at worst, never service.

Pure: time (s) is passed in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from penstock.qos.interface import QosScheduler, Request

__all__ = ["BURST_S", "THINK_S", "ApplicationUse", "CreditStage"]

#: Most credit that an application saves, in seconds of its rate.
BURST_S: Final = 0.05
#: Least rate: even the smallest gives a request a time at which it passes.
MIN_BYTES_PER_S: Final = 1.0
#: A pause between an answer and the next request counts as busy up to this (s).
THINK_S: Final = 0.002


class ApplicationUse(NamedTuple):
    """What an application has used of one mount since the mount started."""

    sent_bytes: float
    """Cost of the requests that were passed to the scheduler, minus refunds."""
    done_bytes: float
    """Cost of the requests that are complete, minus refunds."""
    busy_s: float
    """Time during which it had at least one request at the mount."""
    held: int
    """Number of requests that wait for credit now."""


@dataclass(slots=True)
class _Credit:
    """The credit of one application, and what it has used."""

    rate: float = inf
    """Bytes/s; inf: no limit."""
    level_bytes: float = 0.0
    filled_s: float = -inf
    requests: deque[Request] = field(default_factory=deque)
    """Requests that wait for credit."""
    present: int = 0
    """Requests that have arrived and are not complete."""
    sent_bytes: float = 0.0
    done_bytes: float = 0.0
    busy_s: float = 0.0
    changed_s: float = -inf
    """When the last request arrived, or, if none is present, when the last ended."""

    def fill(self, now: float) -> None:
        """Add the credit since the last call."""
        if self.rate < inf:
            filled = self.level_bytes + self.rate * (now - self.filled_s)
            self.level_bytes = min(filled, self.rate * BURST_S)
        self.filled_s = now

    def set_rate(self, rate: float, now: float) -> None:
        """Change the rate; what was overdrawn stays overdrawn."""
        if self.rate == inf:
            self.level_bytes, self.filled_s = 0.0, now
        self.fill(now)
        self.rate = rate

    @property
    def passes(self) -> bool:
        """True if the next request may pass."""
        # The tolerance is for the rounding of the clock.
        return self.rate == inf or self.level_bytes >= -1e-6 * self.rate

    def ready_s(self) -> float:
        """Return when the next request may pass."""
        return self.filled_s - self.level_bytes / self.rate


class CreditStage:
    """Passes requests to a scheduler, each application within its credit."""

    def __init__(self, scheduler: QosScheduler) -> None:
        self.wake_s = inf
        self._scheduler = scheduler
        self._credits: dict[str, _Credit] = {}
        self._limited: dict[str, _Credit] = {}
        self._lease_ends_s = inf

    def use(self, now: float) -> dict[str, ApplicationUse]:
        """Return what each application has used so far, for a report."""
        uses = {}
        for name, credit in self._credits.items():
            busy_s = credit.busy_s
            if credit.present:
                busy_s += now - credit.changed_s
            uses[name] = ApplicationUse(
                credit.sent_bytes, credit.done_bytes, busy_s, len(credit.requests)
            )
        return uses

    def set_rates(self, rates: Mapping[str, float], lease_s: float, now: float) -> None:
        """Replace all rates (bytes/s); they hold for `lease_s` seconds.

        Who gets rates shares the storage with other mounts; the scheduler is told.
        """
        self._lease_ends_s = now + lease_s if rates else inf
        if rates:
            self._scheduler.share_storage(self._lease_ends_s)
        for name in {**self._limited, **rates}:
            rate = max(rates.get(name, inf), MIN_BYTES_PER_S)
            self._credit_of(name).set_rate(rate, now)
        self._limited = {name: self._credits[name] for name in rates}
        self._pass_on(self._credits, now)

    def arrive(self, request: Request, now: float) -> None:
        """Pass a request to the scheduler, or hold it until there is credit."""
        credit = self._credit_of(request.application)
        if credit.present or now - credit.changed_s < THINK_S:
            credit.busy_s += now - credit.changed_s
        credit.changed_s = now
        credit.present += 1
        credit.requests.append(request)
        if credit.rate < inf:
            credit.fill(now)
        self._release(credit, now)

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests that the scheduler sends now, and set `wake_s`."""
        if now >= self._lease_ends_s:
            self.set_rates({}, 0.0, now)
        elif self._limited:
            self._pass_on(self._limited, now)
        to_send = self._scheduler.dispatch(now)
        self.wake_s = self._scheduler.wake_s
        if self._limited:
            ready = (c.ready_s() for c in self._limited.values() if c.requests)
            self.wake_s = min(self.wake_s, self._lease_ends_s, *ready)
        return to_send

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Refund what the request did not move."""
        credit = self._credits[request.application]
        credit.present -= 1
        credit.busy_s += now - credit.changed_s
        credit.changed_s = now
        unused_bytes = request.unused_bytes(moved_bytes)
        credit.done_bytes += request.cost_bytes - unused_bytes
        credit.sent_bytes -= unused_bytes
        credit.level_bytes += unused_bytes
        self._scheduler.complete(request, moved_bytes, now)

    def _credit_of(self, application: str) -> _Credit:
        credit = self._credits.get(application)
        if credit is None:
            credit = self._credits[application] = _Credit()
        return credit

    def _pass_on(self, accounts: Mapping[str, _Credit], now: float) -> None:
        """Pass on the held requests of these applications that have credit."""
        for credit in accounts.values():
            if credit.requests:
                credit.fill(now)
                self._release(credit, now)

    def _release(self, credit: _Credit, now: float) -> None:
        while credit.requests and credit.passes:
            request = credit.requests.popleft()
            credit.level_bytes -= request.cost_bytes
            credit.sent_bytes += request.cost_bytes
            self._scheduler.arrive(request, now)
