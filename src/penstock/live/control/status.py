# SPDX-License-Identifier: MIT
"""What a user may see of the jobs: lines of a status, and explanations in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite

from penstock.errors import InputError
from penstock.live.control.jobs import JobState, by_rate, explain
from penstock.live.control.records import DRAW_S, JobRecord
from penstock.live.wire.messages import JobStatus, UserRequest
from penstock.units import format_volume

__all__ = ["StatusView", "meant_job"]


def meant_job(jobs: Iterable[JobRecord], name: str, asked: UserRequest) -> JobRecord:
    """Return the job that a user means by its name or key."""
    seen = {
        it.key: it
        for it in jobs
        if (asked.trusted or it.user == asked.user) and name in (it.key, it.name)
    }
    # Whoever calls a job of its own like another one's does not get in its way.
    for key in (f"{asked.user}:{name}", name):
        if key in seen:
            return seen[key]
    if len(seen) != 1:
        problem = "several jobs are called" if seen else "there is no job"
        raise InputError(
            f"{problem} {name!r}",
            remedy="penstock ctl status lists them; USER-ID:NAME names one",
        )
    return next(iter(seen.values()))


@dataclass(frozen=True, slots=True)
class StatusView:
    """How all jobs stand, for one reader."""

    user: int | None
    """Who reads; None may see everything."""
    mode: str
    """Of the control: "control", "dry-run" or "off"."""
    policy: str
    strategy: str
    """Who decides on staging."""
    jobs: Mapping[str, JobRecord]
    states: Mapping[str, JobState]

    def lines(self) -> list[JobStatus]:
        """Return the jobs that the reader may see."""
        active = by_rate(self.states.values())
        return [self._line(it, active) for it in self.jobs.values() if self._sees(it)]

    def explanation(self, it: JobRecord) -> str:
        """Say why a job has what it has."""
        return self._explained(it, by_rate(self.states.values()))

    def _sees(self, it: JobRecord) -> bool:
        return self.user is None or it.user == self.user

    def _seen_name(self, job: str) -> str | None:
        return self.jobs[job].name if self._sees(self.jobs[job]) else None

    def _explained(self, it: JobRecord, active: list[JobState]) -> str:
        if self.mode == "off":
            return f"Control is switched off: {it.name} does what it likes."
        words = explain(self.states[it.key], active, self.policy, self._seen_name)
        if it.order.stage or it.staged:
            words += f" {self._explained_staging(it)}"
        if self.mode == "dry-run":
            words = f"This is a dry run: nobody is held up. If it were not: {words}"
        return words

    def _explained_staging(self, it: JobRecord) -> str:
        what = "stages its writes" if it.order.stage else "writes to the files"
        drains = "is" if it.order.drain else "is not"
        return (
            f"Strategy {self.strategy}: it {what}, {format_volume(it.staged)} are "
            f"staged, and this {drains} drained now."
        )

    def _line(self, it: JobRecord, active: list[JobState]) -> JobStatus:
        state = self.states[it.key]
        counts = it.counts.values()
        idle = min((c.idle_s for c in counts), default=inf)
        achieved = it.draw.rate if state.active or idle < DRAW_S else 0.0
        return JobStatus(
            job_name=it.name,
            user=it.user,
            nodes=sorted(it.counts),
            cap=state.cap,
            limit=state.limit if isfinite(state.limit) else None,
            active=state.active,
            waiting=it.waiting,
            lent=state.frugal,
            grant=state.rate if state.active else state.cap,
            demanded=state.cap if it.waiting else achieved,
            achieved=achieved,
            volume_bytes=state.volume,
            remaining_bytes=state.remaining,
            moved_bytes=it.moved,
            held_up_s=sum(c.held_up_s for c in counts),
            age_s=state.age,
            lost_s=state.lost,
            progress_yield=state.progress_yield,
            operations=it.operations,
            bypassed=sum(c.bypassed for c in counts),
            uncontrolled_bytes=sum(c.uncontrolled_bytes for c in counts),
            staged_bytes=it.staged,
            why=self._explained(it, active),
        )
