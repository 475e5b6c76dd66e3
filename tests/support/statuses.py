# SPDX-License-Identifier: MIT
"""Statuses of a daemon, made up for tests."""

from __future__ import annotations

from typing import Any

from penstock.live.wire.messages import JobStatus, StatusDocument, StorageStatus

__all__ = ["job_line", "status_of"]


def job_line(name: str = "a", user: int = 7, **changes: Any) -> JobStatus:
    """Return the status of a job that draws 5 MB/s, all of its grant."""
    facts: dict[str, Any] = {
        "job_name": name, "user": user, "nodes": ["n"], "cap": 2e7, "limit": None,
        "active": True, "waiting": False, "lent": False, "grant": 5e6, "demanded": 5e6,
        "drawn_bytes_per_s": 5e6, "volume_bytes": 1e9, "remaining_bytes": 5e8,
        "moved_bytes": 1e9, "held_up_s": 1.5, "age_s": 9.0, "lost_s": 0.0,
        "progress_yield": 1.0, "operations": 1, "bypass_setups": 0,
        "uncontrolled_bytes": 0.0, "staged_bytes": 0.0, "why": "",
    }  # fmt: skip
    return JobStatus(**facts | changes)


def status_of(*jobs: JobStatus, bandwidth: float | None = 1e7) -> StatusDocument:
    """Return a status with these jobs, which share one storage."""
    storage = StorageStatus("", bandwidth, False, "writes", {}, len(jobs))
    return StatusDocument(
        mode="control",
        policy="fair-share",
        bandwidth=bandwidth,
        node_bandwidth=None,
        agents=["n"],
        decisions=1,
        faults=[],
        jobs=list(jobs),
        storages=[storage],
    )
