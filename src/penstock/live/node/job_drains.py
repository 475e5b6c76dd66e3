# SPDX-License-Identifier: MIT
"""Drains what the jobs of a node have staged, within the budgets of their users.

A start of a drainer beside a job, and a look for data of ended processes, cost their
user one token (`Spending.DRAINS`); without tokens they wait. What a job has left behind
is drained in any case: one folder of a user after the other (`Sweeper`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from penstock.live.node.budgets import Budgets, Spending
from penstock.live.node.local_job import LocalJob
from penstock.live.staging.drainers import Sweeper

__all__ = ["JobDrains"]


class JobDrains:
    """The drainers and sweepers of an agent."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self.sweeper = Sweeper()
        #: Merges parts whose files another node may write: they wait for no drain.
        self.merger = Sweeper()

    def search(self, patterns: Sequence[str]) -> None:
        """Drain the folders with journals that match; see `Sweeper.search`."""
        self.sweeper.search(patterns)

    def keep(self, job: LocalJob, now_s: float) -> None:
        """Drain beside a job, and what its ended processes have left in parts."""
        job.keep_draining(partial(self._may_drain, job, now_s))
        self.sweep_orphans(job, now_s)

    def sweep_orphans(self, job: LocalJob, now_s: float) -> None:
        """Merge what processes of a job that have ended have left in parts."""
        parts = job.orphaned_parts(now_s)
        if parts and self._may_drain(job, now_s):
            self.sweeper.sweep(parts)

    def sweep(self, job: LocalJob, now_s: float) -> None:
        """Drain what a job that is over has left."""
        if leftovers := job.leftovers():
            # In any case: what is left must be drained.
            self._budgets.charge(job.note.user, Spending.DRAINS, now_s)
            self.sweeper.sweep(leftovers)

    def merge_living(self, job: LocalJob) -> None:
        """Merge the parts of a job that has got a second node."""
        self.merger.sweep(job.leftovers(merges_living=True))

    def _may_drain(self, job: LocalJob, now_s: float) -> bool:
        """Return True if a drain of this job is within the budget of its user."""
        return self._budgets.take(job.note.user, Spending.DRAINS, now_s)

    def close(self) -> None:
        """Start nothing more; processes that run go on by themselves."""
        self.sweeper.close()
        self.merger.close()
