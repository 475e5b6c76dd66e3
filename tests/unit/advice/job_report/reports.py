# SPDX-License-Identifier: MIT
"""Reports of past jobs with made-up times."""

from __future__ import annotations

from typing import Any

from penstock.live.wire.messages import (
    Delay,
    JobReport,
    PastJob,
    ReportedOperation,
    RunWithOperations,
)

__all__ = ["T0", "operation", "past_job", "report_of", "waited"]

T0 = 1_700_000_000.0


def past_job(name: str, **changes: Any) -> PastJob:
    """Return a job that ran for 10 s under fcfs."""
    facts: dict[str, Any] = {
        "job_name": name,
        "user": 7,
        "storage": "",
        "nodes": 1,
        "joined_s": T0,
        "left_s": T0 + 10.0,
        "cap": None,
        "moved_bytes": 3e9,
        "lost_s": 0.0,
        "progress_yield": 1.0,
        "policy": "fcfs",
    }
    return PastJob(**(facts | changes))


def operation(begin_s: float, end_s: float, **changes: Any) -> ReportedOperation:
    """Return an operation that moved 3 GB, at a shared bandwidth of 1 GB/s."""
    facts: dict[str, Any] = {
        "begin_s": T0 + begin_s,
        "end_s": T0 + end_s,
        "moved_bytes": 3e9,
        "held_up_s": 0.0,
        "lost_s": 0.0,
        "capacity": 1e9,
        "policy": "fcfs",
        "grants": [],
    }
    return ReportedOperation(**(facts | changes))


def report_of(*runs: RunWithOperations, **changes: Any) -> JobReport:
    """Return the report of the first run beside the others."""
    own, *others = runs
    facts: dict[str, Any] = {
        "job": own.job,
        "operations": own.operations,
        "delays": [],
        "others": others,
        "operation_count": len(own.operations),
    }
    return JobReport(**(facts | changes))


def waited(name: str = "b", *, operator: bool = True, **changes: Any) -> JobReport:
    """Return what fcfs did to a job that posted 3 GB just after another one.

    The other one, a, moves in [2, 5]. The job waits, and moves in [5, 8].
    """
    own = RunWithOperations(
        past_job(name, lost_s=3.0, progress_yield=0.7),
        [
            operation(
                2.001, 8.0, lost_s=3.0, grants=[(T0 + 2.001, 0.0), (T0 + 5.0, 1e9)]
            )
        ],
    )
    other = RunWithOperations(past_job("a"), [operation(2.0, 5.0)])
    facts: dict[str, Any] = {
        "delays": [Delay("a", 3.0, 3e9)],
        "note": "" if operator else "only operators see other jobs",
    }
    return report_of(own, *([other] if operator else []), **(facts | changes))
