# SPDX-License-Identifier: MIT
"""Staging, live: a strategy of burst-buffer coordination is asked about running jobs.

Strategies are stateless. `Stager` keeps what they need of the past: when each job's
turn to drain began and ended, and the targets that it was given last. The simulator
does the same. Like the coordinator, which asks it, it has no clock and no I/O.

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
class _JobPast:
    """When a job's turn to drain began and its previous turn ended; its targets."""

    began_s: float = inf
    ended_s: float = -inf
    targets: tuple[int, ...] = ()


class Stager:
    """Asks a strategy for the staging orders of all jobs.

    Parameters
    ----------
    targets
        Number of storage targets that can be assigned to jobs.
    names
        Their names, to be shown; by default their numbers.
    """

    def __init__(
        self, strategy: Strategy, targets: int = 1, names: Sequence[str] = ()
    ) -> None:
        self.strategy = strategy
        self.targets = targets
        self.target_names = tuple(names) or tuple(map(str, range(targets)))
        self.wake = inf
        """When to ask again if nothing happens."""
        self.background = False
        """True if drains get only the bandwidth that writers cannot use."""
        self.warnings: list[str] = []
        """Warnings of the strategy about its own plan."""
        self._past: dict[str, _JobPast] = {}

    def decide(
        self, applications: Sequence[ApplicationStatus], now: float
    ) -> dict[str, StagingOrder]:
        """Return the order of every job, by its key; update `wake` and the like."""
        # If the strategy fails, nothing of its previous plan holds any more.
        self.wake, self.background, self.warnings = inf, False, []
        self._past = {
            job.name: self._past.get(job.name, _JobPast()) for job in applications
        }
        shown = tuple(self._with_past(job) for job in applications)
        situation = Situation(now, self.targets, shown)
        plan = self.strategy.decide(situation)
        self.wake, self.background = plan.wake_s, plan.drains_in_background
        self.warnings = self.strategy.warnings(situation, plan)
        self._update_past(shown, plan, now)
        return {job.name: order for job, order in zip(shown, plan.orders, strict=True)}

    def _with_past(self, job: ApplicationStatus) -> ApplicationStatus:
        past = self._past[job.name]
        return replace(
            job,
            turn_began_s=past.began_s,
            turn_ended_s=past.ended_s,
            targets=past.targets,
        )

    def _update_past(
        self, applications: Sequence[ApplicationStatus], plan: StagingPlan, now: float
    ) -> None:
        for job, order in zip(applications, plan.orders, strict=True):
            past = self._past[job.name]
            past.targets = order.targets
            drains = order.drain and job.staged_bytes > 0
            if drains and past.began_s == inf:
                past.began_s = now
            elif not drains and past.began_s < inf:
                past.began_s, past.ended_s = inf, now
