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

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from statistics import median

from penstock.errors import PenstockError
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.control.records import JobRecord
from penstock.live.control.stager import numbers_of
from penstock.model.application import Application
from penstock.placement.online import OnlinePlacement

__all__ = ["JobPlacer", "application_of"]


def application_of(job: JobRecord, profile: Sequence[float]) -> Application:
    """Return what is known of a job, with `profile` as b(1), b(2), ..."""
    controlled = job.controlled
    phases = _iteration(
        job.predictor.likely_bytes,
        job.full_rate,
        job.hint_work_s,
        (controlled.iterations, controlled.iteration_time_s),
    )
    return Application.from_phases(job.key, job.nodes, phases, profile=profile)


def _iteration(
    volume_bytes: float,
    rate: float,
    work_s: float,
    iterations: tuple[int, float],
) -> list[tuple[str, float]]:
    """Return the work and the I/O of one iteration; empty: not known.

    Parameters
    ----------
    rate
        What the job can draw (bytes/s).
    work_s
        As announced; 0: it was not.
    iterations
        Number and total time of the iterations on record.
    """
    number, total_s = iterations
    if volume_bytes <= 0.0 or not (work_s or number):
        return []
    usual_s = work_s or max(total_s / number - volume_bytes / rate, 0.0)
    return [("work", usual_s), ("io", volume_bytes)]


def _facts_of(application: Application) -> tuple[object, ...]:
    """Return what decides about the targets of an application."""
    profile = application.profile.tolist()
    return application.nodes, application.phases(), profile


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
    user
        Number of the user whose jobs get targets; None: those of all users do.
    """

    def __init__(
        self,
        placement: OnlinePlacement,
        names: Sequence[str],
        profile: Sequence[float] = (),
        classes: Sequence[tuple[str, Sequence[float]]] = (),
        user: int | None = None,
    ) -> None:
        self._placement = placement
        self._names = tuple(names)
        self._user = user
        #: The last pattern matches every job.
        self._profiles = (*classes, ("*", tuple(profile)))

    def join(self, job: JobRecord, kept: Sequence[str] = ()) -> tuple[int, ...]:
        """Return the targets of a job that joins, and explain them in its record.

        A job that an earlier controller has given targets, `kept`, keeps them if all of
        them are still there. If an algorithm fails, the record says so, and there are
        no targets.
        """
        if self._user not in (None, job.user):
            job.placement = (
                "It was given no storage targets: only jobs of the user who runs the "
                "controller have some."
            )
            return ()
        profile = self._profile_of(job.known_name)
        targets, job.placement = self._arrive(
            lambda: application_of(job, profile), numbers_of(kept, self._names)
        )
        return targets

    def join_again(self, job: JobRecord) -> tuple[int, ...]:
        """Return new targets of a job of which more has become known; (): it has none.

        The batch system may tell the name of a job on its last node only.
        """
        placed = self._placement.get(job.key)
        if placed is None:
            return ()
        known = application_of(job, self._profile_of(job.known_name))
        if _facts_of(known) == _facts_of(placed.application):
            return ()
        self.leave(job.key)
        return self.join(job)

    def join_folder(
        self, job_key: str, history: JobHistory | None
    ) -> tuple[tuple[int, ...], str]:
        """Return targets of a job of which only the folder is known, and the reason.

        Without its number of nodes, it counts as one.
        """
        profile = self._profile_of(job_key.partition(":")[2])
        phases = []
        if history and history.past_bytes and profile:
            past = (history.iterations, history.iteration_time_s)
            phases = _iteration(median(history.past_bytes), max(profile), 0.0, past)
        return self._arrive(
            lambda: Application.from_phases(job_key, 1, phases, profile=profile)
        )

    def _profile_of(self, name: str) -> Sequence[float]:
        """Return b(1), b(2), ... of a job."""
        profiles = self._profiles
        return next(each for pattern, each in profiles if fnmatchcase(name, pattern))

    def _arrive(
        self, describe: Callable[[], Application], kept: Sequence[int] = ()
    ) -> tuple[tuple[int, ...], str]:
        """Return targets, and a sentence about them for the user."""
        try:
            placed = self._placement.arrive(describe(), kept)
        except PenstockError as error:
            return (), f"It was given no storage targets: {error}."
        shown = ", ".join(self._names[number] for number in placed.targets)
        reason = f"Its files go to the storage targets {shown}: {placed.reason}."
        return placed.targets, reason

    def leave(self, job_key: str) -> None:
        """Free the targets of a job that has left."""
        self._placement.leave(job_key)
