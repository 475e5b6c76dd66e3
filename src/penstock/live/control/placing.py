# SPDX-License-Identifier: MIT
"""Storage targets for jobs, given when they join and freed when they leave.

`penstock.placement.online.OnlinePlacement` decides, as in the simulator. It is told
what is known of a job when it joins:

- its nodes;
- V_io and T_cpu of one iteration: as announced, else from its last runs under the same
  name (the usual volume, and the mean length of an iteration without its I/O);
- b(n), which was measured once for all jobs, or belongs to the class of the job.

Volumes are in bytes, rates in bytes per second. Nothing here reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from penstock.errors import PenstockError
from penstock.live.control.records import JobRecord
from penstock.model.application import Application
from penstock.placement.online import OnlinePlacement

__all__ = ["JobPlacer", "application_of"]


def application_of(job: JobRecord, profile: Sequence[float]) -> Application:
    """Return what is known of a job, with `profile` as b(1), b(2), ...

    Without an iteration on record or announced, the application has no phases.
    """
    volume_bytes = job.predictor.likely_bytes
    work_s = job.hint_work_s or _usual_work_s(job, volume_bytes)
    is_known = volume_bytes > 0.0 and work_s is not None
    phases = [("work", work_s), ("io", volume_bytes)] if is_known else []
    return Application.from_phases(job.key, job.nodes, phases, profile=profile)


def _usual_work_s(job: JobRecord, volume_bytes: float) -> float | None:
    """Return the mean time of an iteration without its I/O; None: no iteration yet."""
    controlled = job.controlled
    if not controlled.iterations:
        return None
    iteration_s = controlled.iteration_time_s / controlled.iterations
    return max(iteration_s - volume_bytes / job.full_rate, 0.0)


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
    classes
        Patterns of names of jobs, with the profile of their class instead. The first
        pattern that matches counts.
    """

    def __init__(
        self,
        placement: OnlinePlacement,
        names: Sequence[str],
        profile: Sequence[float] = (),
        classes: Sequence[tuple[str, Sequence[float]]] = (),
    ) -> None:
        self._placement = placement
        self._names = tuple(names)
        #: The last pattern matches every job.
        self._profiles = (*classes, ("*", tuple(profile)))

    def join(self, job: JobRecord) -> tuple[int, ...]:
        """Return the targets of a job that joins, and explain them in its record.

        If an algorithm fails, the record says so, and there are no targets.
        """
        profile = next(
            profile
            for pattern, profile in self._profiles
            if fnmatchcase(job.name, pattern)
        )
        try:
            placed = self._placement.arrive(application_of(job, profile))
        except PenstockError as error:
            job.placement = f"It was given no storage targets: {error}."
            return ()
        shown = ", ".join(self._names[number] for number in placed.targets)
        job.placement = f"Its files go to the storage targets {shown}: {placed.reason}."
        return placed.targets

    def leave(self, job_key: str) -> None:
        """Free the targets of a job that has left."""
        self._placement.leave(job_key)
