# SPDX-License-Identifier: MIT
"""Staging, live: a strategy of burst-buffer coordination is asked about running jobs.

Strategies are stateless. `Stager` keeps what they need of the past: when each job's
turn to drain began and ended, the targets that it was given last, and the memory that
a plan asks to keep. The simulator does the same. Like the coordinator, which asks it,
it has no clock and no I/O.

Times are in seconds, rates in bytes per second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from penstock.staging import (
    ApplicationStatus,
    Forecast,
    Situation,
    StagingOrder,
    StagingPlan,
    Strategy,
)

__all__ = ["NO_ORDER", "Stager", "held_rate", "numbers_of"]

#: A job that may not drain is granted this part of the bandwidth, and at least
#: `_HELD_LEAST`: close to nothing, but a job that never pauses must not block forever.
_HELD_SHARE: Final = 1e-3
_HELD_LEAST: Final = 1.0
#: Order of a job without a decision: it writes to its files wherever they are, and
#: staged data is drained.
NO_ORDER: Final = StagingOrder((), drain=True)


def numbers_of(kept: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of the targets `kept`; () unless all of them are known."""
    numbers = {name: number for number, name in enumerate(names)}
    known = all(name in numbers for name in kept)
    return tuple(numbers[name] for name in kept) if known else ()


def held_rate(bandwidth: float) -> float:
    """Return the rate that a job which may not drain is granted."""
    return max(_HELD_SHARE * bandwidth, _HELD_LEAST)


def _possible(
    plan: StagingPlan, applications: Sequence[ApplicationStatus]
) -> StagingPlan:
    """Return a plan in which jobs without journals write through.

    If such a job were held until its turn to drain, its writes would be: it has nowhere
    else to put them.
    """
    orders = [
        order
        if job.can_stage
        else replace(order, stage=False, lacks_journals=order.stage)
        for job, order in zip(applications, plan.orders, strict=True)
    ]
    return replace(plan, orders=orders)


@dataclass(slots=True)
class _JobPast:
    """When a job's turn to drain began and its previous turn ended; its targets."""

    began_s: float = inf
    ended_s: float = -inf
    targets: tuple[int, ...] = ()
    phase_began_s: float = inf
    open_targets: tuple[int, ...] = ()
    """`targets` when its phase began: its open files are there."""


class Stager:
    """Asks a strategy for the staging orders of all jobs.

    Parameters
    ----------
    targets
        Number of storage targets that can be assigned to jobs.
    names
        Their names, to be shown; by default their numbers.
    forecast
        Returns forecasts for a bandwidth of all targets; see `Situation.forecast`.
    """

    def __init__(
        self,
        strategy: Strategy,
        targets: int = 1,
        names: Sequence[str] = (),
        forecast: Callable[[float], Forecast] | None = None,
    ) -> None:
        self.strategy = strategy
        self.targets = targets
        self.target_names = tuple(names) or tuple(map(str, range(targets)))
        self.divides = bool(names) or targets > 1
        """True if there are storage targets that the strategy can give to jobs."""
        self.wake = inf
        """When to ask again if nothing happens."""
        self.background = False
        """True if drains get only the bandwidth that writers cannot use."""
        self.warnings: list[str] = []
        """Warnings of the strategy about its own plan."""
        self.reason = ""
        """Why the strategy has made its plan, in a sentence; "": it does not say."""
        self._forecast = forecast
        self._memory: object = None
        self._past: dict[str, _JobPast] = {}

    def another(self) -> Stager:
        """Return a stager with the same strategy, which knows no job."""
        names = self.target_names if self.divides else ()
        return Stager(self.strategy, self.targets, names, self._forecast)

    def restore(self, job_key: str, targets: Sequence[str]) -> None:
        """Note the targets that a job has had since before this object was made."""
        self._past[job_key] = _JobPast(targets=numbers_of(targets, self.target_names))

    def decide(
        self,
        applications: Sequence[ApplicationStatus],
        now: float,
        bandwidth: float | None = None,
    ) -> dict[str, StagingOrder]:
        """Return the order of every job, by its key; update `wake` and the like.

        `bandwidth` is that of all storage targets together; None: not known.
        """
        # If the strategy fails, nothing of its previous plan holds any more.
        self.wake, self.background, self.warnings, self.reason = inf, False, [], ""
        self._past = {
            job.name: self._past.get(job.name, _JobPast()) for job in applications
        }
        shown = tuple(self._with_past(job) for job in applications)
        forecast = self._forecast(bandwidth) if self._forecast and bandwidth else None
        situation = Situation(now, self.targets, shown, self._memory, forecast)
        plan = _possible(self.strategy.decide(situation), shown)
        self.wake, self.background = plan.wake_s, plan.drains_in_background
        self._memory, self.reason = plan.memory, plan.reason
        self.warnings = self.strategy.warnings(situation, plan)
        self._update_past(shown, plan, now)
        return {job.name: order for job, order in zip(shown, plan.orders, strict=True)}

    def _with_past(self, job: ApplicationStatus) -> ApplicationStatus:
        past = self._past[job.name]
        if job.phase_began_s != past.phase_began_s:
            past.phase_began_s = job.phase_began_s
            stays = job.in_phase and (job.merges or not job.redirects)
            past.open_targets = past.targets if stays else ()
        return replace(
            job,
            turn_began_s=past.began_s,
            turn_ended_s=past.ended_s,
            targets=past.targets,
            open_targets=job.open_targets or past.open_targets,
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
