# SPDX-License-Identifier: MIT
"""Statuses of a daemon, made up for tests."""

from __future__ import annotations

from typing import Any

from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    JobCounters,
    JobJoined,
    JobStatus,
    StatusDocument,
    StorageStatus,
    ThrottledUser,
)

__all__ = ["coordinator_of", "job_line", "status_of"]


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


def coordinator_of(*users: int) -> Coordinator:
    """Return a coordinator that has decided at 1 s about a job of each user.

    The first user is throttled.
    """
    config = AgentConfig("control", [], 0.1, 0.1, 3.0, 1.0, reads=True)
    coordinator = Coordinator(Controller("fcfs", 100.0, compiled=False), config)
    coordinator.receive("n", AgentHello([]), 0.0)
    throttled = [ThrottledUser(users[0], "too many", 1, 0.0)]
    for count, user in enumerate(users, 1):
        key = f"{user}:a"
        coordinator.receive("n", JobJoined(key, user, "7", 0, 0.0), 0.0)
        counters = JobCounters(key, 1, 60.0, 2.5, waiting=True, idle_s=0.0)
        coordinator.receive("n", CounterReport([counters], count, throttled), 1.0)
    coordinator.decide(1.0)
    return coordinator
