# SPDX-License-Identifier: MIT
"""What a staging strategy is shown, and what it answers.

An application is *in its I/O phase* from the moment it opens its files until closing
them has returned (burst-buffer coordination, section V-A). Data are *staged* while they
are in its burst buffer and not on the storage. A *turn* is a time during which the
application may drain without interruption. The program that runs the strategy (the
simulator or the controller) notes when turns begin and end, the targets of the last
order, and the memory that a plan asks to keep: strategies themselves have no state.

A strategy may ask what others would lead to: `Situation.forecast` simulates the next
phases under any strategy. The program that runs the strategy provides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

__all__ = [
    "ApplicationStatus",
    "Forecast",
    "Situation",
    "StagingOrder",
    "StagingPlan",
]


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
    written_bytes: float = 0.0
    """Data that it has written in its phase so far, staged data included (bytes)."""
    under_way_bytes: float = 0.0
    """What is left of a request that goes to the storage now: no order changes that
    (bytes)."""
    open_targets: tuple[int, ...] = ()
    """Targets of the request under way; if it cannot redirect its files, or merges them
    later, of all its open files."""
    redirects: bool = True
    """False if its open files stay on their targets."""
    merges: bool = False
    """True if redirected data is written once more, to the targets of its files, before
    they are closed."""
    can_stage: bool = True
    """False if it has no buffer: it writes through, whatever the strategy orders."""
    next_phase_s: float = inf
    """When its next I/O phase is expected to begin (s); inf: not known."""
    work_s: float = inf
    """Expected time between two I/O phases (s); inf: not known."""

    @property
    def in_phase(self) -> bool:
        """True if it is in its I/O phase."""
        return self.phase_began_s < inf


class Forecast(Protocol):
    """Simulates what a strategy would lead to."""

    @property
    def can_stage(self) -> bool:
        """True if there are buffers."""

    def __call__(
        self, situation: Situation, strategy: str, horizon_s: float
    ) -> Mapping[str, float]:
        """Return the slowdown of each application that writes.

        That is the length of its phase, what is over included, divided by its
        length alone; that of several phases is the sum of their lengths divided by the
        sum alone. Simulated are the phases that go on, and those that are expected to
        begin within `horizon_s` seconds, each until it ends.

        Raises `InputError` if the strategy cannot serve the applications, or if the
        simulation takes too many steps.
        """


@dataclass(frozen=True, slots=True)
class Situation:
    """All applications at one instant."""

    now_s: float
    """This instant (s)."""
    target_count: int
    """Number of storage targets."""
    applications: tuple[ApplicationStatus, ...]
    memory: object = None
    """`StagingPlan.memory` of the last plan; None: there was no plan."""
    forecast: Forecast | None = None
    """None: too little is known of the storage."""

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
    lacks_journals: bool = False
    """True if it was to stage and cannot. Drivers set it, strategies do not."""


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """The answer of a strategy: an order for every application."""

    orders: Sequence[StagingOrder]
    wake_s: float = inf
    """When to ask again if nothing that the strategy sees changes before (s)."""
    drains_in_background: bool = field(default=False, kw_only=True)
    """True if drains only get the bandwidth that writers leave."""
    memory: object = field(default=None, kw_only=True)
    """Shown to the strategy at its next decision."""
    reason: str = field(default="", kw_only=True)
    """Why this plan, in a sentence for users; names no application."""
