# SPDX-License-Identifier: MIT
"""A study of allocations and placements: problems x contenders, papers/2 section 5.

A contender decides how many targets an application gets and which, from bandwidth
profiles that are exact or only those of its class (papers/2 section 6.2); a policy
then shares every target. Truth is always the exact profile: it is what is simulated
and what the outcome is measured with.

Algorithms that draw at random have the stream (seed, index) of the problem.

A row has, beside the point, the settings and the contender:

- ``minimum_load``: I/O-load(pi_sys), by which papers/2 sorts problems; ``io_load``:
  that of the allocation, with the exact profiles;
- ``complete``: every application completed a compute + I/O phase (section 5.4);
- the criteria of `penstock.analysis.placement`, in which what was begun counts pro
  rata; null if an application has transferred less than 1 % of an operation;
- the objectives of `penstock.analysis.metrics`, if asked for: of a run over [0,
  smallest dedicated duration], a window that is the same for all placements and
  policies of an allocation;
- ``users_correlation``: between the targets' number of applications and their
  occupancy; null if one of the two is the same on all targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from penstock.analysis import measure
from penstock.analysis.placement import measure_placement
from penstock.errors import InputError, UnknownNameError
from penstock.experiments.study import Declaration, Row, foreign_policies
from penstock.model import Instance, Problem
from penstock.placement import (
    ALLOCATIONS,
    PLACEMENTS,
    Allocation,
    Placement,
    get_allocation,
    get_placement,
)
from penstock.policies import get_policy
from penstock.sim import Run, simulate
from penstock.workloads.profiles.profile_classes import class_profile
from penstock.workloads.striped import (
    Striped,
    dedicated_window,
    minimum_load,
    seeded,
)

__all__ = ["CLASSES", "CRITERIA", "EXACT", "Contender", "PlacementStudy"]

#: What algorithms are told of the bandwidths.
EXACT: Final = "exact"
CLASSES: Final = "classes"
#: Columns that hold criteria, as in `penstock.analysis.placement`.
CRITERIA: Final = (
    "mean_io_slowdown",
    "rho_io",
    "rho_con",
    "io_spread",
    "machine_idletime",
)

#: Of an operation: one that has only just begun says nothing of its slowdown.
_LEAST: Final = 0.01

_Plan: TypeAlias = tuple[Allocation, Placement]


@dataclass(frozen=True, slots=True)
class Contender:
    """An allocation with a placement, what they are told, and who shares targets."""

    allocation: str
    placement: str
    told: str = EXACT
    """`EXACT` or `CLASSES`."""
    policy: str = "fair-share"

    def __post_init__(self) -> None:
        if self.told not in (EXACT, CLASSES):
            raise UnknownNameError("kind of profile", self.told, (EXACT, CLASSES))

    def labels(self) -> Row:
        """Return the columns that name the contender; unknown names are refused."""
        return {
            "allocation": get_allocation(self.allocation).label,
            "placement": get_placement(self.placement).label,
            "told": self.told,
            "policy": get_policy(self.policy).label,
        }


@dataclass(frozen=True, slots=True)
class PlacementStudy(Declaration):
    """Contenders on the problems of workload "striped"."""

    contenders: tuple[Contender, ...]
    objectives: bool = False
    """Whether to measure the objectives of papers/1 as well."""

    CONTENDER = ("allocation", "placement", "told", "policy")

    def __post_init__(self) -> None:
        for point in range(len(self.points)):
            self._family(point)
        names = {tuple(c.labels().values()) for c in self.contenders}
        if len(names) < len(self.contenders):
            raise InputError("a contender is listed twice", where="contenders")
        if not self.points or not self.contenders or self.instances < 1:
            raise InputError("nothing to do: no workload, contender or instance")

    def rows(self, point: int, index: int) -> Iterator[Row]:
        """Allocate, place, simulate and measure on one problem."""
        family = self._family(point)
        problem = family.problem(self.seed, index)
        facts = {
            **self.facts(point, index),
            "case": family.case,
            "applications": family.applications,
            "minimum_load": minimum_load(problem),
        }
        plan = _planner(problem, family.case, self.seed, index)
        measured = _measurer(problem, objectives=self.objectives)
        for contender in self.contenders:
            allocation, placement = plan(contender)
            yield {
                **facts,
                **contender.labels(),
                "io_load": problem.io_load(allocation),
                **measured(placement, contender.policy),
            }

    def foreign_code(self) -> Iterator[Callable[..., Any]]:
        """Yield the algorithms and policies that are not penstock's own."""
        for contender in self.contenders:
            allocator = get_allocation(contender.allocation)
            if allocator.name not in ALLOCATIONS:
                yield allocator.function
            placer = get_placement(contender.placement)
            if placer.name not in PLACEMENTS:
                yield placer.function
            yield from foreign_policies((contender.policy,))

    def _family(self, point: int) -> Striped:
        family = self.points[point].family()
        if not isinstance(family, Striped):
            raise InputError(
                f"workload {self.points[point].workload!r} has no placement problems",
                where=f"points[{point}]",
                remedy="use 'striped'",
            )
        return family


def _planner(
    problem: Problem, case: str, seed: int, index: int
) -> Callable[[Contender], _Plan]:
    """Return what decides for a contender; nothing is decided twice."""

    @cache
    def told(what: str) -> Problem:
        return problem if what == EXACT else _told_classes(problem, case)

    @cache
    def allocated(name: str, what: str) -> Allocation:
        return seeded(get_allocation(name), seed, index).allocate(told(what))

    @cache
    def placed(name: str, allocation: Allocation, what: str) -> Placement:
        return seeded(get_placement(name), seed, index).place(told(what), allocation)

    def plan(contender: Contender) -> _Plan:
        allocation = allocated(contender.allocation, contender.told)
        return allocation, placed(contender.placement, allocation, contender.told)

    return plan


def _told_classes(problem: Problem, case: str) -> Problem:
    """Return what is known of `problem` if of a profile only its class is known."""
    applications = tuple(
        replace(application, profile=class_profile(application.profile, case))
        for application in problem.applications
    )
    return replace(problem, applications=applications)


def _measurer(problem: Problem, *, objectives: bool) -> Callable[[Placement, str], Row]:
    """Return what simulates and measures a placement under a policy.

    Contenders often decide the same, e.g. t-cpu and best-bandwidth, and to make an
    instance takes longer than to simulate it: neither is done twice.
    """
    open_ended = cache(problem.instance)

    @cache
    def steady(placement: Placement) -> Instance:
        return problem.instance(placement, dedicated_window(problem, placement))

    @cache
    def measured(placement: Placement, policy: str) -> Row:
        run = simulate(open_ended(placement), policy, until_first_end=True)
        row = _first_end_row(problem, placement, run)
        if objectives:
            row |= asdict(measure(simulate(steady(placement), policy)))
        return row

    return measured


def _first_end_row(problem: Problem, placement: Placement, run: Run) -> Row:
    """Return what is measured until an application ends (papers/2 section 5.4)."""
    return {
        "complete": bool((run.operations >= 1).all()),
        **_criteria(problem, run),
        "users_correlation": _users_correlation(placement, run),
        "window": run.instance.window.length,
        "events": run.events,
        "seconds": run.seconds,
    }


def _criteria(problem: Problem, run: Run) -> Row:
    """Return the criteria of papers/2; nulls where a slowdown is not defined."""
    first = np.array([a.volume[0] for a in problem.applications])
    if not (run.volume > _LEAST * first).all():
        return dict.fromkeys(CRITERIA)
    metrics = measure_placement(problem, run)
    return {name: getattr(metrics, name) for name in CRITERIA}


def _users_correlation(placement: Placement, run: Run) -> float | None:
    """Return Pearson's r of the number of applications and the occupancy of targets."""
    targets = [target for chosen in placement for target in chosen]
    users = np.bincount(targets, minlength=run.occupied.size).astype(np.float64)
    if not (np.ptp(users) > 0 and np.ptp(run.occupied) > 0):
        return None
    return float(np.corrcoef(users, run.occupied)[0, 1])
