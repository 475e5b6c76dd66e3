# SPDX-License-Identifier: MIT
"""Credit for any scheduler: its own stage, or one in front of it.

Schedulers that are kernels block requests without credit themselves
(`penstock.qos.credit.stage`). A scheduler in plain Python gets a stage in front:
`CreditFront`, whose decisions are the same kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.qos import fifo
from penstock.qos.interface import (
    ApplicationUse,
    Credit,
    CreditScheduler,
    QosScheduler,
    Request,
)
from penstock.qos.scheduler import KernelScheduler

__all__ = ["CreditFront", "with_credit"]


def with_credit(scheduler: QosScheduler) -> CreditScheduler:
    """Return a scheduler that keeps rates: the given one, or a stage in front of it."""
    if isinstance(scheduler, KernelScheduler):
        return scheduler
    return CreditFront(scheduler)


class CreditFront(CreditScheduler):
    """Passes requests to a scheduler in plain Python, each when it has credit."""

    def __init__(self, scheduler: QosScheduler) -> None:
        self._scheduler = scheduler
        # In the order of arrival, and any number at once: only credit blocks requests.
        self._stage = fifo.make({}, 0.0, 0.0)

    @property
    def wake_s(self) -> float:
        """When `dispatch` must be called again if nothing happens before."""
        return min(self._stage.wake_s, self._scheduler.wake_s)

    def set_credit(self, credit: Credit, lease_s: float, now: float) -> None:
        """Replace the credit, and tell the scheduler of the others."""
        self._stage.set_credit(credit, lease_s, now)
        if credit.is_shared:
            self._scheduler.share_storage(now + lease_s, credit.slack)

    def set_caps(self, caps: Mapping[str, float], now: float) -> None:
        """Replace what applications may draw at most (bytes/s)."""
        self._stage.set_caps(caps, now)

    def use(self, now: float) -> dict[str, ApplicationUse]:
        """Return what each application has used so far, for a report."""
        return self._stage.use(now)

    def arrive(self, request: Request, now: float) -> None:
        """Block a request until it has credit."""
        self._stage.arrive(request, now)

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests that the scheduler sends now."""
        for request in self._stage.dispatch(now):
            self._scheduler.arrive(request, now)
        return self._scheduler.dispatch(now)

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Record that the storage has completed a request."""
        self._stage.complete(request, moved_bytes, now)
        self._scheduler.complete(request, moved_bytes, now)
