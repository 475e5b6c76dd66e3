# SPDX-License-Identifier: MIT
"""Past jobs of ``penstock serve``: the folder of its setting `archive`.

An archived job becomes a job record with its operations. The time between two
operations is work. Time that an operation waited is not copied: the simulation decides
it anew.

The cap of a job is the rate of its operations without the time that they lost. A job
whose rate is nearly the bandwidth that was shared has no cap of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from penstock.advice.logs.record import Burst, LoggedJob, Skipped, plain_name
from penstock.errors import InputError
from penstock.live.archive.reader import ArchivedRun, ArchiveReader
from penstock.live.archive.tables import DATABASE
from penstock.live.control.past import CompletedOperation
from penstock.live.wire.messages import PastJob, ReportedOperation

__all__ = ["is_archive_folder", "logged_run", "read_history"]

#: A job that is slower than the shared bandwidth by less than this part has no cap.
_NEARLY: Final = 0.1


def is_archive_folder(path: Path) -> bool:
    """Return True if a folder is an archive of past jobs."""
    return ArchiveReader(path).exists()


def read_history(path: Path, _: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the jobs of an archive: its folder, or the SQLite file in it."""
    folder = path if path.is_dir() else path.parent
    if not is_archive_folder(folder) or (path != folder and path.name != DATABASE):
        raise InputError(
            "this is not an archive of past jobs",
            remedy="give the folder of the setting `archive` of penstock serve",
        )
    reader = ArchiveReader(folder)
    for run, operations in reader.operations(reader.runs()).items():
        source = f"{folder}: {run.job_key}"
        if any(operation.moved_bytes > 0 for operation in operations):
            yield logged_run(run.name, source, run, operations)
        else:
            yield Skipped(source=source, reason="the job has no I/O")


def logged_run(
    name: str,
    source: str,
    job: PastJob | ArchivedRun,
    operations: Sequence[ReportedOperation] | Sequence[CompletedOperation],
) -> LoggedJob:
    """Return the record of a past job."""
    last_s = max((operation.end_s for operation in operations), default=job.joined_s)
    end_s = last_s if job.left_s is None else max(job.left_s, last_s)
    bursts = [
        Burst(
            operation.begin_s - job.joined_s,
            operation.end_s - job.joined_s,
            operation.moved_bytes,
            operation.end_s - operation.begin_s,
        )
        for operation in operations
    ]
    return LoggedJob(
        name=plain_name([name]),
        source=source,
        detail="history",
        bursts=tuple(bursts),
        start_s=job.joined_s,
        run_s=end_s - job.joined_s,
        nodes=job.nodes,
        knows_nodes=True,
        user=str(job.user),
        log_bytes=sum(burst.volume_bytes for burst in bursts),
        cap=_cap(operations),
        policy=job.policy,
        shared_rates=tuple(
            rate for o in operations if (rate := _known(o.capacity)) > 0.0
        ),
    )


def _cap(
    operations: Sequence[ReportedOperation] | Sequence[CompletedOperation],
) -> float:
    """Return what the job draws alone (bytes/s); 0: all that is shared."""
    moved_bytes = sum(operation.moved_bytes for operation in operations)
    alone_s = sum(o.end_s - o.begin_s - o.lost_s for o in operations)
    shortest_s = sum(
        o.moved_bytes / rate for o in operations if (rate := _known(o.capacity))
    )
    if alone_s <= 0.0 or alone_s <= (1.0 + _NEARLY) * shortest_s:
        return 0.0
    return moved_bytes / alone_s


def _known(rate: float | None) -> float:
    """Return a rate (bytes/s); 0 if it had no limit or is not known."""
    return rate if rate is not None and math.isfinite(rate) else 0.0
