# SPDX-License-Identifier: MIT
"""Archives for tests: runs and operations with made-up times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from penstock.live.archive.recorder import ArchiveRecorder
from penstock.live.archive.retention import Retention
from penstock.live.control.past import CompletedOperation, JobRun

__all__ = ["WALL_S", "operation", "record", "recorder", "run"]

#: What the wall clock shows when the controller's clock shows 0.
WALL_S = 1_700_000_000.0


def run(key: str = "7:a", **changes: Any) -> JobRun:
    """Return a run of 100 s of a job, of which it lost 20 s."""
    facts: dict[str, Any] = {
        "job_key": key,
        "user": int(key.partition(":")[0]),
        "storage": "nfs:/scratch",
        "nodes": 2,
        "joined_s": 0.0,
        "left_s": 100.0,
        "lost_s": 20.0,
        "moved_bytes": 3e9,
        "cap": 1e9,
        "policy": "fcfs",
    }
    return JobRun(**(facts | changes))


def operation(begin_s: float, end_s: float, **changes: Any) -> CompletedOperation:
    """Return an operation that moved 1 GB."""
    facts: dict[str, Any] = {
        "begin_s": begin_s,
        "end_s": end_s,
        "moved_bytes": 1e9,
        "held_up_s": 0.0,
        "lost_s": 0.0,
        "capacity": 1e9,
        "policy": "fcfs",
        "grants": ((begin_s, 5e8),),
    }
    return CompletedOperation(**(facts | changes))


def recorder(
    folder: Path, now_s: float = 200.0, retention: Retention | None = None
) -> ArchiveRecorder:
    """Return a recorder at an instant of the controller's clock."""
    return ArchiveRecorder(
        folder, retention or Retention(), lambda: now_s, lambda: WALL_S + now_s
    )


def record(
    folder: Path, *runs: tuple[JobRun, list[CompletedOperation]], now_s: float = 200.0
) -> None:
    """Write runs that have ended to an archive."""
    archive = recorder(folder, now_s)
    operations = [(replace(r, left_s=None), each) for r, done in runs for each in done]
    archive.add(operations, [r for r, _ in runs])
    archive.close()
