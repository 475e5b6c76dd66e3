# SPDX-License-Identifier: MIT
"""Plan storage targets for applications, simulate the plans, and compare them.

A *plan* is the decision of an allocation and a placement algorithm for a problem. It is
simulated until the first application ends (target allocation, section 5.4); a policy
shares every target. The paper requires that every application completes a compute and
an I/O phase by then. Here it is enough that every application transfers something: an
unfinished phase counts in proportion to its progress.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product

import numpy as np

from penstock.analysis.placement import PlacementMetrics, measure_placement
from penstock.errors import InputError
from penstock.experiments.periods import check_periods
from penstock.model import Column, Problem
from penstock.placement import Allocation, Allocator, Placement, Placer
from penstock.policies.policy import Policy
from penstock.sim import simulate

__all__ = [
    "PlacementPlan",
    "PlanComparison",
    "PlanResult",
    "Refusal",
    "compare_plans",
    "make_plan",
    "simulate_plan",
]


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """How many targets every application gets, and which ones."""

    problem: Problem = field(repr=False)
    allocator: str
    """Label of the allocation algorithm."""
    placer: str
    """Label of the placement algorithm."""
    allocation: Allocation
    placement: Placement

    @property
    def io_load(self) -> float | None:
        """I/O-load (target allocation, eq. 3); None without phases or bandwidths."""
        problem = self.problem
        numbers = range(len(problem.applications))
        if not all(problem.has_phases(j) and problem.has_bandwidth(j) for j in numbers):
            return None
        return problem.io_load(self.allocation)


@dataclass(frozen=True, eq=False, slots=True)
class PlanResult:
    """The slowdowns of the applications when a plan is simulated."""

    policy: str
    """Label of the policy that shares every target."""
    window_s: float
    """When the first application ended (s); everything is measured up to then."""
    metrics: PlacementMetrics
    rho_io: Column
    """By application: cost of its number of targets, b_j(n_perf) / b_j(n_j)."""
    in_io_s: Column
    """By application: time in I/O, waiting included (s)."""
    incomplete: int
    """Number of applications that had not completed an operation."""

    @property
    def rho_con(self) -> Column:
        """By application: cost of waiting for others, rho_j - rho_io_j."""
        return self.metrics.slowdowns - self.rho_io


@dataclass(frozen=True, slots=True)
class Refusal:
    """A combination that the problem does not allow, and the reason."""

    allocator: str
    placer: str
    policy: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """The simulated plans for one problem."""

    problem: Problem = field(repr=False)
    outcomes: tuple[tuple[PlacementPlan, PlanResult], ...]
    """Lowest Mean-I/O-SlowDown first."""
    refusals: tuple[Refusal, ...]


def make_plan(problem: Problem, allocator: Allocator, placer: Placer) -> PlacementPlan:
    """Decide how many targets every application gets, and which ones."""
    return _placed(problem, allocator.label, allocator.allocate(problem), placer)


def simulate_plan(plan: PlacementPlan, policy: Policy) -> PlanResult:
    """Simulate a plan until the first application ends; measure the slowdowns."""
    problem = plan.problem
    instance = problem.instance(plan.placement)
    check_periods(instance, policy)
    run = simulate(instance, policy, until_first_end=True)
    length = run.instance.window.length
    return PlanResult(
        policy=policy.label,
        window_s=length,
        metrics=measure_placement(problem, run),
        rho_io=np.array(
            [
                problem.bandwidth(j, problem.n_perf(j)) / problem.bandwidth(j, n)
                for j, n in enumerate(plan.allocation)
            ]
        ),
        in_io_s=length - run.work,
        incomplete=int((run.operations < 1).sum()),
    )


def compare_plans(
    problem: Problem,
    allocators: Sequence[Allocator],
    placers: Sequence[Placer],
    policies: Sequence[Policy],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> PlanComparison:
    """Simulate every allocation with every placement under every policy.

    A combination that the problem does not allow becomes a `Refusal`.

    Parameters
    ----------
    progress
        Called with the number of combinations done, and that of all combinations.
    """
    # Computed once each: some allocations take longer than all simulations.
    allocated = cache(lambda number: allocators[number].allocate(problem))
    combinations = list(product(range(len(allocators)), placers, policies))
    outcomes, refusals = [], []
    progress(0, len(combinations))
    for done, (number, placer, policy) in enumerate(combinations, start=1):
        label = allocators[number].label
        try:
            plan = _placed(problem, label, allocated(number), placer)
            outcomes.append((plan, simulate_plan(plan, policy)))
        except InputError as error:
            refusals.append(Refusal(label, placer.label, policy.label, str(error)))
        progress(done, len(combinations))
    outcomes.sort(key=lambda outcome: outcome[1].metrics.mean_io_slowdown)
    return PlanComparison(problem, tuple(outcomes), tuple(refusals))


def _placed(
    problem: Problem, label: str, allocation: Allocation, placer: Placer
) -> PlacementPlan:
    placement = placer.place(problem, allocation)
    return PlacementPlan(problem, label, placer.label, allocation, placement)
