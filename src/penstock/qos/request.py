# SPDX-License-Identifier: MIT
"""A storage request, and the interface of every scheduler.

Units are in the names: ``_s`` seconds, ``_bytes`` bytes. All times are on the clock of
the driver (simulator or mount), which passes ``now`` in seconds; it never decreases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal, Protocol, TypeAlias

from penstock.qos.guarantees import Guarantees
from penstock.qos.slo import Slo

__all__ = ["KINDS", "MIN_COST_BYTES", "Kind", "QosScheduler", "Request", "Scheduler"]

Kind: TypeAlias = Literal["read", "write", "sync", "metadata"]
KINDS: Final[tuple[Kind, ...]] = ("read", "write", "sync", "metadata")
#: Minimum cost of a request, so that empty and failed requests are not free.
MIN_COST_BYTES: Final = 4096


@dataclass(slots=True, eq=False)
class Request:
    """A read, a write, or another call on its way to the storage."""

    kind: Kind
    size_bytes: int
    """Requested bytes; 0 for a call that moves no data."""
    application: str = ""
    """Owner of the request: a key of the SLOs."""
    pid: int = 0
    """The process that opened the file."""
    arrived_s: float = field(default=0.0, init=False)
    """Arrival at the scheduler."""
    deadline_s: float = field(default=inf, init=False)
    """Deadline; set by schedulers that use deadlines."""
    admitted_s: float = field(default=0.0, init=False)
    """When the upper level of the two-level scheduler admitted the request."""
    sent_s: float = field(default=0.0, init=False)
    """When the request was sent to the storage."""

    cost_bytes: int = field(default=MIN_COST_BYTES, init=False)
    """Bytes charged to the application: max(size_bytes, MIN_COST_BYTES)."""

    def __post_init__(self) -> None:
        if self.size_bytes > MIN_COST_BYTES:
            self.cost_bytes = self.size_bytes

    def unused_bytes(self, moved_bytes: int) -> int:
        """Return the refund: the cost minus max(moved_bytes, MIN_COST_BYTES)."""
        return self.cost_bytes - min(self.cost_bytes, max(moved_bytes, MIN_COST_BYTES))


class Scheduler(Protocol):
    """Decides when requests are sent; ``now`` is in seconds and never decreases."""

    wake_s: float
    """When `dispatch` must be called again if nothing happens before; inf: never."""

    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request."""

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests to send now, in order."""

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Record that the storage has completed a request."""


class QosScheduler(Scheduler, Protocol):
    """A scheduler with service-level objectives (SLOs)."""

    @property
    def waiting(self) -> int:
        """Number of queued requests."""

    @property
    def outstanding(self) -> int:
        """Number of requests at the storage."""

    @property
    def depth(self) -> float:
        """Maximum number of requests at the storage; inf: no maximum."""

    @property
    def served_bytes(self) -> Mapping[str, int]:
        """Cost of the requests sent to this server minus refunds, by application.

        These are the totals that are reported to other servers.
        """

    @property
    def guarantees(self) -> Guarantees:
        """What the scheduler guarantees."""

    def record_remote_service(
        self,
        server: str,
        served_bytes: Mapping[str, float],
        now: float,
        wanting: Iterable[str] = (),
    ) -> None:
        """Record a report: what another server has served since it started.

        `wanting` names the applications that could use more service there.
        """

    def wanting(self, now: float) -> tuple[str, ...]:
        """Return the applications that could use more service here, for reports."""

    def set_layout(self, factors: Mapping[str, int]) -> None:
        """Set the number of servers that hold each application's files.

        From now on service on other servers is inferred from these numbers, and
        reports are ignored.
        """

    def set_slos(self, slos: Mapping[str, Slo], now: float) -> None:
        """Replace the SLOs; they hold for requests that arrive from now on."""
