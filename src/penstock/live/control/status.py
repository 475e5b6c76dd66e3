# SPDX-License-Identifier: MIT
"""The status of jobs as one user may see it: lines of a table, and explanations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

import msgspec

from penstock.errors import InputError
from penstock.live.control.explanation import Circumstances, explain
from penstock.live.control.names import JobNames, SeveralJobsError, nearest_name
from penstock.live.control.rates.jobs import ControlledJob, by_rate
from penstock.live.control.records import DRAW_S, AgentRecord, JobRecord
from penstock.live.control.stagers import Stagers
from penstock.live.wire.messages import (
    JobStatus,
    TextAnswer,
    ThrottledUser,
    UserRequest,
)
from penstock.staging.limits import interferes_with_itself, pause_fraction
from penstock.units import format_bandwidth, format_time, format_volume

__all__ = ["StatusView", "find_job", "throttled_users"]

#: In place of the node of a user who takes too much of the controller.
_CONTROLLER: Final = "the controller"
#: A job that draws less than this part of its grant is not slowed by control.
_SLOW: Final = 0.8
#: A mean draw above this multiple of the present grant is explained.
_FAST: Final = 1.05


def throttled_users(
    agents: Mapping[str, AgentRecord],
    by_controller: list[ThrottledUser],
    reader: int | None,
) -> list[ThrottledUser]:
    """Return who takes too much of the daemons, as far as a user may see it."""
    throttled = {agent: record.throttled for agent, record in sorted(agents.items())}
    return [
        msgspec.structs.replace(each, node=node)
        for node, users in ({_CONTROLLER: by_controller} | throttled).items()
        for each in users
        if reader is None or each.user == reader
    ]


def find_job(jobs: Iterable[JobRecord], name: str, request: UserRequest) -> JobRecord:
    """Return the job that a user names by its name or its key.

    A name that jobs of several users have is refused, also if one of them is the
    user's own: a limit must not go to another job than the one that was meant.
    """
    visible = [
        record for record in jobs if request.trusted or record.user == request.user
    ]
    candidates = {
        record.key: record for record in visible if name in (record.key, record.name)
    }
    if name in candidates:
        return candidates[name]
    if not candidates:
        close = nearest_name(name, (each.name for each in visible))
        hint = f"did you mean {close}? " if close else ""
        raise InputError(
            f"there is no job {name!r}",
            remedy=f"{hint}penstock ctl status lists all jobs",
        )
    if len(candidates) > 1:
        raise SeveralJobsError(name, candidates)
    return next(iter(candidates.values()))


def _freedom(record: JobRecord) -> str:
    """Return why a job is not held to a share; "" if it is."""
    storage = record.storage
    if not storage.is_free:
        return ""
    if storage.active - {record.key}:
        return "the bandwidth of its storage is not known yet, so nobody waits there"
    return "no other job uses its storage now"


@dataclass(frozen=True, slots=True)
class StatusView:
    """The status of all jobs at one instant, for one reader."""

    user: int | None
    """User id of the reader; None: the reader may see everything."""
    mode: str
    """"control", "dry-run" or "off"."""
    jobs: Mapping[str, JobRecord]
    now: float
    """The present instant (s)."""
    explains: bool = True
    """Whether lines say why a job has its grant; this is half of their cost."""
    unmoved: Mapping[str, str] = field(default_factory=dict)
    """Job key -> why its folder is not on its storage targets."""
    stagers: Stagers | None = None
    """Ask the staging strategy; None: no staging."""
    names: JobNames = field(init=False)
    """How the jobs that the reader may see are named."""

    def __post_init__(self) -> None:
        visible = (key for key, each in self.jobs.items() if self._may_see(each))
        object.__setattr__(self, "names", JobNames(visible))

    def lines(self) -> list[JobStatus]:
        """Return the jobs that the reader may see."""
        records = [record for record in self.jobs.values() if self._may_see(record)]
        storages = {id(record.storage): record.storage for record in records}
        active = {
            number: by_rate(storage.controller.jobs())
            for number, storage in storages.items()
        }
        return [self._line(record, active[id(record.storage)]) for record in records]

    def explanation(self, record: JobRecord) -> str:
        """Return why a job has the grant that it has, in sentences."""
        return self._explained(record, by_rate(record.storage.controller.jobs()))

    def hint_answer(self, record: JobRecord, volume_bytes: float) -> TextAnswer:
        """Return what was announced for the next operation of a job."""
        volume = format_volume(volume_bytes)
        text = f"the next operation of {self.names.shown(record.key)} moves {volume}"
        if record.controlled.is_active:
            text += "; the one under way stays as it is"
        return self.names.answer(text)

    def limit_answer(self, record: JobRecord) -> TextAnswer:
        """Return which limit a job has now."""
        name, limit = self.names.shown(record.key), record.controlled.limit
        if not isfinite(limit):
            return self.names.answer(f"{name} has no limit")
        return self.names.answer(f"{name} gets {format_bandwidth(limit)} at most")

    def _may_see(self, record: JobRecord) -> bool:
        return self.user is None or record.user == self.user

    def _visible_name(self, job_key: str) -> str | None:
        visible = self._may_see(self.jobs[job_key])
        return self.names.shown(job_key) if visible else None

    def _lost_s(self, job_key: str) -> float:
        return self.jobs[job_key].lost_s(self.now)

    @property
    def _strategy(self) -> str:
        """The name of the staging strategy."""
        return self.stagers.label if self.stagers else "none"

    @property
    def _target_names(self) -> tuple[str, ...]:
        """Names of the storage targets that the strategy divides."""
        return self.stagers.target_names if self.stagers else ()

    def _explained(self, record: JobRecord, active: list[ControlledJob]) -> str:
        if self.mode == "off":
            name = self.names.shown(record.key)
            return f"Control is switched off: {name} draws what it can."
        controller = record.storage.controller
        text = explain(
            record.controlled,
            active,
            controller.policy,
            self.now,
            self._visible_name,
            Circumstances(
                like=controller.capacity,
                free_because=_freedom(record),
                is_announced=record.is_announced,
                has_history=record.has_history,
                lost_of=self._lost_s,
            ),
        )
        if self.mode == "dry-run":
            text = f"Dry run: no call is held up. With control switched on: {text}"
        text += f" {self._measured_delay(record)}{self._explained_draw(record)}"
        if record.order.stage or record.staged_bytes:
            text += f" {self._explained_staging(record)}"
        if record.order.lacks_journals:
            text += " It has no journals, so it is not staged."
        if record.placement:
            text += f" {record.placement}"
        elif 0 < len(record.order.targets) < len(self._target_names):
            text += f" {self._explained_targets(record)}"
        if record.redirected_bytes:
            text += f" {self._explained_parts(record)}"
        if reason := self.unmoved.get(record.key):
            text += f" But its folder is not on these targets: {reason}."
        if self.stagers and (reason := self.stagers.reason(record)):
            text += f" Strategy {reason}."
        return text

    def unmoved_jobs(self) -> list[str]:
        """Return the jobs whose folders could not be put on their targets, and why."""
        records = [each for each in self.jobs.values() if self._may_see(each)]
        return [
            f"the folder of job {self.names.shown(each.key)} is not on its storage "
            f"targets: {reason}"
            for each in records
            if (reason := self.unmoved.get(each.key))
        ]

    def _measured_delay(self, record: JobRecord) -> str:
        """Return how long penstock and the storage have delayed its calls."""
        counters = record.counters.values()
        busy_s = sum(each.read_busy_s + each.written_busy_s for each in counters)
        held_up, would = map(format_time, (record.held_up_s, record.would_hold_up_s))
        storage = f"and the storage has taken {format_time(busy_s)} for them."
        if self.mode == "dry-run":
            text = f"penstock would have held up its calls for {would}, {storage}"
            if record.held_up_s:
                text += f" Before the dry run, it has held them up for {held_up}."
        else:
            text = f"penstock has held up its calls for {held_up}, {storage}"
            if record.would_hold_up_s:
                text += f" In a dry run, it would have held them up for {would}."
        return f"Added over its processes, {text}"

    def _explained_draw(self, record: JobRecord) -> str:
        """Return why its draw differs much from its grant; "" if it does not."""
        job, storage = record.controlled, record.storage
        drawn = format_bandwidth(record.draw, storage.controller.capacity)
        is_measured = job.is_active and job.since_post_s(self.now) >= DRAW_S
        if not is_measured or storage.is_free:
            return ""
        if record.draw > _FAST * job.rate and not job.is_frugal:
            return (
                f" It drew {drawn} on average over the last {format_time(DRAW_S)}: its "
                "grant was higher then, or it used what it had not drawn before."
            )
        is_slow = job.is_frugal or record.draw < _SLOW * job.rate
        if is_slow and not record.is_waiting:
            return (
                f" Now it draws {drawn} and no call is held up: the storage or the "
                "program itself is slower than the grant."
            )
        return ""

    def stalled(self) -> list[str]:
        """Return a warning for each storage whose jobs all wait for the policy."""
        if self.mode != "control":
            return []
        warnings = []
        storages = {id(each.storage): each.storage for each in self.jobs.values()}
        for storage in storages.values():
            active = by_rate(storage.controller.jobs())
            if active and active[0].rate <= 0.0 and not storage.is_free:
                warnings.append(
                    f"policy {storage.controller.policy} grants nothing to any of the "
                    f"{len(active)} jobs that do I/O: all of them wait"
                )
        return warnings

    def _explained_staging(self, record: JobRecord) -> str:
        place = "to its journals" if record.order.stage else "directly to the files"
        shared = record.storage.controller.capacity
        draining = "are being drained" if record.order.drain else "have to wait"
        text = (
            f"Strategy {self._strategy}: its writes go {place}; "
            f"{format_volume(record.staged_bytes, shared)} in its journals {draining}."
        )
        application = record.application
        if record.order.stage and interferes_with_itself(application):
            text += (
                f" Its {application.processes} processes pause for "
                f"{pause_fraction(application):.0%} of the time, but drain all at "
                "once: for this job, staging may cost more than it saves."
            )
        return text

    def _explained_targets(self, record: JobRecord) -> str:
        """Return which storage targets the strategy has given to a job."""
        targets, names = record.order.targets, self._target_names
        return (
            f"Strategy {self._strategy}: its new files go to {len(targets)} of "
            f"{len(names)} storage targets ({', '.join(names[n] for n in targets)})."
        )

    def _explained_parts(self, record: JobRecord) -> str:
        """Return how much of its data went to other targets than those of its files."""
        shared = record.storage.controller.capacity
        redirected = format_volume(record.redirected_bytes, shared)
        merged = format_volume(record.merged_bytes, shared)
        return (
            f"Its targets have changed while files were open: {redirected} went to "
            f"parts on the new targets, and its programs have copied {merged} from "
            "parts into the files (penstock drain --show lists the others)."
        )

    def _line(self, record: JobRecord, active: list[ControlledJob]) -> JobStatus:
        job, now = record.controlled, self.now
        grant = job.alone if record.is_free else job.grant
        counters = record.counters.values()
        drawn_bytes_per_s = record.draw if record.is_drawing(now) else 0.0
        return JobStatus(
            job_name=record.name,
            user=record.user,
            nodes=sorted(record.counters),
            cap=job.cap,
            limit=job.limit if isfinite(job.limit) else None,
            active=job.is_active,
            waiting=record.is_waiting,
            lent=job.is_frugal,
            grant=grant if isfinite(grant) else None,
            demanded=job.cap if record.is_waiting else drawn_bytes_per_s,
            drawn_bytes_per_s=drawn_bytes_per_s,
            volume_bytes=job.volume_bytes,
            remaining_bytes=job.remaining_bytes(now),
            moved_bytes=record.moved_bytes,
            held_up_s=record.held_up_s,
            age_s=job.age_s(now),
            lost_s=record.lost_s(now),
            progress_yield=record.progress_yield(now),
            operations=record.operations,
            bypass_setups=sum(each.bypass_setups for each in counters),
            uncontrolled_bytes=sum(each.uncontrolled_bytes for each in counters),
            staged_bytes=record.staged_bytes,
            why=self._explained(record, active) if self.explains else "",
            would_hold_up_s=record.would_hold_up_s,
            lost_by_grants_s=job.lost_s(now),
            storage=record.storage.name,
        )
