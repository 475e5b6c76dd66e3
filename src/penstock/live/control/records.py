# SPDX-License-Identifier: MIT
"""Records of agents and jobs that the coordinator keeps beside the controller.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import Final

from penstock.live.control.phases import PastOperation, PhaseDetector
from penstock.live.control.stager import NO_ORDER
from penstock.live.control.volumes import VolumePredictor
from penstock.live.wire.messages import JobCounters
from penstock.staging import StagingOrder

__all__ = ["DRAW_S", "AgentRecord", "JobRecord"]

#: Interval over which the rate that a job draws is measured, at least.
DRAW_S: Final = 0.5
#: Number of past operations that a predictor may use.
_PAST_OPERATIONS: Final = 64


@dataclass(slots=True)
class AgentRecord:
    """An agent that has connected and sent its hello."""

    received_s: float = 0.0
    """When its last message arrived."""
    sent_s: float = -inf
    """When the last message was sent to it."""
    job_keys: set[str] = field(default_factory=set)
    """Jobs on its node."""


@dataclass(slots=True)
class JobRecord:
    """A job in the coordinator: its counters on each node, and what its agents know."""

    key: str
    user: int
    """User id."""
    claimed_nodes: int
    """Number of nodes as claimed by a trusted caller; 0: count the agents."""
    phases: PhaseDetector
    predictor: VolumePredictor
    draw_since_s: float
    """Begin of the interval over which `draw` is measured."""
    counters: dict[str, JobCounters] = field(default_factory=dict)
    """Agent -> latest counters."""
    sent_rates: dict[str, float] = field(default_factory=dict)
    """Agent -> rate last sent to it."""
    sent_stages: dict[str, bool] = field(default_factory=dict)
    """Agent -> whether its last order was to stage the job's writes."""
    busy_agents: list[str] = field(default_factory=list)
    """Agents on whose nodes the operation goes on."""
    moved_elsewhere_bytes: float = 0.0
    """Volume moved on nodes that the job has left."""
    certain_bytes: float = 0.0
    """Volume of the present operation, if it is certain; else 0."""
    operations: int = 0
    """Operations completed."""
    past_operations: deque[PastOperation] = field(
        default_factory=lambda: deque(maxlen=_PAST_OPERATIONS)
    )
    """The last operations completed."""
    order: StagingOrder = NO_ORDER
    """What the staging strategy has ordered."""
    draw: float = 0.0
    """Rate that the job draws, measured over `DRAW_S` or more."""
    _draw_base_bytes: float = 0.0

    @property
    def name(self) -> str:
        """The name that its user has given it."""
        return self.key.partition(":")[2]

    @property
    def nodes(self) -> int:
        """Number of nodes, as claimed or as counted."""
        return self.claimed_nodes or max(len(self.counters), 1)

    @property
    def moved_bytes(self) -> float:
        """Volume moved on all nodes since it was registered."""
        here = sum(counters.moved_bytes for counters in self.counters.values())
        return self.moved_elsewhere_bytes + here

    @property
    def held_up_s(self) -> float:
        """Time that its calls were held up on its present nodes, added over callers."""
        return sum(counters.held_up_s for counters in self.counters.values())

    @property
    def is_waiting(self) -> bool:
        """True if one of its calls is held up now."""
        return any(counters.waiting for counters in self.counters.values())

    @property
    def staged_bytes(self) -> float:
        """Volume in its journals that is not in the files yet."""
        return sum(counters.staged_bytes for counters in self.counters.values())

    @property
    def idle_s(self) -> float:
        """Time since the last I/O on any node."""
        return min(
            (counters.idle_s for counters in self.counters.values()), default=inf
        )

    @property
    def quiet_s(self) -> float:
        """Time since the last call of a program on any node."""
        return min(
            (counters.quiet_s for counters in self.counters.values()), default=inf
        )

    def measure_draw(self, now: float) -> None:
        """Update `draw` if the interval of measurement is over."""
        elapsed_s = now - self.draw_since_s
        if elapsed_s >= DRAW_S:
            moved_bytes = self.moved_bytes
            self.draw = (moved_bytes - self._draw_base_bytes) / elapsed_s
            self.draw_since_s, self._draw_base_bytes = now, moved_bytes
