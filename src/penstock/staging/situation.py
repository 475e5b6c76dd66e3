# SPDX-License-Identifier: MIT
"""What a staging strategy is shown, and what it answers.

An application is *in its I/O phase* from the moment it opens its files to the moment
at which closing them has returned (papers/4 section V-A). What it has *staged* is in
its burst buffer and not yet on the storage. A *turn* is the time for which it is
allowed to drain without interruption; whoever drives the strategy (the simulator, the
controller) notes when turns begin and end, so that strategies need no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

__all__ = ["ApplicationStatus", "Situation", "StagingOrder", "StagingPlan"]


@dataclass(frozen=True, slots=True)
class ApplicationStatus:
    """One application, as a strategy sees it."""

    name: str
    began: float = inf
    """When its present I/O phase began (s); inf while it is in none."""
    volume: float = 0.0
    """What it will write in the phase, known or predicted (bytes)."""
    processes: int = 1
    priority: float = 0.0
    """As set by the operator; higher goes first."""
    staged: float = 0.0
    """What its buffer holds (bytes)."""
    blocked: bool = False
    """Whether it can do nothing but wait: buffer full, or in fsync or close."""
    turn_began: float = inf
    """When its turn to drain began (s); inf if it is not its turn."""
    turn_ended: float = -inf
    """When its last turn ended (s); -inf if it never had one."""
    request: float = 0.0
    """Mean size of its requests, all processes together (bytes); 0: not known."""
    pause: float = 0.0
    """Mean time between its requests (s)."""
    bandwidth: float = inf
    """What it can draw when it is alone (bytes/s)."""

    @property
    def in_phase(self) -> bool:
        """Whether it is in its I/O phase."""
        return self.began < inf


@dataclass(frozen=True, slots=True)
class Situation:
    """All applications at one instant."""

    now: float
    """This instant (s)."""
    targets: int
    """How many storage targets there are."""
    applications: tuple[ApplicationStatus, ...]

    def arrivals(self) -> list[int]:
        """Return who is in its I/O phase, in the order of arrival (ties: by index)."""
        standings = self.applications
        present = [i for i, a in enumerate(standings) if a.in_phase]
        return sorted(present, key=lambda i: (standings[i].began, i))

    @property
    def all_targets(self) -> tuple[int, ...]:
        """The numbers of all storage targets."""
        return tuple(range(self.targets))


@dataclass(frozen=True, slots=True)
class StagingOrder:
    """What one application does from now on."""

    targets: tuple[int, ...]
    """Where what it writes from now on goes, by itself or by draining."""
    stage: bool = False
    """True: its requests go to its buffer; False: to the storage."""
    drain: bool = False
    """Whether its buffer may be drained now."""
    drain_rate: float = inf
    """At what rate at most (bytes/s)."""


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """The answer of a strategy: an order for every application."""

    orders: Sequence[StagingOrder]
    wake: float = inf
    """When to ask again if nothing happens (s)."""
    background: bool = field(default=False, kw_only=True)
    """Whether drains only get what writing through leaves of the bandwidth."""
