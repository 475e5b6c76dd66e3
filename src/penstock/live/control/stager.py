# SPDX-License-Identifier: MIT
"""Who stages and who drains, live: a strategy of papers/4 asked about running jobs.

Strategies have no memory. This keeps the one thing they need to know of the past, when
each job's turn to drain began and ended, as the simulator does. Like the coordinator,
which asks it, it has no clock and no I/O.
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

#: What a job that may not drain is granted, of the bandwidth and at least (bytes/s):
#: next to nothing, but nobody waits for ever for somebody who never pauses.
_HELD_SHARE: Final = 1e-3
_HELD_LEAST: Final = 1.0
#: Of a job that nobody has decided about: it writes to the files, wherever they are,
#: and what it has staged nevertheless is drained.
NO_ORDER: Final = StagingOrder((), drain=True)


def held_rate(bandwidth: float) -> float:
    """Return what a job that may not drain is granted (bytes/s)."""
    return max(_HELD_SHARE * bandwidth, _HELD_LEAST)


@dataclass(slots=True)
class _Turn:
    """When a job's turn to drain began, and when its last one ended (s)."""

    began: float = inf
    ended: float = -inf


class Stager:
    """Asks a strategy what jobs are to do.

    Parameters
    ----------
    targets
        Number of storage targets that can be given out.
    """

    def __init__(self, strategy: Strategy, targets: int = 1) -> None:
        self.strategy = strategy
        self.targets = targets
        self.wake = inf
        self.background = False
        self.warnings: list[str] = []
        self._turns: dict[str, _Turn] = {}

    def decide(
        self, standings: Sequence[ApplicationStatus], now: float
    ) -> dict[str, StagingOrder]:
        """Return the order of every job, by its name; note whose turn it is.

        `wake` is then when to ask again if nothing happens (s), `background` whether
        drains only get what writers leave, `warnings` what the strategy has against
        its own answer.
        """
        # If the strategy fails, nothing of its last answer holds any more.
        self.wake, self.background, self.warnings = inf, False, []
        turns = {job.name: self._turns.get(job.name, _Turn()) for job in standings}
        self._turns = turns
        shown = tuple(
            replace(
                job,
                turn_began=turns[job.name].began,
                turn_ended=turns[job.name].ended,
            )
            for job in standings
        )
        situation = Situation(now, self.targets, shown)
        plan = self.strategy.decide(situation)
        self.wake, self.background = plan.wake, plan.background
        self.warnings = self.strategy.warnings(situation, plan)
        self._take_turns(shown, plan, now)
        return {job.name: o for job, o in zip(shown, plan.orders, strict=True)}

    def _take_turns(
        self, standings: Sequence[ApplicationStatus], plan: StagingPlan, now: float
    ) -> None:
        for job, order in zip(standings, plan.orders, strict=True):
            turn = self._turns[job.name]
            drains = order.drain and job.staged > 0
            if drains and turn.began == inf:
                turn.began = now
            elif not drains and turn.began < inf:
                turn.began, turn.ended = inf, now
