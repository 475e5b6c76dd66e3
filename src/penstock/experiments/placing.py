# SPDX-License-Identifier: MIT
"""Who gets which storage targets, what each would experience, and which way is best.

A *plan* is what an allocation and a placement decide for a problem. It is carried out
in simulation until the first application ends (papers/2 section 5.4); a policy shares
every target. The paper asks that every application complete a compute and an I/O phase
by then; here it is enough that it transfers something, and what it did counts pro rata.
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
    "Experience",
    "PlacementPlan",
    "PlanComparison",
    "Refusal",
    "carry_out",
    "compare_plans",
    "make_plan",
]


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """How many targets each application gets, and which."""

    problem: Problem = field(repr=False)
    allocator: str
    """Label of the allocation algorithm."""
    placer: str
    """Label of the placement algorithm."""
    allocation: Allocation
    placement: Placement

    @property
    def io_load(self) -> float | None:
        """I/O-load, papers/2 eq. 3; None if phases or bandwidths are not known."""
        it = self.problem
        everyone = range(len(it.applications))
        if not all(it.has_phases(j) and it.has_bandwidth(j) for j in everyone):
            return None
        return it.io_load(self.allocation)


@dataclass(frozen=True, eq=False, slots=True)
class Experience:
    """What the applications experience if a plan is carried out."""

    policy: str
    """Label of the policy that shares every target."""
    window_s: float
    """When the first application ended (s); all is measured up to then."""
    metrics: PlacementMetrics
    rho_io: Column
    """By application: what its number of targets costs, b_j(n_perf) / b_j(n_j)."""
    in_io_s: Column
    """By application: time in I/O, waiting included (s)."""
    incomplete: int
    """How many applications had not completed an operation."""

    @property
    def rho_con(self) -> Column:
        """By application: what waiting for others costs, rho_j - rho_io_j."""
        return self.metrics.slowdowns - self.rho_io


@dataclass(frozen=True, slots=True)
class Refusal:
    """A combination that cannot be compared."""

    allocator: str
    placer: str
    policy: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Plans for one problem, carried out."""

    problem: Problem = field(repr=False)
    outcomes: tuple[tuple[PlacementPlan, Experience], ...]
    """Lowest Mean-I/O-SlowDown first."""
    refusals: tuple[Refusal, ...]


def make_plan(problem: Problem, allocator: Allocator, placer: Placer) -> PlacementPlan:
    """Decide how many targets each application gets, and which."""
    return _placed(problem, allocator.label, allocator.allocate(problem), placer)


def carry_out(plan: PlacementPlan, policy: Policy) -> Experience:
    """Simulate a plan until the first application ends."""
    problem = plan.problem
    instance = problem.instance(plan.placement)
    check_periods(instance, policy)
    run = simulate(instance, policy, until_first_end=True)
    length = run.instance.window.length
    return Experience(
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
    """Carry out every allocation with every placement under every policy.

    A combination that the problem does not allow is listed with the reason.

    Parameters
    ----------
    progress
        Called with the number of combinations done and in all.
    """
    # Some allocations take longer than all simulations: each is computed once.
    allocated = cache(lambda number: allocators[number].allocate(problem))
    combinations = list(product(range(len(allocators)), placers, policies))
    outcomes, refusals = [], []
    progress(0, len(combinations))
    for done, (number, placer, policy) in enumerate(combinations, start=1):
        label = allocators[number].label
        try:
            plan = _placed(problem, label, allocated(number), placer)
            outcomes.append((plan, carry_out(plan, policy)))
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
