# SPDX-License-Identifier: MIT
"""What the control loop has to do after a decision of the coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from penstock.live.control.past import CompletedOperation, JobRun
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.wire.messages import ToAgent

__all__ = ["CoordinatorOutput"]


@dataclass(slots=True)
class CoordinatorOutput:
    """Result of `Coordinator.decide`: what the control loop has to do."""

    messages: list[tuple[str, ToAgent]] = field(default_factory=list)
    """Agent and message, in the order of sending."""
    wake: float = inf
    """When to call `decide` again if nothing happens (s)."""
    left: dict[str, JobHistory] = field(default_factory=dict)
    """Job key -> history, for jobs that have left."""
    learnt: dict[str, JobHistory] = field(default_factory=dict)
    """History key -> history, for those of them that the batch system has named."""
    left_runs: list[JobRun] = field(default_factory=list)
    """Jobs that have left and had an operation, to be archived."""
    completed: list[tuple[JobRun, CompletedOperation]] = field(default_factory=list)
    """Operations that have ended, with their jobs, to be archived."""
    ended: set[str] = field(default_factory=set)
    """Keys of jobs whose operation has ended."""
    retargeted: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Job key -> storage targets, for jobs whose new files go to other targets."""
    changes: list[str] = field(default_factory=list)
    """What operators have changed, for the log."""
