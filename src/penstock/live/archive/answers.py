# SPDX-License-Identifier: MIT
"""Answers questions about past jobs from the archive.

Users see their own jobs. Of other users' jobs they see only how much time these have
cost all together. Root and the user who runs the controller see everything.

Who held up a job? While an operation of the job goes on, other jobs move data on the
same storage. The time that the operation has lost is attributed to them in proportion
to the volume that they move in this time. The volume that an operation moves inside an
interval is taken in proportion to the time: operations are archived, single calls are
not.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Final

from msgspec import structs

from penstock.errors import InputError, PenstockError
from penstock.live.archive.questions import ArchiveAnswer
from penstock.live.archive.reader import MOST_RUNS, ArchivedRun, ArchiveReader
from penstock.live.control.names import (
    JobNames,
    SeveralJobsError,
    name_of,
    nearest_name,
    refusal,
)
from penstock.live.control.past import CompletedOperation, JobRun, missing_words
from penstock.live.wire.messages import (
    Delay,
    ExplainJob,
    GetJobReport,
    JobReport,
    ListPastJobs,
    ListUnderWay,
    PastJob,
    PastJobs,
    PolicySpan,
    ReportedOperation,
    RunsUnderWay,
    RunWithOperations,
    TextAnswer,
    UserRequest,
)
from penstock.units import (
    counted,
    format_bandwidth,
    format_instant,
    format_time,
    format_volume,
)

__all__ = ["ArchiveAnswers"]

#: Two instants that differ by less are the same (s): the archive counts milliseconds.
_SAME_S: Final = 1e-3
#: Operations of one job that a report shows, the last ones.
_MOST_OPERATIONS: Final = 20_000
#: Operations of other jobs that a report to an operator contains: with the largest
#: numbers, a report takes less than half of `LARGEST_BYTES`.
_MOST_OTHERS: Final = 50_000
#: Operations of other jobs that are looked at for `_delays`, the last ones.
_MOST_COMPARED: Final = 100_000
#: Pairs of an operation and another job that are looked at for `_delays`.
_MOST_PAIRS: Final = 1_000_000
#: Past names that are compared with one that is not known, the last ones.
_MOST_NAMES: Final = 1000


class ArchiveAnswers:
    """Answers requests from the archive in a folder.

    Parameters
    ----------
    wall
        The wall clock (s).
    running
        Names of jobs that run: they are suggested, too.
    under_way
        Jobs that run and have had an operation, each with its present one if it has
        one. The archive knows only what they did up to the last operation that has
        ended.
    """

    def __init__(
        self,
        folder: Path,
        wall: Callable[[], float] = time.time,
        running: Sequence[str] = (),
        under_way: Sequence[tuple[JobRun, CompletedOperation | None]] = (),
    ) -> None:
        self._reader = ArchiveReader(folder)
        self._wall = wall
        self._running = running
        self._under_way = {
            run.job_key: (run, operation) for run, operation in under_way
        }
        #: The same runs as if they were archived, under numbers of no archived run.
        self._new_runs = [
            ArchivedRun(**structs.asdict(run), file="", number=-place)
            for place, (run, _) in enumerate(under_way, 1)
        ]

    def answer(self, message: UserRequest) -> ArchiveAnswer:
        """Return the answer to a request, or the reason why it is refused."""
        try:
            return self._answer(message)
        except PenstockError as error:
            return refusal(error)

    def _answer(
        self, message: UserRequest
    ) -> TextAnswer | PastJobs | JobReport | RunsUnderWay:
        user = None if message.trusted else message.user
        request = message.request
        if isinstance(request, ListPastJobs):
            runs = self._runs(user=user, newest=request.limit)
            jobs = [self._past_job(run) for run in runs]
            return PastJobs(jobs, self._last_shared(runs))
        if isinstance(request, ListUnderWay):
            return self._runs_under_way()
        if isinstance(request, GetJobReport | ExplainJob):
            report = self._report(request.job_name, user, request.joined_s)
            if isinstance(request, GetJobReport):
                return report
            return _in_words(report, request.job_name)
        raise InputError("this request is not about past jobs")

    def _runs(
        self,
        *,
        user: int | None = None,
        job: str | None = None,
        since_s: float = 0.0,
        until_s: float = inf,
        newest: int,
    ) -> list[ArchivedRun]:
        """Return archived runs as `ArchiveReader.runs`, and new runs under way.

        A run is archived with its first operation that ends.
        """
        found = self._reader.runs(
            user=user, job=job, since_s=since_s, until_s=until_s, newest=newest
        )
        last = {run.job_key: run for run in found}
        found += [
            run
            for run in self._new_runs
            if not _is_same(run, last.get(run.job_key))
            and user in (None, run.user)
            and job in (None, run.job_key, run.name)
            and run.joined_s <= until_s
        ]
        found.sort(key=lambda run: (run.joined_s, run.job_key))
        return found[max(len(found) - newest, 0) :]

    def _operations(
        self,
        runs: Sequence[ArchivedRun],
        *,
        since_s: float = 0.0,
        until_s: float = inf,
        newest: int,
    ) -> dict[ArchivedRun, list[CompletedOperation]]:
        """Return archived operations, and those under way as if they ended now."""
        found = self._reader.operations(
            runs, since_s=since_s, until_s=until_s, newest=newest
        )
        for run, operations in found.items():
            operation = self._present_operation(run)
            if operation and operation.begin_s <= until_s:
                operations.append(operation)
        return found

    def _present_operation(self, run: JobRun) -> CompletedOperation | None:
        """Return the operation that a run has now, as if it ended now."""
        if run.left_s is not None or run.job_key not in self._under_way:
            return None
        _, operation = self._under_way[run.job_key]
        return operation

    def _runs_under_way(self) -> RunsUnderWay:
        return RunsUnderWay(
            [
                RunWithOperations(
                    self._past_job(run), [_reported(operation)] if operation else []
                )
                for run, operation in self._under_way.values()
            ]
        )

    def _last_shared(self, runs: Sequence[ArchivedRun]) -> float | None:
        """Return the bandwidth that was shared in the last operation; None: unknown."""
        if not runs:
            return None
        operations = self._operations(runs[-1:], newest=1)[runs[-1]]
        return _finite(operations[-1].capacity) if operations else None

    def _report(self, name: str, user: int | None, joined_s: float) -> JobReport:
        run = self._run(name, user, joined_s)
        end_s = self._wall() if run.left_s is None else run.left_s
        count = self._reader.operation_count([run])
        count += self._present_operation(run) is not None
        own = self._operations([run], newest=_MOST_OPERATIONS)[run]
        present = self._runs(since_s=run.joined_s, until_s=end_s, newest=MOST_RUNS)
        others = self._others(run, present, end_s)
        note = _note(count, others, user)
        if not note and len(present) >= MOST_RUNS:
            note = f"more than {MOST_RUNS} jobs ran at that time"
        visible = {r: o for r, o in others.items() if user in (None, r.user)}
        return JobReport(
            self._past_job(run),
            [_reported(operation) for operation in own],
            _delays(_comparable(own, others), others, user),
            [] if note else self._with_operations(visible),
            count,
            note,
        )

    def _others(
        self, run: ArchivedRun, present: Sequence[ArchivedRun], end_s: float
    ) -> dict[ArchivedRun, list[CompletedOperation]]:
        """Return what other jobs did on the storage of a run, the last operations."""
        others = [r for r in present if r.storage == run.storage and r != run]
        return self._operations(
            others, since_s=run.joined_s, until_s=end_s, newest=_MOST_COMPARED
        )

    def _with_operations(
        self, operations: Mapping[ArchivedRun, Sequence[CompletedOperation]]
    ) -> list[RunWithOperations]:
        return [
            RunWithOperations(self._past_job(run), [_reported(o) for o in done])
            for run, done in operations.items()
        ]

    def _run(self, name: str, user: int | None, joined_s: float) -> ArchivedRun:
        """Return the run that joined at an instant; 0: the last run."""
        if joined_s:
            there = self._runs(
                user=user,
                job=name,
                since_s=joined_s,
                until_s=joined_s + _SAME_S,
                newest=_MOST_NAMES,
            )
            for run in there:
                if abs(run.joined_s - joined_s) <= _SAME_S:
                    return run
            raise InputError(
                f"no run of {name!r} began at {format_instant(joined_s)}",
                remedy="penstock history lists past jobs",
            )
        runs = self._runs(user=user, job=name, newest=_MOST_NAMES)
        if not runs and name in self._running:
            raise InputError(
                f"job {name!r} has had no controlled I/O yet",
                remedy="penstock ctl status shows it; try again after its first I/O",
            )
        if not runs:
            raise InputError(
                f"there is no job {name!r}", remedy=self._remedy(name, user)
            )
        keys = dict.fromkeys(run.job_key for run in runs)
        if len(keys) > 1:
            raise SeveralJobsError(name, keys)
        return runs[-1]

    def _remedy(self, name: str, user: int | None) -> str:
        """Return what to do about a name that is not known, with the nearest one."""
        listed = (
            "penstock history lists past jobs, penstock ctl status those that run; "
            "jobs without controlled I/O are not kept"
        )
        runs = self._reader.runs(user=user, newest=_MOST_NAMES)
        past = (run.name for run in runs)
        known = dict.fromkeys((*past, *self._running))
        begins = [each for each in known if each.startswith(name)]
        near = begins[-1] if begins else nearest_name(name, known)
        return f"did you mean {near}? {listed}" if near else listed

    def _past_job(self, run: JobRun) -> PastJob:
        if run.left_s is None and run.job_key in self._under_way:
            # With what the operation under way has moved and lost.
            present, _ = self._under_way[run.job_key]
            run = structs.replace(present, joined_s=run.joined_s)
        return PastJob(
            job_name=run.name,
            user=run.user,
            storage=run.storage,
            nodes=run.nodes,
            joined_s=run.joined_s,
            left_s=run.left_s,
            cap=_finite(min(run.cap, run.limit)),
            moved_bytes=run.moved_bytes,
            lost_s=run.lost_s,
            progress_yield=run.progress_yield(self._wall()),
            policy=run.policy,
            limit=_finite(run.limit),
            policies=_policy_spans(run),
            missing=run.missing,
        )


def _is_same(present: JobRun, archived: JobRun | None) -> bool:
    """Return True if a run under way is the last one of this job in the archive.

    It may have left meanwhile. The wall clock may have been set since it joined.
    """
    if archived is None or archived.left_s is None:
        return archived is not None
    return abs(present.joined_s - archived.joined_s) <= _SAME_S


def _policy_spans(run: JobRun) -> list[PolicySpan]:
    steps = run.policies or ((run.joined_s, run.policy),)
    ends_s = [*(begin_s for begin_s, _ in steps[1:]), run.left_s]
    return [
        PolicySpan(policy, begin_s, end_s)
        for (begin_s, policy), end_s in zip(steps, ends_s, strict=True)
    ]


def _note(
    count: int,
    others: Mapping[ArchivedRun, Sequence[CompletedOperation]],
    user: int | None,
) -> str:
    """Return why the jobs cannot be simulated by the reader of a report."""
    if user is not None and any(others.values()):
        return "only operators see what other policies would have given"
    if count > _MOST_OPERATIONS:
        return f"the job has more than {_MOST_OPERATIONS} operations"
    # A job takes about as much space as an operation.
    if sum(1 + len(operations) for operations in others.values()) > _MOST_OTHERS:
        return f"the other jobs have more than {_MOST_OTHERS} operations"
    return ""


def _finite(rate: float) -> float | None:
    return rate if isfinite(rate) else None


def _reported(operation: CompletedOperation) -> ReportedOperation:
    return ReportedOperation(
        begin_s=operation.begin_s,
        end_s=operation.end_s,
        moved_bytes=operation.moved_bytes,
        held_up_s=operation.held_up_s,
        lost_s=operation.lost_s,
        capacity=_finite(operation.capacity),
        policy=operation.policy,
        grants=[(instant, _finite(rate)) for instant, rate in operation.grants],
    )


def _comparable(
    own: Sequence[CompletedOperation],
    others: Mapping[ArchivedRun, Sequence[CompletedOperation]],
) -> Sequence[CompletedOperation]:
    """Return the last operations of a job that `_delays` looks at.

    Of a busy storage, only the last operations of other jobs are known. An operation
    that began before them is left out: others would be blamed for too little.
    """
    begins_s = [each.begin_s for done in others.values() for each in done]
    known_s = min(begins_s) if len(begins_s) >= _MOST_COMPARED else 0.0
    active = sum(1 for done in others.values() if done)
    first = max(len(own) - _MOST_PAIRS // max(active, 1), 0)
    return [each for each in own[first:] if each.begin_s >= known_s]


def _delays(
    own: Sequence[CompletedOperation],
    others: Mapping[ArchivedRun, Sequence[CompletedOperation]],
    user: int | None,
) -> list[Delay]:
    """Return which jobs the lost time is attributed to; see the module."""
    lost_s: defaultdict[str, float] = defaultdict(float)
    moved_bytes: defaultdict[str, float] = defaultdict(float)
    indexes = [(run, _Index(done)) for run, done in others.items() if done]
    for operation in own:
        moved: defaultdict[str, float] = defaultdict(float)
        for run, index in indexes:
            key = run.job_key if user in (None, run.user) else ""
            moved[key] += index.moved_in(operation.begin_s, operation.end_s)
        total = sum(moved.values())
        for key, volume in moved.items():
            moved_bytes[key] += volume
            lost_s[key] += operation.lost_s * volume / total if total else 0.0
    users = {run.job_key: run.user for run in others}
    found = [
        Delay(name_of(key), lost_s[key], volume, users.get(key))
        for key, volume in moved_bytes.items()
        if volume > 0.0
    ]
    return sorted(found, key=lambda delay: (-delay.lost_s, delay.job_name))


class _Index:
    """The operations of one run, found by time."""

    def __init__(self, operations: Iterable[CompletedOperation]) -> None:
        self._operations = sorted(operations)
        self._ends_s = [operation.end_s for operation in self._operations]

    def moved_in(self, begin_s: float, end_s: float) -> float:
        """Return the volume that the run moved between two instants."""
        moved = 0.0
        # The operations of one run do not overlap: their ends are sorted, too.
        for place in range(bisect_left(self._ends_s, begin_s), len(self._operations)):
            operation = self._operations[place]
            if operation.begin_s >= end_s:
                break
            length = operation.end_s - operation.begin_s
            inside = min(end_s, operation.end_s) - max(begin_s, operation.begin_s)
            part = inside / length if length > 0.0 else 1.0
            moved += operation.moved_bytes * min(max(part, 0.0), 1.0)
        return moved


def _in_words(report: JobReport, asked: str) -> TextAnswer:
    """Return the answer of ``penstock ctl explain`` for a job that has ended.

    `asked` is the name or the key that was given: the answer uses the same.
    """
    job = report.job
    own_key = f"{job.user}:{job.job_name}"
    keys = [f"{each.user}:{each.job_name}" for each in report.delays if each.job_name]
    names = JobNames([own_key, *keys])
    name = own_key if asked == own_key else names.shown(own_key)
    age_s = (job.left_s if job.left_s is not None else inf) - job.joined_s
    ended = f"ended {format_instant(job.left_s)}" if job.left_s else "has not ended"
    shared = (each.capacity for each in reversed(report.operations) if each.capacity)
    moved = format_volume(job.moved_bytes, next(shared, 0.0))
    sentences = [
        f"{name} {ended}. It moved {moved} in "
        f"{counted(report.operation_count, 'operation')} under "
        f"{', '.join(job.policy_names)}.",
        f"It lost {format_time(job.lost_s)}"
        + (f" of {format_time(age_s)}" if isfinite(age_s) else "")
        + f" (yield {job.progress_yield:.3f}).",
    ]
    sentences += missing_words(job.missing)
    if job.limit is not None:
        sentences.append(
            f"An operator had limited it to {format_bandwidth(job.limit)}: what the "
            "limit took does not count as lost time."
        )
    named = [
        f"{_delay_name(delay, names)} ({format_time(delay.lost_s)})"
        for delay in report.delays[:3]
        if delay.lost_s > 0.0
    ]
    if named:
        sentences.append(f"It waited for {', '.join(named)}.")
    sentences.append(f"See: penstock report {name}")
    text = " ".join(sentences)
    return TextAnswer(text, [key for key in (own_key, *keys) if key in text])


def _delay_name(delay: Delay, names: JobNames) -> str:
    if not delay.job_name:
        return "jobs of other users"
    return names.shown(f"{delay.user}:{delay.job_name}")
