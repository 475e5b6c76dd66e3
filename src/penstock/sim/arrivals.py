# SPDX-License-Identifier: MIT
"""Applications that arrive over time and are given storage targets when they do.

`penstock.placement.online.OnlinePlacement` decides; the controller asks the same
object about running jobs. What it knows of an application is given apart from what the
application does, so that wrong or missing information can be studied.

An application keeps its targets until it ends, and then frees them. Which applications
have ended when another one arrives follows from the simulation of those before it: it
is run again from 0 up to every arrival, so that the cost grows with the square of their
number. At equal times, an arrival comes before an end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.errors import InputError
from penstock.model import Application, Column, Instance
from penstock.model.platform import Platform, Sharing
from penstock.model.problem import Problem
from penstock.model.window import Window
from penstock.placement.online import OnlinePlacement
from penstock.sim.run import Run
from penstock.sim.simulation import simulate

__all__ = ["ArrivalsRun", "PlacementEvent", "simulate_arrivals"]


@dataclass(frozen=True, slots=True)
class PlacementEvent:
    """An application arrives and gets targets, or ends and frees them."""

    time_s: float
    name: str
    targets: tuple[int, ...]
    """() if it ends."""


@dataclass(frozen=True, eq=False)
class ArrivalsRun:
    """The result: all applications from their arrival to their end."""

    run: Run
    """The whole simulation; applications in the order of the problem."""
    events: tuple[PlacementEvent, ...]
    """All arrivals, and the ends before the last arrival, in order."""
    slowdowns: Column
    """rho_j by application (target allocation, equation 4)."""

    @property
    def mean_io_slowdown(self) -> float:
        """Mean of the slowdowns (target allocation, equation 5)."""
        return float(self.slowdowns.mean())


def simulate_arrivals(
    problem: Problem,
    arrivals_s: Sequence[float],
    placement: OnlinePlacement,
    *,
    known: Sequence[Application] = (),
    policy: str = "fair-share",
) -> ArrivalsRun:
    """Let the applications of `problem` arrive, and simulate until all have ended.

    Parameters
    ----------
    arrivals_s
        When each application arrives (s), 0 or later.
    known
        What `placement` is told of each application; default: all.
    policy
        Shares every target.

    Raises `InputError` if the arrivals are not times of these applications, if `known`
    has other applications, or if one has not ended when a work-conserving policy would
    have ended all.
    """
    known = known or problem.applications
    _check(problem, arrivals_s, placement, known)
    arrived: dict[int, Application] = {}
    present: list[int] = []
    events: list[PlacementEvent] = []
    for j in sorted(range(len(arrivals_s)), key=lambda j: (arrivals_s[j], j)):
        now_s = float(arrivals_s[j])
        for ended_s, i in _ended(problem, arrived, present, now_s, policy):
            placement.leave(problem.applications[i].name)
            present.remove(i)
            events.append(PlacementEvent(ended_s, problem.applications[i].name, ()))
        targets = placement.arrive(known[j]).targets
        events.append(PlacementEvent(now_s, known[j].name, targets))
        arrived[j] = replace(
            problem.applications[j], release=now_s, start=now_s, targets=targets
        )
        present.append(j)
    applications = [arrived[j] for j in range(len(arrivals_s))]
    run = _simulate(problem, applications, _latest_end(problem, applications), policy)
    _check_ends(run, applications)
    return ArrivalsRun(run, tuple(events), _slowdowns(problem, run))


def _ended(
    problem: Problem,
    arrived: dict[int, Application],
    present: Sequence[int],
    now_s: float,
    policy: str,
) -> list[tuple[float, int]]:
    """Return when and which of the present applications have ended before `now_s`."""
    numbers = sorted(j for j in arrived if arrived[j].start < now_s)
    if not numbers:
        return []
    run = _simulate(problem, [arrived[j] for j in numbers], now_s, policy)
    ends = zip(run.ended.tolist(), numbers, strict=True)
    return sorted((end_s, j) for end_s, j in ends if end_s < now_s and j in present)


def _simulate(
    problem: Problem, applications: Sequence[Application], end_s: float, policy: str
) -> Run:
    """Simulate applications on their targets, which are shared by time, until `end_s`.

    The bandwidths of the platform limit no application: see `Problem.instance`.
    """
    peaks = [float(a.profile.max()) for a in applications]
    platform = Platform(sum(peaks), max(peaks), problem.resources, Sharing.TIME)
    instance = Instance(platform, Window(0.0, end_s), tuple(applications))
    return simulate(instance, policy, steady=False)


def _latest_end(problem: Problem, applications: Sequence[Application]) -> float:
    """Return a time at which all applications have ended, for work-conserving policies.

    After the last arrival, an application works, or one of its targets is busy: all
    work and all transfers, one after the other, are an upper bound. It is doubled, so
    that rounding does not matter.
    """
    longest_s = max(a.start for a in applications)
    for j, application in enumerate(applications):
        width = len(application.targets)
        longest_s += problem.compute_time[j] + width * problem.io_time(j, width)
    return 2.0 * longest_s


def _slowdowns(problem: Problem, run: Run) -> Column:
    """Return the time in I/O by the time alone on the best number of targets."""
    everyone = range(len(problem.applications))
    alone = np.array([problem.io_time(j, problem.n_perf(j)) for j in everyone])
    slowdowns: Column = (run.present - run.work) / alone
    return slowdowns


def _check(
    problem: Problem,
    arrivals_s: Sequence[float],
    placement: OnlinePlacement,
    known: Sequence[Application],
) -> None:
    """Raise `InputError` if the arguments are not about the same applications."""
    times = np.asarray(arrivals_s, dtype=np.float64)
    if times.shape != (len(problem.applications),) or not (
        np.isfinite(times).all() and times.min() >= 0.0
    ):
        raise InputError(
            f"{list(arrivals_s)} are not the arrivals of {len(problem.applications)} "
            "applications",
            where="arrivals",
            remedy="give one time for each application, 0 or later",
        )
    if placement.resources != problem.resources:
        raise InputError(
            f"the placement has {placement.resources} targets, the problem "
            f"{problem.resources}",
            where="placement",
            remedy="give both the same number",
        )
    if [a.name for a in known] != [a.name for a in problem.applications]:
        raise InputError(
            f"{[a.name for a in known]} are not the applications of the problem",
            where="known",
            remedy="give the same names in the same order",
        )


def _check_ends(run: Run, applications: Sequence[Application]) -> None:
    """Raise `InputError` if an application has not ended."""
    for ended_s, application in zip(run.ended.tolist(), applications, strict=True):
        if ended_s >= run.instance.window.end:
            raise InputError(
                f"{application.name} does not end",
                where="policy",
                remedy="give a policy that leaves no target idle while somebody waits",
            )
