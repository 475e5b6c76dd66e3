# SPDX-License-Identifier: MIT
"""What schedulers and their drivers share: requests, SLOs, guarantees, the interface.

Units are in the names: ``_s`` seconds, ``_bytes`` bytes. All times are on the clock of
the driver (simulator or mount), which passes ``now`` in seconds; it never decreases.

Service-level objectives (SLOs). SLO_i = (t_i, l_i) (two-level scheduling, section 3):
while application i issues at most t_i bytes/s, 95 % of its requests are answered within
l_i seconds. If it issues more, only the throughput t_i is provisioned.

Guarantees. Every scheduler has an attribute ``guarantees``; the conformance suite
(``tests/schedulers``) checks each one. A guarantee that is False means that the
scheduler does not promise it, not that it never happens. All schedulers must also keep
these rules: every request is sent exactly once; no request starves (each is sent after
a bounded time, however long others issue requests); and work is conserved: the storage
is never idle while requests wait, except for at most `THINK_S`
after an answer to an application that is short of its promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, fsum, inf
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from penstock.errors import InputError
from penstock.units import format_bandwidth

__all__ = [
    "KINDS",
    "MIN_COST_BYTES",
    "PERCENTILE",
    "THINK_S",
    "URGENT_KIND",
    "ApplicationUse",
    "Credit",
    "CreditScheduler",
    "Guarantees",
    "Kind",
    "QosScheduler",
    "Request",
    "Scheduler",
    "Slo",
    "percentile",
    "slo_of",
    "unmet",
]

Kind: TypeAlias = Literal["read", "write", "sync", "metadata"]
KINDS: Final[tuple[Kind, ...]] = ("read", "write", "sync", "metadata")
#: The kind of an urgent metadata operation, for kernels and the data path: they have
#: numbers for kinds, the indexes in `KINDS` and this one.
URGENT_KIND: Final = len(KINDS)
#: Minimum cost of a request, so that empty and failed requests are not free.
MIN_COST_BYTES: Final = 4096
#: Longest time between an answer and the next request of a process that only waits for
#: answers (s).
THINK_S: Final = 0.002
#: The percentile of the response times that an SLO bounds.
PERCENTILE: Final = 0.95
#: The SLO of every application where no SLOs are given: all applications are equal.
_EQUAL_BYTES_PER_S: Final = 1e6
_EQUAL_LATENCY_S: Final = 1.0
#: Applications without an SLO get the lowest throughput divided by this factor, and
#: the longest latency multiplied by it.
_OTHERS_FACTOR: Final = 10.0


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
    is_urgent: bool = False
    """A metadata operation that must not wait (`penstock.qos.metadata`)."""
    arrived_s: float = field(default=0.0, init=False)
    """Arrival at the scheduler."""
    cost_bytes: int = field(default=MIN_COST_BYTES, init=False)
    """Bytes charged to the application: max(size_bytes, MIN_COST_BYTES)."""

    def __post_init__(self) -> None:
        if self.size_bytes > MIN_COST_BYTES:
            self.cost_bytes = self.size_bytes

    @property
    def kind_number(self) -> int:
        """The number of its kind, for kernels."""
        return URGENT_KIND if self.is_urgent else KINDS.index(self.kind)

    def unused_bytes(self, moved_bytes: int) -> int:
        """Return the refund: the cost minus max(moved_bytes, MIN_COST_BYTES)."""
        return self.cost_bytes - min(self.cost_bytes, max(moved_bytes, MIN_COST_BYTES))


# --- Service-level objectives -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slo:
    """The promise to one application: throughput and latency, both positive."""

    throughput_bytes_per_s: float
    """t_i."""
    latency_s: float
    """l_i: bound on the 95th percentile of the response times."""

    def __post_init__(self) -> None:
        for name, value, unit in (
            ("throughput", self.throughput_bytes_per_s, "bytes/s"),
            ("latency", self.latency_s, "s"),
        ):
            if not 0 < value < inf:
                raise InputError(
                    f"{value!r} is not a valid bound",
                    where=name,
                    remedy=f"give a positive, finite number of {unit}",
                )


def slo_of(slos: Mapping[str, Slo], application: str) -> Slo:
    """Return the SLO of an application, or the SLO for unnamed applications.

    Unnamed applications get a tenth of the lowest throughput and ten times the longest
    latency: little, but enough not to starve.
    """
    if application in slos:
        return slos[application]
    if not slos:
        return Slo(_EQUAL_BYTES_PER_S, _EQUAL_LATENCY_S)
    return Slo(
        min(slo.throughput_bytes_per_s for slo in slos.values()) / _OTHERS_FACTOR,
        max(slo.latency_s for slo in slos.values()) * _OTHERS_FACTOR,
    )


def percentile(values: Sequence[float]) -> float:
    """Return the 95th percentile: the smallest value that 95 % do not exceed."""
    return sorted(values)[ceil(PERCENTILE * len(values)) - 1]


def unmet(slos: Mapping[str, Slo], capacity_bytes_per_s: float) -> InputError | None:
    """Return an error if the sum of the throughputs exceeds the storage capacity."""
    total = fsum(slo.throughput_bytes_per_s for slo in slos.values())
    if total <= capacity_bytes_per_s:
        return None
    excess = total - capacity_bytes_per_s
    rates = (total, capacity_bytes_per_s, excess)
    sum_text, capacity, reduction = (
        format_bandwidth(rate, like=capacity_bytes_per_s) for rate in rates
    )
    return InputError(
        f"the SLOs add up to {sum_text}, and the storage has only {capacity}",
        remedy=f"reduce them by {reduction}, or expect overload",
    )


# --- Schedulers ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guarantees:
    """The guarantees of a scheduler."""

    promises: bool = False
    """An application that always has a request, waiting or at the storage, gets at
    least its throughput t_i, if the t_i add up to at most the capacity. It is up to the
    application to issue a request within `THINK_S` of an
    answer."""
    shares: bool = False
    """Applications that always have requests waiting are served in proportion to their
    t_i. Over several servers this holds for the total, with reports or a layout."""
    deadlines: bool = False
    """Of the waiting requests, the one with the earliest deadline is sent first."""
    latency: bool = False
    """While all applications issue at most their t_i and the storage is not overloaded,
    95 of 100 requests of each are answered within its latency bound l_i."""


class Scheduler(Protocol):
    """Decides when requests are sent; ``now`` is in seconds and never decreases."""

    @property
    def wake_s(self) -> float:
        """When `dispatch` must be called again if nothing happens before; inf: never.

        It is valid after a call of `dispatch`.
        """

    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request."""

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests to send now, in order."""

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Record that the storage has completed a request."""


class QosScheduler(Scheduler, Protocol):
    """A scheduler with service-level objectives (SLOs).

    A subclass may leave out the last four methods: here they do nothing. A scheduler
    that shares throughput needs them.
    """

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

    def set_slos(self, slos: Mapping[str, Slo], now: float) -> None:
        """Replace the SLOs; they hold for requests that arrive from now on."""
        return

    def set_layout(self, factors: Mapping[str, int]) -> None:
        """Set the number of servers that hold each application's files.

        From now on service on other servers is inferred from these numbers, and
        reports are ignored.
        """
        return

    def record_remote_service(
        self,
        server: str,
        served_bytes: Mapping[str, float],
        now: float,
    ) -> None:
        """Record a report: what another server has served since it started."""
        return

    def share_storage(self, until_s: float, slack: float = inf) -> None:
        """Record that other schedulers send to the same storage, until a time (s).

        `slack` is the least slack factor of their applications.
        """
        return


# --- Central credit -----------------------------------------------------------------


class ApplicationUse(NamedTuple):
    """What an application has used of one mount since the mount started."""

    sent_bytes: float
    """Cost of the requests that have passed to the scheduler, minus refunds."""
    done_bytes: float
    """Cost of the requests that are complete, minus refunds."""
    busy_s: float
    """Time with at least one request at the mount; pauses below `THINK_S` count."""
    blocked: int
    """Number of requests that wait for granted credit now."""
    slack: float = inf
    """Slack factor E_i of its last window (`penstock.qos.parts.feedback`): its time at
    the storage may grow by this factor. inf: not measured."""
    present_s: float = 0.0
    """Time that its requests were at the mount, added over requests."""


class Credit(NamedTuple):
    """What a mount of a shared storage is granted for one lease."""

    rates: Mapping[str, float] = {}
    """Application -> most that it may draw here (bytes/s); not named: no limit."""
    parts: Mapping[str, float] = {}
    """Application -> part of its rate on this storage that this mount has; not named:
    1."""
    slack: float = inf
    """Least slack factor of all applications at other mounts of this storage."""

    @property
    def is_shared(self) -> bool:
        """True if two or more applications use the storage."""
        return bool(self.rates or self.parts)


class CreditScheduler(Scheduler, Protocol):
    """A scheduler that keeps the rates that applications are granted."""

    def set_credit(self, credit: Credit, lease_s: float, now: float) -> None:
        """Replace the credit; it holds for `lease_s` seconds."""

    def set_caps(self, caps: Mapping[str, float], now: float) -> None:
        """Replace what applications may draw at most (bytes/s)."""

    def use(self, now: float) -> dict[str, ApplicationUse]:
        """Return what each application has used so far, for a report."""
