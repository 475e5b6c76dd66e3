# SPDX-License-Identifier: MIT
"""The stagers of a coordinator: one for each storage.

Jobs on different storages share nothing: a job that drains on one of them takes no turn
of a job on another one. If the strategy divides storage targets, there is one stager
for all jobs: all of them have folders on these targets, wherever their working
directories are.

Like `Stager`, it has no clock and no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from penstock.errors import PenstockError
from penstock.live.control.records import JobRecord
from penstock.live.control.stager import NO_ORDER, Stager
from penstock.staging import StagingOrder

__all__ = ["Stagers", "StagingDecision"]


@dataclass(slots=True)
class StagingDecision:
    """What the strategy orders on all storages."""

    orders: dict[str, StagingOrder] = field(default_factory=dict)
    """Job key -> its order."""
    left: dict[str, float] = field(default_factory=dict)
    """Name of a storage -> what its writers leave to drains (bytes/s), if drains get no
    more than that."""
    faults: list[str] = field(default_factory=list)
    """Errors of the strategy, and its warnings about its own plan."""
    wake_s: float = inf
    """When to ask again if nothing happens."""


class Stagers:
    """Asks the strategy for each storage.

    Parameters
    ----------
    like
        The stager of every storage is made like this one.
    """

    def __init__(self, like: Stager) -> None:
        self._like = like
        #: Name of a storage with jobs -> its stager.
        self._by_name: dict[str, Stager] = {}

    @property
    def label(self) -> str:
        """The strategy, as users write it."""
        return self._like.strategy.label

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the storage targets that the strategy divides."""
        return self._like.target_names

    def reason(self, job: JobRecord) -> str:
        """Return why the strategy has made its plan for the storage of a job."""
        stager = self._by_name.get(self._group_of(job))
        return stager.reason if stager else ""

    def restore(self, job: JobRecord, targets: Sequence[str]) -> None:
        """Note the targets that a job has had since before this object was made."""
        self._get(self._group_of(job)).restore(job.key, targets)

    def decide(self, jobs: Iterable[JobRecord], now: float) -> StagingDecision:
        """Return the orders of all jobs."""
        groups: dict[str, list[JobRecord]] = {}
        for job in jobs:
            groups.setdefault(self._group_of(job), []).append(job)
        decision = StagingDecision()
        self._by_name = {name: self._get(name) for name in groups}
        for name, members in groups.items():
            self._decide(self._by_name[name], members, decision, now)
        return decision

    def _group_of(self, job: JobRecord) -> str:
        """Return the name of the storage that a job shares with others."""
        return "" if self._like.divides else job.storage.name

    def _get(self, name: str) -> Stager:
        if name not in self._by_name:
            self._by_name[name] = self._like.another()
        return self._by_name[name]

    def _decide(
        self,
        stager: Stager,
        jobs: Sequence[JobRecord],
        decision: StagingDecision,
        now: float,
    ) -> None:
        """Add what the strategy orders for the jobs of one storage."""
        applications = [job.application for job in jobs]
        try:
            orders = stager.decide(applications, now, _bandwidth_of(jobs))
        except PenstockError as error:
            # The strategy failed: its jobs write through, and staged data is drained.
            orders = {job.key: NO_ORDER for job in jobs}
            decision.faults.append(str(error))
        decision.orders |= orders
        decision.faults += stager.warnings
        decision.wake_s = min(decision.wake_s, stager.wake)
        if stager.background:
            decision.left |= _left_by_writers(jobs, orders)


def _bandwidth_of(jobs: Sequence[JobRecord]) -> float | None:
    """Return the bandwidth of the storage of these jobs; None: not known, or several.

    There are several if a strategy divides targets, and jobs work elsewhere as well.
    """
    storages = {job.storage.name: job.storage for job in jobs}
    return next(iter(storages.values())).bandwidth if len(storages) == 1 else None


def _left_by_writers(
    jobs: Iterable[JobRecord], orders: Mapping[str, StagingOrder]
) -> dict[str, float]:
    """Return what is left of each storage if jobs that write through get all they use.

    The keys are the names of the storages of the jobs.
    """
    used: dict[str, float] = {}
    capacities: dict[str, float] = {}
    for job in jobs:
        name = job.storage.name
        capacities[name] = job.storage.controller.capacity
        if job.phases.is_active and not (orders[job.key].stage or job.staged_bytes):
            used[name] = used.get(name, 0.0) + job.controlled.usable
    return {
        name: max(capacity - used.get(name, 0.0), 0.0)
        for name, capacity in capacities.items()
    }
