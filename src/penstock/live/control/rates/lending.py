# SPDX-License-Identifier: MIT
"""Lending: bandwidth that a job does not use goes to the other jobs.

A job is *frugal* if for `LEND_AFTER_S` it has drawn less than `LEND_BELOW` of its
grant and none of its calls was held up, or if it is known to pause in the middle of an
operation. A frugal job keeps the rate that it draws, plus some headroom; the policy
divides the rest among the other jobs. The job gets its whole grant back when it draws
`LEND_UNTIL` of what it keeps, and at the first report that a call was held up or that
the pause is over.

What a job does is reported by its own processes, which may say anything. So activity
without bytes has no share. A job that says it is held up must draw its grant, for that
is what being held up means. If it draws less than `BELIEVED` of it, it is frugal like
any other, and its user may be *doubted*: its jobs are frugal when an operation begins,
and what they keep grows only with what they draw. A user is doubted

- for `DOUBTED_S` if a job was held up in all reports of `LEND_AFTER_S` and drew less
  than `BELIEVED` of its grant, or drew nothing. A program may be honest and do so: the
  machine is too busy to run it, or one call is slow.
- for `DOUBTED_S` if operations that have ended, `LEND_AFTER_S` of them or more, drew
  less than `BELIEVED` of their grants together. No job is judged by one short operation
  alone, and small writes or reads that memory serves look like that, too. Therefore the
  next operations begin with `1 / BELIEVED` of what these drew.
- for `FALSE_S` if bytes are claimed that the kernel has not counted (`doubt`).

Bytes that a large call, or a drain, moved before they were granted count as drawn until
they are granted, also in the next operation.

All frugal jobs together keep at most `LEND_FLOOR` of the bandwidth undrawn.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from math import inf
from typing import Final, NamedTuple

from penstock.live.control.rates.job_columns import JobColumns
from penstock.live.control.rates.jobs import ControlledJob

__all__ = [
    "BELIEVED",
    "DOUBTED_S",
    "FALSE_S",
    "LEND_AFTER_S",
    "LEND_FLOOR",
    "LEND_HEADROOM",
    "Lender",
]

#: How long a job must draw too little before its grant is lent.
LEND_AFTER_S: Final = 0.4
#: A job that draws less than this part of its grant is frugal.
LEND_BELOW: Final = 0.8
#: A frugal job keeps the rate that it draws times this factor,
LEND_HEADROOM: Final = 1.25
#: but at least this part of its cap, divided by the number of frugal jobs.
LEND_FLOOR: Final = 0.01
#: A job that draws this part of the rate that it keeps may want more. It is not held up
#: if the storage is the limit.
LEND_UNTIL: Final = 0.9
#: A job with one node that draws less than this part of its grant is not held up by it.
#: Of n nodes, one may be held up while the others are idle.
BELIEVED: Final = 0.25
#: How long a user is doubted whose jobs draw less than that.
DOUBTED_S: Final = 60.0
#: How long a user is doubted whose reports were false.
FALSE_S: Final = 600.0
#: What a job of a doubted user keeps is at most this multiple of its draw, before the
#: headroom: it must draw `BELIEVED` of what it keeps,
_GROWTH: Final = 1.0 / BELIEVED
#: and more if its reports were false.
_FALSE_GROWTH: Final = 2.0
#: A job that was granted its rate for less than this has not shown yet what it draws.
_MEASURED_S: Final = 0.5 * LEND_AFTER_S


class _Doubt(NamedTuple):
    """Until when the reports of a user are doubted, and what follows."""

    until_s: float
    draw: float
    """Rate that its operations drew, and with which the next ones begin."""
    is_false: bool
    """True if its reports were false."""


class _EndedOperations(NamedTuple):
    """Operations of a user that have ended and were not judged yet, added up."""

    elapsed_s: float
    granted_bytes: float
    drawn_bytes: float


_NO_OPERATIONS: Final = _EndedOperations(0.0, 0.0, 0.0)


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
        #: Number of a user -> why the user is doubted.
        self._doubts: dict[int, _Doubt] = {}
        #: Number of a user -> its operations that have ended.
        self._ended: dict[int, _EndedOperations] = {}

    def begin(self, job: ControlledJob, now: float) -> None:
        """Note that an operation of a job begins; it has moved nothing yet."""
        doubt = self._doubt_of(job, now)
        if doubt is not None:
            self._make_frugal(job, doubt.draw)

    def end(self, job: ControlledJob, now: float, moved_bytes: float) -> None:
        """Note that the operation of a job ends, which has moved `moved_bytes`.

        It counts up to now, and not to its last call: so long it has had a share.
        """
        if not job.granted_bytes:
            return
        user = job.user_number
        elapsed_s, granted_bytes, drawn_bytes = self._ended.pop(user, _NO_OPERATIONS)
        elapsed_s += job.since_post_s(now)
        granted_bytes += job.granted_bytes
        drawn_bytes += job.ahead_at_post_bytes + moved_bytes
        if elapsed_s < LEND_AFTER_S:
            ended = _EndedOperations(elapsed_s, granted_bytes, drawn_bytes)
            self._ended[user] = ended
        elif drawn_bytes < BELIEVED * granted_bytes:
            self._suspect(job, now, _GROWTH * (drawn_bytes / elapsed_s))

    def _suspect(self, job: ControlledJob, now: float, draw: float) -> None:
        """Doubt the user of a job, unless its reports are known to be false."""
        doubt = self._doubt_of(job, now)
        if doubt is None or not doubt.is_false:
            until_s = now + DOUBTED_S
            self._doubts[job.user_number] = _Doubt(until_s, draw, is_false=False)

    def doubt(self, job: ControlledJob, now: float) -> None:
        """Forget what a job has drawn, and doubt its user: it was not true."""
        self._doubts[job.user_number] = _Doubt(now + FALSE_S, 0.0, is_false=True)
        self._make_frugal(job, 0.0)
        job.restart_measurement(now)
        job.forget_surplus()

    def is_doubted(self, job: ControlledJob, now: float) -> bool:
        """Return True if reports of the user of a job are doubted."""
        return self._doubt_of(job, now) is not None

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
        job.always_held_up = job.always_held_up and held_up
        resumes = job.pauses and not pauses and not self._doubt_of(job, now)
        if job.needs_all or resumes:
            self._return_all(job)
            job.restart_measurement(now)
        elif (held_up or (job.pauses and not pauses)) and self._uses_grant(job):
            self._take_back(job, now)
            job.restart_measurement(now)
        elif held_up and job.offered_bytes < _MEASURED_S * job.rate:
            return  # too little was granted to tell
        if pauses and job.pauses:
            return
        job.pauses = pauses
        elapsed_s = now - job.measured_since_s
        if elapsed_s < LEND_AFTER_S and not pauses:
            return
        is_judged = not pauses and job.offered_bytes > 0.0
        if is_judged and (job.always_held_up or not job.evidence_bytes):
            self._suspect(job, now, job.drawn_bytes / elapsed_s)
        elif not self._lends:
            return
        if pauses or job.drawn_bytes < LEND_BELOW * job.offered_bytes:
            self._make_frugal(job, 0.0 if pauses else job.drawn_bytes / elapsed_s)
        elif job.drawn_bytes >= LEND_UNTIL * job.offered_bytes:
            self._take_back(job, now)
        job.restart_measurement(now)

    def _uses_grant(self, job: ControlledJob) -> bool:
        """Return True if a job draws enough to be held up by its grant."""
        least_bytes = BELIEVED * job.offered_bytes / job.nodes
        return job.evidence_bytes > 0.0 and job.evidence_bytes >= least_bytes

    def _doubt_of(self, job: ControlledJob, now: float) -> _Doubt | None:
        """Return why the user of a job is doubted; None: the user is not."""
        doubt = self._doubts.get(job.user_number)
        return doubt if doubt and now < doubt.until_s else None

    def _make_frugal(self, job: ControlledJob, draw: float) -> None:
        """Let a job that draws `draw` keep only this, and some headroom."""
        if job.number in self._frugal and draw == job.frugal_draw:
            return
        self._frugal[job.number] = job
        job.frugal_draw = draw
        self._update_kept_rate(job)
        self._columns.request_decision()

    def _update_kept_rate(self, job: ControlledJob) -> None:
        least = LEND_FLOOR * job.cap / len(self._frugal)
        job.kept_rate = max(LEND_HEADROOM * job.frugal_draw, least)

    def _take_back(self, job: ControlledJob, now: float) -> None:
        """Let a job that lends use its whole grant again, or more of it if doubted."""
        doubt = self._doubt_of(job, now)
        elapsed_s = now - job.measured_since_s
        if job.number not in self._frugal or not doubt or elapsed_s <= 0.0:
            self._return_all(job)
            return
        draw = min(job.evidence_bytes / elapsed_s, job.kept_rate)
        growth = _FALSE_GROWTH if doubt.is_false else _GROWTH
        self._make_frugal(job, growth * draw)

    def _return_all(self, job: ControlledJob) -> None:
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
        for job in self._frugal.values():
            self._update_kept_rate(job)
        if not self._frugal or not self._overprovided(fixed):
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
