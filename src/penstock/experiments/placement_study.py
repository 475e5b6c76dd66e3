# SPDX-License-Identifier: MIT
"""A study of allocations and placements (target allocation, section 5).

A contender is an allocation and a placement algorithm, the information that both have
on profiles, and the policy that shares every target. Column ``profile_information`` is
"exact" if the algorithms see the bandwidth profile of every application, and "class" if
they see only the profile that stands for its class (target allocation, section 6.2).
Simulation and measurement always use the exact profiles.

Algorithms that draw at random use the random stream (seed, index) of the problem.

A row has the point, its settings, the contender, and these columns:

- ``minimum_load``: I/O-load(pi_sys), by which the paper sorts problems; ``io_load``:
  the I/O-load of the allocation, with the exact profiles;
- ``complete``: every application completed a compute phase and an I/O phase
  (section 5.4);
- the criteria of `penstock.analysis.placement`, in which an unfinished phase counts
  in proportion to its progress; null if an application has transferred less than 1 %
  of an operation;
- with `PlacementStudy.objectives`, the objectives of `penstock.analysis.metrics`,
  measured over [0, smallest dedicated duration]: this window is the same for all
  placements and policies of an allocation;
- ``users_correlation``: correlation between the number of applications on a target
  and its occupancy; null if one of the two is the same on all targets.
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
from penstock.model import Problem
from penstock.placement import (
    ALLOCATIONS,
    PLACEMENTS,
    Allocation,
    Allocator,
    Placement,
    Placer,
    get_allocation,
    get_placement,
)
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.sim import Run, simulate
from penstock.workloads.profiles.profile_classes import class_profile
from penstock.workloads.striped import (
    Striped,
    dedicated_window,
    minimum_load,
    seeded,
)

__all__ = ["CLASS", "CRITERIA", "EXACT", "Contender", "PlacementStudy"]

#: What the algorithms know of a profile: the profile itself, or only its class.
EXACT: Final = "exact"
CLASS: Final = "class"
#: Columns that hold criteria, as in `penstock.analysis.placement`.
CRITERIA: Final = (
    "mean_io_slowdown",
    "rho_io",
    "rho_con",
    "io_spread",
    "machine_idletime",
)

#: An application that has transferred less than this part of an operation has no
#: meaningful slowdown.
_LEAST: Final = 0.01

_Plan: TypeAlias = tuple[Allocation, Placement]


@dataclass(frozen=True, slots=True)
class Contender:
    """An allocation, a placement, what both know of the profiles, and a policy."""

    allocation: str
    placement: str
    profile_information: str = EXACT
    """`EXACT` or `CLASS`."""
    policy: str = "fair-share"

    def __post_init__(self) -> None:
        if self.profile_information not in (EXACT, CLASS):
            raise UnknownNameError(
                "profile information", self.profile_information, (EXACT, CLASS)
            )

    def labels(self) -> Row:
        """Return the columns that name the contender.

        Raises `InputError` if an algorithm or the policy does not exist.
        """
        return self.bind().labels

    def bind(self) -> _BoundContender:
        """Return the contender with its algorithms and its policy ready to run."""
        return _BoundContender(
            get_allocation(self.allocation),
            get_placement(self.placement),
            self.profile_information,
            get_policy(self.policy),
        )


@dataclass(frozen=True, eq=False, slots=True)
class _BoundContender:
    """A contender that is ready to run."""

    allocator: Allocator
    placer: Placer
    profile_information: str
    policy: Policy

    @property
    def labels(self) -> Row:
        """The columns that name the contender."""
        return {
            "allocation": self.allocator.label,
            "placement": self.placer.label,
            "profile_information": self.profile_information,
            "policy": self.policy.label,
        }


@dataclass(frozen=True, slots=True)
class PlacementStudy(Declaration):
    """Contenders on the problems of the workload "striped"."""

    contenders: tuple[Contender, ...]
    objectives: bool = False
    """True to measure the objectives of bandwidth sharing as well."""

    CONTENDER = ("allocation", "placement", "profile_information", "policy")

    def __post_init__(self) -> None:
        for point in range(len(self.points)):
            self._family(point)
        names = {tuple(c.labels().values()) for c in self.contenders}
        if len(names) < len(self.contenders):
            raise InputError(
                "a contender is listed twice",
                where="contenders",
                remedy="leave one out",
            )
        if not self.points or not self.contenders or self.instances < 1:
            raise InputError(
                "nothing to do: no workload, contender or instance",
                remedy="add at least one of each",
            )

    def rows(self, point: int, index: int) -> Iterator[Row]:
        """Allocate, place, simulate and measure on one problem."""
        family = self._family(point)
        problem = family.problem(self.seed, index)
        columns = {
            **self.identity_columns(point, index),
            "case": family.case,
            "applications": family.applications,
            "minimum_load": minimum_load(problem),
        }
        planner = _Planner(problem, family.case, (self.seed, index))
        meter = _Meter(problem, objectives=self.objectives)
        for declared in self.contenders:
            contender = declared.bind()
            allocation, placement = planner.plan(contender)
            yield {
                **columns,
                **contender.labels,
                "io_load": problem.io_load(allocation),
                **meter.measure(placement, contender.policy),
            }

    def foreign_code(self) -> Iterator[Callable[..., Any]]:
        """Yield the algorithms and policies that are not penstock's own."""
        for declared in self.contenders:
            contender = declared.bind()
            if contender.allocator.name not in ALLOCATIONS:
                yield contender.allocator.function
            if contender.placer.name not in PLACEMENTS:
                yield contender.placer.function
            yield from foreign_policies([contender.policy])

    def _family(self, point: int) -> Striped:
        family = self.points[point].family()
        if not isinstance(family, Striped):
            raise InputError(
                f"workload {self.points[point].workload!r} has no placement problems",
                where=f"points[{point}]",
                remedy="use 'striped'",
            )
        return family


class _Planner:
    """Plans for the contenders of one problem; equal decisions are computed once."""

    def __init__(self, problem: Problem, case: str, stream: tuple[int, int]) -> None:
        self._exact, self._stream = problem, stream
        self._classes = cache(lambda: _with_class_profiles(problem, case))
        self._allocations: dict[tuple[str, str], Allocation] = {}
        self._placements: dict[tuple[str, str, Allocation], Placement] = {}

    def plan(self, contender: _BoundContender) -> _Plan:
        """Return the contender's allocation and placement."""
        information = contender.profile_information
        problem = self._exact if information == EXACT else self._classes()
        key = (contender.allocator.label, information)
        if key not in self._allocations:
            allocator = seeded(contender.allocator, *self._stream)
            self._allocations[key] = allocator.allocate(problem)
        allocation = self._allocations[key]
        place = (contender.placer.label, information, allocation)
        if place not in self._placements:
            placer = seeded(contender.placer, *self._stream)
            self._placements[place] = placer.place(problem, allocation)
        return allocation, self._placements[place]


def _with_class_profiles(problem: Problem, case: str) -> Problem:
    """Return `problem` with the profile of every application's class."""
    applications = tuple(
        replace(application, profile=class_profile(application.profile, case))
        for application in problem.applications
    )
    return replace(problem, applications=applications)


class _Meter:
    """Simulates and measures placements of one problem.

    RATIONALE: contenders often decide the same (e.g. t-cpu and best-bandwidth), and
    making an instance takes longer than simulating it. Neither is done twice.
    """

    def __init__(self, problem: Problem, *, objectives: bool) -> None:
        self._problem, self._objectives = problem, objectives
        self._open_ended = cache(problem.instance)
        self._steady = cache(
            lambda placement: problem.instance(
                placement, dedicated_window(problem, placement)
            )
        )
        self._rows: dict[tuple[Placement, str], Row] = {}

    def measure(self, placement: Placement, policy: Policy) -> Row:
        """Return the columns that are measured under a placement and a policy."""
        key = (placement, policy.label)
        if key not in self._rows:
            self._rows[key] = self._measure(placement, policy)
        return self._rows[key]

    def _measure(self, placement: Placement, policy: Policy) -> Row:
        run = simulate(self._open_ended(placement), policy, until_first_end=True)
        row = _first_end_row(self._problem, placement, run)
        if self._objectives:
            row |= asdict(measure(simulate(self._steady(placement), policy)))
        return row


def _first_end_row(problem: Problem, placement: Placement, run: Run) -> Row:
    """Return the columns measured until the first application ends (section 5.4)."""
    return {
        "complete": bool((run.operations >= 1).all()),
        **_criteria(problem, run),
        "users_correlation": _users_correlation(placement, run),
        "window": run.instance.window.length,
        "events": run.events,
        "seconds": run.seconds,
    }


def _criteria(problem: Problem, run: Run) -> Row:
    """Return the criteria of the paper; nulls where a slowdown is not defined."""
    first = np.array([a.volume[0] for a in problem.applications])
    if not (run.volume > _LEAST * first).all():
        return dict.fromkeys(CRITERIA)
    metrics = measure_placement(problem, run)
    return {name: getattr(metrics, name) for name in CRITERIA}


def _users_correlation(placement: Placement, run: Run) -> float | None:
    """Return Pearson's r between the targets' numbers of users and occupancies."""
    targets = [target for chosen in placement for target in chosen]
    users = np.bincount(targets, minlength=run.occupied.size).astype(np.float64)
    if not (np.ptp(users) > 0 and np.ptp(run.occupied) > 0):
        return None
    return float(np.corrcoef(users, run.occupied)[0, 1])
