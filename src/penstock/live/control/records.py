# SPDX-License-Identifier: MIT
"""What is known of agents and jobs beside what the controller knows.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Final

from penstock.live.control.phases import PastOperation, PhaseWatch, VolumeGuess
from penstock.live.control.stager import NO_ORDER
from penstock.live.wire.messages import JobCounters
from penstock.staging import StagingOrder

__all__ = ["DRAW_S", "AgentRecord", "Draw", "JobRecord"]

#: Time over which the rate that a job draws is measured (s).
DRAW_S: Final = 0.5
#: Operations of a job that a predictor may look at.
_PERIODS: Final = 64


@dataclass(slots=True)
class Draw:
    """Measures the rate that a job draws, over half a second or more."""

    since: float
    volume: float = 0.0
    rate: float = 0.0

    def see(self, now: float, volume: float) -> None:
        """Take what it has moved until now (bytes)."""
        if now - self.since >= DRAW_S:
            self.rate = (volume - self.volume) / (now - self.since)
            self.since, self.volume = now, volume


@dataclass(slots=True)
class AgentRecord:
    """What is known of an agent."""

    heard: float = 0.0
    """When it last said something (s)."""
    told: float = -inf
    """When it was last told something (s)."""
    jobs: set[str] = field(default_factory=set)


@dataclass(slots=True)
class JobRecord:
    """What the controller does not know of a job."""

    key: str
    user: int
    claimed_nodes: int
    watch: PhaseWatch
    guess: VolumeGuess
    draw: Draw
    counts: dict[str, JobCounters] = field(default_factory=dict)
    """By agent."""
    rates: dict[str, float] = field(default_factory=dict)
    """What was last sent to each agent (bytes/s)."""
    busy: list[str] = field(default_factory=list)
    """Agents on whose nodes its operation goes on."""
    moved_before: float = 0.0
    """On nodes that it has left (bytes)."""
    operations: int = 0
    begun: float = 0.0
    """When its operation was posted (s)."""
    done: deque[PastOperation] = field(default_factory=lambda: deque(maxlen=_PERIODS))
    """Its last operations."""
    sure_volume: float = 0.0
    """Of its operation (bytes), if it is sure; else 0."""
    stages: dict[str, bool] = field(default_factory=dict)
    """Whether each agent was last told that its writes are staged."""
    order: StagingOrder = NO_ORDER

    @property
    def name(self) -> str:
        """What its user calls it."""
        return self.key.partition(":")[2]

    @property
    def nodes(self) -> int:
        """How many it runs on, as it says or as is seen."""
        return self.claimed_nodes or max(len(self.counts), 1)

    @property
    def moved(self) -> float:
        """On all nodes, ever (bytes)."""
        return self.moved_before + sum(c.moved_bytes for c in self.counts.values())

    @property
    def waiting(self) -> bool:
        """Whether a call of it is held up."""
        return any(c.waiting for c in self.counts.values())

    @property
    def staged(self) -> float:
        """In its journals, not yet in the files (bytes)."""
        return sum(c.staged_bytes for c in self.counts.values())

    @property
    def quiet(self) -> float:
        """For how long no program of it has called (s)."""
        return min((c.quiet_s for c in self.counts.values()), default=inf)
