# SPDX-License-Identifier: MIT
"""What the control loop has to do after a decision of the coordinator."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

from msgspec.structs import replace

from penstock.live.control.jobs import JobHistory
from penstock.live.control.past import DRY_RUN, CompletedOperation, JobRun
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

    def mark_dry_run(self) -> None:
        """Archive that no policy held up the jobs."""
        self.left_runs = [replace(run, policy=DRY_RUN) for run in self.left_runs]
        self.completed = [
            (replace(run, policy=DRY_RUN), operation._replace(policy=DRY_RUN))
            for run, operation in self.completed
        ]
