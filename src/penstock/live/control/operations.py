# SPDX-License-Identifier: MIT
"""Follow the operations of jobs: from counters to events of the controller.

`phases` detects when an operation of a job begins, goes on and ends. The tracker tells
the controller of the job's storage, with the volume that was announced or is estimated
(`volumes`), and remembers how long operations were.

Times are in seconds, volumes in bytes.
"""

from __future__ import annotations

from typing import Final

from penstock.live.control.activity.phases import PastOperation
from penstock.live.control.activity.volumes import OperationLengths
from penstock.live.control.past import CompletedOperation, JobRun
from penstock.live.control.records import JobRecord

__all__ = ["LOOK_S", "OperationTracker"]

#: When to look again at an operation that should be complete.
LOOK_S: Final = 0.005


class OperationTracker:
    """Reports the operations of jobs to the controllers of their storages.

    Parameters
    ----------
    gap_s
        Silence that ends an operation.
    stale
        Keys of jobs whose agents may have to be sent other grants; the tracker adds to
        it.
    """

    def __init__(self, gap_s: float, stale: set[str]) -> None:
        self._gap_s = gap_s
        self._stale = stale
        self.lengths = OperationLengths()
        self._ended: set[str] = set()
        self._completed: list[tuple[JobRun, CompletedOperation]] = []

    def take_ended(self) -> tuple[set[str], list[tuple[JobRun, CompletedOperation]]]:
        """Return the keys of jobs whose operation has ended since the last call.

        Also return these operations, with their jobs, to be archived.
        """
        ended, completed = self._ended, self._completed
        self._ended, self._completed = set(), []
        return ended, completed

    def learn(self, job: JobRecord, volume_bytes: float) -> None:
        """Remember the volume of an operation of a job, unless it moved nothing."""
        if volume_bytes == 0.0:
            return
        job.predictor.learn(volume_bytes)
        self._remember_length(job, volume_bytes)

    def read(self, job: JobRecord, agent: str, now: float) -> None:
        """Report the operation that the latest counters of an agent show."""
        job.phases.read(agent, now, job.counters[agent])
        if job.phases.detect_begin(now):
            self._post(job, now)
        elif job.phases.is_active:
            self._follow(job, now)
        busy_agents = job.phases.busy_nodes()
        if busy_agents != job.busy_agents:
            job.busy_agents = busy_agents
            self._stale.add(job.key)

    def end(self, job: JobRecord, now: float) -> None:
        """Report that the operation of a job ends now, whatever its counters show."""
        self._complete(job, job.phases.end(now), now)

    def _remember_length(self, job: JobRecord, volume_bytes: float) -> None:
        """Remember the length of an operation, if the bandwidth is known."""
        if job.storage.bandwidth is not None:
            self.lengths.add(job.user, volume_bytes / job.full_rate)

    def _post(self, job: JobRecord, now: float) -> None:
        """Report that an operation has begun."""
        job.volume_hinted = job.predictor.is_hinted
        job.certain_bytes = job.phases.announced_bytes or job.predictor.known()
        volume_bytes = job.certain_bytes or self._estimate(job)
        if job.certain_bytes:
            # Jobs that were never measured must not be served before this one.
            self._remember_length(job, volume_bytes)
        job.begin_operation(now)
        job.storage.controller.post(job.key, now, volume_bytes)
        job.storage.active.add(job.key)
        self._stale.add(job.key)

    def _estimate(self, job: JobRecord) -> float:
        """Return the volume of an operation that nobody has announced."""
        return job.predictor.estimate(
            job.phases.moved_bytes,
            job.full_rate,
            self.lengths.longest_s(job.user),
        )

    def _follow(self, job: JobRecord, now: float) -> None:
        """Report the progress of an operation, or its end."""
        phases = job.phases
        volume_bytes = job.certain_bytes = phases.announced_bytes or job.certain_bytes
        ended = phases.detect_end(now)
        if ended is None and volume_bytes:
            ended = phases.detect_completion(volume_bytes, now)
        if ended is not None:
            self._complete(job, ended, now)
            return
        controller, held_up = job.storage.controller, phases.was_held_up()
        # A user whose reports were false is not believed to be inside a large call.
        is_doubted = held_up or controller.is_doubted(job.key, now)
        in_large_call = not is_doubted and job.is_in_large_call(now)
        # A job that merges parts uses its grant, and gets no further meanwhile.
        needs_all = job.storage.needs_all(job.key) or in_large_call or job.is_merging
        controller.set_needs_all(job.key, needs_all=needs_all)
        controller.progress(
            job.key,
            now,
            phases.moved_bytes,
            volume_bytes=volume_bytes or self._estimate(job),
            held_up=held_up,
            # A job with staged data uses its grant in a pause, too: for draining.
            pauses=job.quiet_s >= self._gap_s and not job.staged_bytes,
        )
        if job.is_unbacked:
            controller.doubt(job.key, now)
        if volume_bytes and phases.moved_bytes >= volume_bytes:
            # All is moved, but the last call has not returned yet.
            controller.wait_for_end(job.key, now + LOOK_S)

    def _complete(self, job: JobRecord, ended: PastOperation, now: float) -> None:
        """Report that an operation has ended."""
        job.storage.controller.complete(
            job.key, now, ended=ended.end_s, moved_bytes=ended.moved_bytes
        )
        if job.storage.is_free:
            job.storage.controller.forget_surplus(job.key)
        job.measure_requests(ended)
        completed = job.completed(ended, now)
        job.lost_here_s += completed.lost_s
        self._completed.append((job.run(now), completed))
        self.learn(job, ended.moved_bytes)
        job.storage.active.discard(job.key)
        job.storage.is_touched = True
        job.past_operations.append(ended)
        job.operations += 1
        self._ended.add(job.key)
        self._stale.add(job.key)
