# SPDX-License-Identifier: MIT
"""Lending: bandwidth that a job does not use goes to the other jobs.

A job is *frugal* if for `LEND_AFTER_S` it has drawn less than `LEND_BELOW` of its
grant and none of its calls was held up, or if it is known to pause in the middle of an
operation. A frugal job keeps the rate that it draws, plus some headroom; the policy
divides the rest among the other jobs. The job gets its whole grant back when it draws
`LEND_UNTIL` of what it keeps, and at the first report that a call was held up or that
the pause is over.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from math import inf
from typing import Final

from penstock.live.control.job_columns import JobColumns
from penstock.live.control.jobs import ControlledJob

__all__ = ["LEND_AFTER_S", "LEND_FLOOR", "Lender"]

#: How long a job must draw too little before its grant is lent.
LEND_AFTER_S: Final = 0.4
#: A job that draws less than this part of its grant is frugal.
LEND_BELOW: Final = 0.8
#: A frugal job keeps the rate that it draws times this factor,
LEND_HEADROOM: Final = 1.25
#: but at least this part of its cap.
LEND_FLOOR: Final = 0.01
#: A job that draws this part of the rate that it keeps may want more. It is not held up
#: if the storage is the limit.
LEND_UNTIL: Final = 0.9


class Lender:
    """Finds the frugal jobs and lends the part of their grants that they do not use.

    Parameters
    ----------
    columns
        The columns of the controller whose jobs are watched.
    lends
        False: never lend.
    """

    def __init__(self, columns: JobColumns, *, lends: bool) -> None:
        self._columns = columns
        self._lends = lends
        self._frugal: dict[int, ControlledJob] = {}

    def give_back(self, job: ControlledJob) -> None:
        """Give a job its whole grant back."""
        self._frugal.pop(job.number, None)
        job.kept_rate, job.pauses = inf, False

    def watch(
        self, job: ControlledJob, now: float, *, held_up: bool, pauses: bool
    ) -> None:
        """Find out from a report whether a job is frugal.

        `held_up` and `pauses` are as in `Controller.progress`.
        """
        if held_up or (job.pauses and not pauses):
            self._take_back(job)
            job.restart_measurement(now)
        if pauses and job.pauses:
            return
        job.pauses = pauses
        elapsed_s = now - job.measured_since_s
        if not self._lends or (elapsed_s < LEND_AFTER_S and not pauses):
            return
        if pauses or job.drawn_bytes < LEND_BELOW * job.offered_bytes:
            drawn = 0.0 if pauses else job.drawn_bytes / elapsed_s
            job.kept_rate = max(LEND_HEADROOM * drawn, LEND_FLOOR * job.cap)
            self._frugal[job.number] = job
            self._columns.request_decision()
        elif job.drawn_bytes >= LEND_UNTIL * job.offered_bytes:
            self._take_back(job)
        job.restart_measurement(now)

    def _take_back(self, job: ControlledJob) -> None:
        """Let a job that lends use its whole grant again."""
        if self._frugal.pop(job.number, None):
            job.kept_rate = inf
            self._columns.request_decision()

    def end_decision(self, wake: float, capacity: float) -> None:
        """End a decision: grant what the policy wants, except what is lent.

        Frugal jobs get the rate that they keep. The policy divides the rest among the
        other jobs, repeatedly: with more bandwidth to divide, another frugal job may
        get more than it keeps.
        """
        columns, fixed = self._columns, dict[int, float]()
        if not self._overprovided(fixed):
            columns.shares_before_lending = None
            columns.end_decision(wake)
            return
        columns.shares_before_lending = columns.wanted_rates()
        active, wake = columns.active(), inf
        while more := self._overprovided(fixed):
            fixed |= more
            others = [number for number in active if number not in fixed]
            if others:
                left = max(capacity - sum(fixed.values()), 0.0)
                wake = columns.ask_again(others, left)
        columns.end_lending(active, fixed, wake)

    def _overprovided(self, fixed: dict[int, float]) -> dict[int, float]:
        """Return the frugal jobs that would get more than they keep, with that rate."""
        wanted = self._columns.state.wanted
        return {
            number: job.kept_rate
            for number, job in self._frugal.items()
            if number not in fixed and wanted[number] > job.kept_rate
        }
