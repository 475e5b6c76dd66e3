# SPDX-License-Identifier: MIT
"""Storage targets for jobs, given when they join and freed when they leave.

`penstock.placement.online.OnlinePlacement` decides, as in the simulator. It is told
what is known of a job when it joins:

- its nodes;
- V_io and T_cpu of one iteration, from its last runs under the same name: the volume
  that was announced or is usual, and the mean length of an iteration without its I/O;
- b(n), which was measured once for all jobs.

Volumes are in bytes, rates in bytes per second. Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import PenstockError
from penstock.live.control.records import JobRecord
from penstock.model.application import Application
from penstock.placement.online import OnlinePlacement

__all__ = ["JobPlacer", "application_of"]


def application_of(job: JobRecord, profile: Sequence[float]) -> Application:
    """Return what is known of a job, with `profile` as b(1), b(2), ...

    Without an iteration on record, the application has no phases: not known.
    """
    controlled, volume_bytes = job.controlled, job.predictor.likely_bytes
    phases: list[tuple[str, float]] = []
    if controlled.iterations > 0 and volume_bytes > 0.0:
        iteration_s = controlled.iteration_time_s / controlled.iterations
        work_s = max(iteration_s - volume_bytes / job.full_rate, 0.0)
        phases = [("work", work_s), ("io", volume_bytes)]
    return Application.from_phases(job.key, job.nodes, phases, profile=profile)


class JobPlacer:
    """Gives storage targets to jobs that join.

    Parameters
    ----------
    placement
        Decides; knows no job yet.
    names
        Names of the targets, to be shown.
    profile
        b(1), b(2), ... of a job on so many targets; empty: not known.
    """

    def __init__(
        self,
        placement: OnlinePlacement,
        names: Sequence[str],
        profile: Sequence[float] = (),
    ) -> None:
        self._placement = placement
        self._names = tuple(names)
        self._profile = tuple(profile)

    def join(self, job: JobRecord) -> tuple[int, ...]:
        """Return the targets of a job that joins, and explain them in its record.

        If an algorithm fails, the record says so, and there are no targets.
        """
        try:
            placed = self._placement.arrive(application_of(job, self._profile))
        except PenstockError as error:
            job.placement = f"It was given no storage targets: {error}."
            return ()
        shown = ", ".join(self._names[number] for number in placed.targets)
        job.placement = f"Its files go to the storage targets {shown}: {placed.reason}."
        return placed.targets

    def leave(self, job_key: str) -> None:
        """Free the targets of a job that has left."""
        self._placement.leave(job_key)
