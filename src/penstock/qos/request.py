# SPDX-License-Identifier: MIT
"""A request on its way to storage, and what decides when it may go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, Literal, Protocol, TypeAlias

from penstock.qos.slo import Slo

__all__ = ["KINDS", "LEAST_COST", "Kind", "QosScheduler", "Request", "Scheduler"]

Kind: TypeAlias = Literal["read", "write", "sync", "metadata"]
KINDS: Final[tuple[Kind, ...]] = ("read", "write", "sync", "metadata")
#: What a request costs at least (bytes): one that moves nothing, or fails, is not free.
LEAST_COST: Final = 4096


@dataclass(slots=True, eq=False)
class Request:
    """A read, a write, or another call on its way to storage."""

    kind: Kind
    size: int
    """Bytes asked for; 0 for a call that moves none."""
    application: str = ""
    """Whose it is: a key of the SLOs."""
    pid: int = 0
    """The process that opened the file."""
    arrived: float = field(default=0.0, init=False)
    """When it came (s), as its scheduler was told."""
    deadline: float = field(default=inf, init=False)
    """When it is due (s); its scheduler says."""
    admitted: float = field(default=0.0, init=False)
    """When it passed the upper level of its scheduler (s)."""
    sent: float = field(default=0.0, init=False)
    """When it went to storage (s)."""

    cost: int = field(default=LEAST_COST, init=False)
    """Bytes that it counts as."""

    def __post_init__(self) -> None:
        if self.size > LEAST_COST:
            self.cost = self.size

    def unused(self, moved: int) -> int:
        """Return what of the cost is given back: all but what moved, or the least."""
        return self.cost - min(self.cost, max(moved, LEAST_COST))


class Scheduler(Protocol):
    """What decides when requests may go; times in seconds, never decreasing."""

    wake: float
    """When `dispatch` is to be asked again if nothing happens before; inf: never."""

    def arrive(self, request: Request, now: float) -> None:
        """Take a request in."""

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests that may go now, in their order."""

    def complete(self, request: Request, moved: int, now: float) -> None:
        """Hear that a request has moved so many bytes."""


class QosScheduler(Scheduler, Protocol):
    """A scheduler that knows service-level objectives."""

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""

    @property
    def outstanding(self) -> int:
        """Number of requests at the storage."""

    @property
    def depth(self) -> float:
        """Number of requests that may be at the storage at once; inf: any number."""

    @property
    def served(self) -> Mapping[str, int]:
        """Cost of what went to the storage here, less what was unused, by application.

        In bytes; what other servers are told.
        """

    def hear(self, server: str, totals: Mapping[str, float]) -> None:
        """Learn what another server has served since it began (bytes)."""

    def spread(self, factors: Mapping[str, int]) -> None:
        """Learn on how many servers each application's files lie; asked no more.

        From then on service elsewhere is inferred, and nothing need be heard.
        """

    def change(self, slos: Mapping[str, Slo], now: float) -> None:
        """Set other objectives; they hold for what arrives from now on."""
