# SPDX-License-Identifier: MIT
"""Staging, live: a strategy of burst-buffer coordination is asked about running jobs.

Strategies are stateless. `Stager` keeps the one fact of the past that they need: when
each job's turn to drain began and ended. The simulator does the same. Like the
coordinator, which asks it, it has no clock and no I/O.

Times are in seconds, rates in bytes per second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from penstock.staging import (
    ApplicationStatus,
    Situation,
    StagingOrder,
    StagingPlan,
    Strategy,
)

__all__ = ["NO_ORDER", "Stager", "held_rate"]

#: A job that may not drain is granted this part of the bandwidth, and at least
#: `_HELD_LEAST`: close to nothing, but a job that never pauses must not block forever.
_HELD_SHARE: Final = 1e-3
_HELD_LEAST: Final = 1.0
#: Order of a job without a decision: it writes to its files wherever they are, and
#: staged data is drained.
NO_ORDER: Final = StagingOrder((), drain=True)


def held_rate(bandwidth: float) -> float:
    """Return the rate that a job which may not drain is granted."""
    return max(_HELD_SHARE * bandwidth, _HELD_LEAST)


@dataclass(slots=True)
class _Turn:
    """When a job's turn to drain began, and when its previous turn ended."""

    began_s: float = inf
    ended_s: float = -inf


class Stager:
    """Asks a strategy for the staging orders of all jobs.

    Parameters
    ----------
    targets
        Number of storage targets that can be assigned to jobs.
    """

    def __init__(self, strategy: Strategy, targets: int = 1) -> None:
        self.strategy = strategy
        self.targets = targets
        self.wake = inf
        """When to ask again if nothing happens."""
        self.background = False
        """True if drains get only the bandwidth that writers cannot use."""
        self.warnings: list[str] = []
        """Warnings of the strategy about its own plan."""
        self._turns: dict[str, _Turn] = {}

    def decide(
        self, applications: Sequence[ApplicationStatus], now: float
    ) -> dict[str, StagingOrder]:
        """Return the order of every job, by its key; update `wake` and the like."""
        # If the strategy fails, nothing of its previous plan holds any more.
        self.wake, self.background, self.warnings = inf, False, []
        self._turns = {
            job.name: self._turns.get(job.name, _Turn()) for job in applications
        }
        shown = tuple(self._with_turn(job) for job in applications)
        situation = Situation(now, self.targets, shown)
        plan = self.strategy.decide(situation)
        self.wake, self.background = plan.wake_s, plan.drains_in_background
        self.warnings = self.strategy.warnings(situation, plan)
        self._update_turns(shown, plan, now)
        return {job.name: order for job, order in zip(shown, plan.orders, strict=True)}

    def _with_turn(self, job: ApplicationStatus) -> ApplicationStatus:
        turn = self._turns[job.name]
        return replace(job, turn_began_s=turn.began_s, turn_ended_s=turn.ended_s)

    def _update_turns(
        self, applications: Sequence[ApplicationStatus], plan: StagingPlan, now: float
    ) -> None:
        for job, order in zip(applications, plan.orders, strict=True):
            turn = self._turns[job.name]
            drains = order.drain and job.staged_bytes > 0
            if drains and turn.began_s == inf:
                turn.began_s = now
            elif not drains and turn.began_s < inf:
                turn.began_s, turn.ended_s = inf, now
