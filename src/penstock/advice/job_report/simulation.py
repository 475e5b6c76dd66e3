# SPDX-License-Identifier: MIT
"""Past jobs as an instance: what another policy would have given them.

A past job becomes an application in the same way as by ``penstock import --format
history`` (`penstock.advice.logs.history`). The bandwidth is the one that the jobs
shared. Jobs that were never held up because nothing was known about the storage have no
such bandwidth; then it must be given.
"""

from __future__ import annotations

from penstock.advice.importing.instances import (
    Assumptions,
    assumed_platform,
    build,
    named,
)
from penstock.advice.logs.history import logged_run
from penstock.errors import InputError
from penstock.live.wire.messages import JobReport, RunWithOperations
from penstock.model import Instance

__all__ = ["instance_of_report", "runs_of_report"]


def runs_of_report(report: JobReport) -> list[RunWithOperations]:
    """Return the job of a report, then all jobs beside it that the reader may see."""
    return [RunWithOperations(report.job, report.operations), *report.others]


def instance_of_report(report: JobReport, bandwidth: float | None = None) -> Instance:
    """Return the instance of the jobs of a report; the job is the first application.

    Times count from the first job that joined. `bandwidth` replaces the one that the
    jobs shared (bytes/s). Raises `InputError` if the jobs cannot be simulated.
    """
    if report.note:
        raise InputError(report.note)
    given = Assumptions(bandwidth=bandwidth)
    jobs = named(
        logged_run(run.job.job_name, "", run.job, run.operations)
        for run in runs_of_report(report)
    )
    platform, _ = assumed_platform(jobs, given)
    instance, _ = build(jobs, platform, given)
    return instance
