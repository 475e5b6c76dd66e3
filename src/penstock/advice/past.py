# SPDX-License-Identifier: MIT
"""Past jobs as an instance: what another policy would have given them.

An archived job becomes an application. Its operations are the archived ones; the time
between two operations is work. Waiting is not copied: the simulation decides it anew.
The bandwidth is the one that the jobs shared, the median over the operations. Jobs that
were never held up because nothing was known about the storage have no such bandwidth;
then it must be given.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

import numpy as np

from penstock.errors import InputError
from penstock.live.wire.messages import PastJob, RunWithOperations
from penstock.model import Application, Instance, Platform, Window

__all__ = ["instance_of_runs", "shared_bandwidth"]

#: The window ends this much after the last job (s), so that no job starts at its end.
_AFTER_S: Final = 1e-3


def shared_bandwidth(runs: Sequence[RunWithOperations]) -> float | None:
    """Return the bandwidth that the jobs shared (bytes/s); None if it is not known."""
    known = [
        operation.capacity
        for run in runs
        for operation in run.operations
        if operation.capacity is not None
    ]
    return statistics.median(known) if known else None


def instance_of_runs(
    runs: Sequence[RunWithOperations], bandwidth: float | None = None
) -> Instance:
    """Return the instance of archived jobs; times count from the first one.

    `bandwidth` replaces the one that the jobs shared (bytes/s).
    """
    if not runs:
        raise InputError("there is no job", remedy="penstock history lists the jobs")
    if bandwidth is None:
        bandwidth = shared_bandwidth(runs)
    if bandwidth is None:
        raise InputError(
            "the bandwidth that the jobs shared is not in the archive",
            remedy="give --bandwidth RATE",
        )
    origin_s = min(run.job.joined_s for run in runs)
    names = _unique_names([run.job for run in runs])
    applications = tuple(
        _application(run, name, origin_s, bandwidth)
        for run, name in zip(runs, names, strict=True)
    )
    end_s = max(_end_s(run) for run in runs) - origin_s + _AFTER_S
    return Instance(Platform(bandwidth, bandwidth), Window(0.0, end_s), applications)


def _unique_names(jobs: Sequence[PastJob]) -> list[str]:
    """Return the names of jobs; a name that comes again gets a number."""
    seen: dict[str, int] = {}
    names = []
    for job in jobs:
        seen[job.job_name] = seen.get(job.job_name, 0) + 1
        number = seen[job.job_name]
        names.append(job.job_name if number == 1 else f"{job.job_name} ({number})")
    return names


def _end_s(run: RunWithOperations) -> float:
    """Return when a job left; else the end of its last operation."""
    last_s = max((o.end_s for o in run.operations), default=run.job.joined_s)
    return last_s if run.job.left_s is None else max(run.job.left_s, last_s)


def _application(
    run: RunWithOperations, name: str, origin_s: float, bandwidth: float
) -> Application:
    """Return the application of one job.

    The time that it had lost before it joined is kept: its release lies before its
    start by its age, and its work in this time by its age without the lost time.
    """
    job = run.job
    work, volume = [], []
    previous_s = job.joined_s
    for operation in run.operations:
        work.append(max(operation.begin_s - previous_s, 0.0))
        volume.append(operation.moved_bytes)
        previous_s = operation.end_s
    work.append(max(_end_s(run) - previous_s, 0.0))
    lost_here_s = sum(operation.lost_s for operation in run.operations)
    age_s = max(job.joined_s - job.release_s, 0.0)
    lost_before_s = min(max(job.lost_s - lost_here_s, 0.0), age_s)
    cap = min(job.cap if job.cap is not None else bandwidth, bandwidth)
    start = job.joined_s - origin_s
    return Application(
        name,
        job.nodes,
        np.array(work),
        np.array(volume),
        release=start - age_s,
        start=start,
        done_work=age_s - lost_before_s,
        user=str(job.user),
        profile=np.array([cap]),
    )
