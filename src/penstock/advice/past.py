# SPDX-License-Identifier: MIT
"""Past jobs as an instance: what another policy would have given them.

A past job becomes an application in the same way as by ``penstock import --format
history`` (`penstock.advice.logs.history`). The bandwidth is the one that the jobs
shared, the median over the operations. Jobs that were never held up because nothing was
known about the storage have no such bandwidth; then it must be given.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from penstock.advice.importing.instances import Assumptions, build, named
from penstock.advice.logs.history import logged_run
from penstock.errors import InputError
from penstock.live.wire.messages import RunWithOperations
from penstock.model import Instance, Platform

__all__ = ["instance_of_runs", "shared_bandwidth"]


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
    given = Assumptions(bandwidth=bandwidth)
    jobs = [logged_run(run.job.job_name, "", run.job, run.operations) for run in runs]
    instance, _ = build(named(jobs), Platform(bandwidth, bandwidth), given)
    return instance
