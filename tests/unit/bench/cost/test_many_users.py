# SPDX-License-Identifier: MIT
"""Many users in the benchmarks of costs, here with few jobs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.bench.cost import many_users


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure few jobs for a short time."""
    monkeypatch.setattr(many_users, "_JOBS", 40)
    monkeypatch.setattr(many_users, "_USERS", 4)
    monkeypatch.setattr(many_users, "_ACTIVE", 20)
    monkeypatch.setattr(many_users, "_ALL_REPORTS", 80)
    monkeypatch.setattr(many_users, "_IDLE_S", 5.0)


def test_active_jobs_draw_the_bandwidth_and_all_have_their_turn() -> None:
    jobs = many_users._ReportingJobs()
    assert jobs.cost_s() > 0.0
    status = jobs._coordinator.status(jobs._now_s)
    assert {job.user for job in status.jobs} == {60_000 + each for each in range(4)}
    assert all(job.moved_bytes > 0.0 for job in status.jobs)
    assert all(job.operations > 0 for job in status.jobs)
    granted = sum(job.grant or 0.0 for job in status.jobs if job.active)
    assert granted == pytest.approx(many_users._CAPACITY, rel=0.01)


def test_an_agent_with_idle_jobs_takes_little(tmp_path: Path) -> None:
    (measurement,) = many_users.measure_idle_jobs(tmp_path, 1)
    users = 4 if os.geteuid() == 0 else 1
    assert measurement.name.startswith(f"agent with 40 idle jobs of {users} users")
    assert measurement.value > 0.0
    assert list(tmp_path.iterdir()) == []


def test_reports_are_counted_per_second() -> None:
    (measurement,) = many_users.measure_reports(1)
    assert (measurement.unit, measurement.has_goal) == ("per s", False)
    assert measurement.value > 0.0
