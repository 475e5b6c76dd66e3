# SPDX-License-Identifier: MIT
"""When to read the counters of which job, within the budgets of the users.

Each look at a page costs its user one token (`Spending.LOOKS`). A job whose user has
none left gets a *turn*: the instant at which the token that it has asked for is there.
Turns come in the order in which jobs ask, so every job of a user over budget is looked
at equally often. That matters to other users: a job keeps its grant until a report
shows that it does not use it.

Nothing here reads a clock: times are passed in, in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf
from typing import Final

from penstock.live.node.budgets import Budgets, Spending
from penstock.live.node.local_job import LocalJob
from penstock.live.wire.messages import AgentConfig

__all__ = ["ReportSchedule"]

#: Most jobs in one report; to read their counters takes about 20 us each.
_MOST_AT_ONCE: Final = 100
#: Longest time between two readings of the counters of an idle job (s). They show bytes
#: that were not controlled, and the calls of processes that cannot map their bell.
_LONGEST_PAUSE_S: Final = 30.0


class ReportSchedule:
    """The instants at which jobs are reported next.

    Parameters
    ----------
    jobs
        Job key -> job; jobs that are not in it any more are forgotten.
    budgets
        What each user may take of the agent.
    """

    def __init__(self, jobs: Mapping[str, LocalJob], budgets: Budgets) -> None:
        self._jobs = jobs
        self._budgets = budgets
        #: Heap of (time, key). An entry that is not at the time
        #: `LocalJob.report_due_s` is out of date; if that is finite, there is one.
        self._due: list[tuple[float, str]] = []

    def __len__(self) -> int:
        """Return the number of entries, those out of date included."""
        return len(self._due)

    def put(self, job: LocalJob, due_s: float) -> None:
        """Have a job reported at `due_s`, and not before unless it posts."""
        if job.report_due_s != due_s:
            job.report_due_s = due_s
            heappush(self._due, (due_s, job.key))

    def put_next(
        self, job: LocalJob, quiet_s: float, config: AgentConfig, now_s: float
    ) -> None:
        """Set when to read the counters of a job next, which has just been read.

        That is at the latest when the operation ends if no call follows. The pauses of
        an idle job double, up to `_LONGEST_PAUSE_S`, and end at a multiple of the first
        one: idle jobs are reported together, not one by one.

        Parameters
        ----------
        quiet_s
            Time for which the job has made no call (s).
        """
        if job.may_operate:
            job.idle_reports, pause_s = 0, config.report_s
            if quiet_s < config.gap_s:
                pause_s = min(pause_s, config.gap_s - quiet_s)
        else:
            first_s = config.lease_s / 3.0
            longest_s = max(first_s, _LONGEST_PAUSE_S)
            pause_s = min(first_s * 2.0 ** min(job.idle_reports, 16), longest_s)
            pause_s -= (now_s + pause_s) % first_s
            job.idle_reports += 1
        self.put(job, now_s + pause_s)

    def take_due(self, until_s: float) -> list[LocalJob]:
        """Return the jobs that are due until then, and take them from the schedule.

        At most `_MOST_AT_ONCE`: the next update follows soon, and posts come between.
        """
        due: list[LocalJob] = []
        while self.next_s() <= until_s and len(due) < _MOST_AT_ONCE:
            _, job_key = heappop(self._due)
            job = self._jobs[job_key]
            # Not a second time; the report sets when to report it next.
            job.report_due_s = inf
            if self.may_look(job, until_s):
                due.append(job)
        return due

    def may_look(self, job: LocalJob, now_s: float) -> bool:
        """Return True if a job may be looked at now; else it is due at its turn."""
        if job.turn_s == inf:
            wait_s = self._budgets.spend(job.note.user, Spending.LOOKS, now_s)
            job.turn_s = now_s + wait_s
        if job.turn_s > now_s:
            self.put(job, job.turn_s)
            return False
        job.turn_s = inf
        return True

    def next_s(self) -> float:
        """Return when the next job is due; inf: none is."""
        while self._due and not self._is_current(*self._due[0]):
            heappop(self._due)
        return self._due[0][0] if self._due else inf

    def _is_current(self, due_s: float, job_key: str) -> bool:
        job = self._jobs.get(job_key)
        return job is not None and job.report_due_s == due_s
