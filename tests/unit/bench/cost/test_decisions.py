# SPDX-License-Identifier: MIT
"""The simulated jobs with which the controller is measured."""

from __future__ import annotations

from math import inf

import pytest

from penstock.bench.cost.decisions import ControlledJobs


@pytest.mark.parametrize("policy", ["fair-share", "greedy-yield"])
def test_jobs_that_never_work_are_all_active(policy: str) -> None:
    jobs = ControlledJobs(policy, 20, inf)
    assert len(jobs.costs(20)) == 20
    jobs.costs(100)
    assert all(job.is_active for job in jobs._controller.jobs())
    # Each completion and each post is an instant of its own.
    assert jobs._controller.decisions >= 100


def test_jobs_of_a_load_below_one_work_most_of_the_time() -> None:
    jobs = ControlledJobs("fair-share", 50, 0.5)
    costs = jobs.costs(2000)
    assert all(cost.elapsed_s >= 0.0 for cost in costs)
    records = jobs._controller.jobs()
    assert sum(job.is_active for job in records) < 40
    assert sum(job.iterations for job in records) >= 900
