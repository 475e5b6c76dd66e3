# SPDX-License-Identifier: MIT
"""What a staging strategy is shown, and what it answers.

An application is *in its I/O phase* from the moment it opens its files until closing
them has returned (burst-buffer coordination, section V-A). Data are *staged* while they
are in its burst buffer and not on the storage. A *turn* is a time during which the
application may drain without interruption. The program that runs the strategy (the
simulator or the controller) notes when turns begin and end, and the targets of the last
order: strategies have no memory.
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
    phase_began_s: float = inf
    """When its present I/O phase began (s); inf if it is in none."""
    phase_bytes: float = 0.0
    """Data that it writes in the phase, known or predicted (bytes); 0: not known."""
    processes: int = 1
    nodes: int = 1
    """Number of nodes on which it runs."""
    targets: tuple[int, ...] = ()
    """Targets of the last order that it was given; none: it has no order yet."""
    priority: float = 0.0
    """Set by the operator; the highest goes first."""
    staged_bytes: float = 0.0
    """Data in its buffer (bytes)."""
    is_blocked: bool = False
    """True if it can only wait: its buffer is full, or it is in fsync or close."""
    turn_began_s: float = inf
    """When its turn to drain began (s); inf if it is not its turn."""
    turn_ended_s: float = -inf
    """When its last turn ended (s); -inf if it never had one."""
    mean_request_bytes: float = 0.0
    """Mean size of its requests, all processes together (bytes); 0: not known."""
    mean_pause_s: float = 0.0
    """Mean time between its requests (s)."""
    dedicated_bytes_per_s: float = inf
    """Bandwidth that it draws when it is alone (bytes/s)."""

    @property
    def in_phase(self) -> bool:
        """True if it is in its I/O phase."""
        return self.phase_began_s < inf


@dataclass(frozen=True, slots=True)
class Situation:
    """All applications at one instant."""

    now_s: float
    """This instant (s)."""
    target_count: int
    """Number of storage targets."""
    applications: tuple[ApplicationStatus, ...]

    def arrivals(self) -> list[int]:
        """Return the applications in their I/O phase by arrival (ties: by index)."""
        present = [i for i, a in enumerate(self.applications) if a.in_phase]
        return sorted(present, key=lambda i: (self.applications[i].phase_began_s, i))

    @property
    def all_targets(self) -> tuple[int, ...]:
        """The numbers of all storage targets."""
        return tuple(range(self.target_count))


@dataclass(frozen=True, slots=True)
class StagingOrder:
    """What one application does from now on."""

    targets: tuple[int, ...]
    """Numbers of the targets for its next requests and drains."""
    stage: bool = False
    """True: its requests go to its buffer; False: to the storage."""
    drain: bool = False
    """True if its buffer may be drained now."""
    drain_bytes_per_s: float = inf
    """Highest rate of its drain (bytes/s)."""


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """The answer of a strategy: an order for every application."""

    orders: Sequence[StagingOrder]
    wake_s: float = inf
    """When to ask again if nothing that the strategy sees changes before (s)."""
    drains_in_background: bool = field(default=False, kw_only=True)
    """True if drains only get the bandwidth that writers leave."""
