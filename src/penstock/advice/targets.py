# SPDX-License-Identifier: MIT
"""Advice about storage targets: how many and which targets every job should get.

Without placement, every job is striped over all targets, and all jobs meet on all of
them. The allocations and placements of target allocation are simulated against that.
The criterion is Mean-I/O-SlowDown: time in I/O over the time that the same volume takes
alone on the best number of targets, mean over the jobs (1 is best).

A job whose bandwidth on 1, 2, ... targets was not measured gets the profile
b(n) = min(n B / N, nodes x node bandwidth): it uses n of N equal targets fully.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypedDict

import numpy as np

from penstock.errors import InputError
from penstock.experiments.placing import PlacementPlan, compare_plans, simulate_plan
from penstock.model import Application, Instance
from penstock.model.platform import check_targets
from penstock.model.problem import Problem
from penstock.placement import get_allocation, get_placement
from penstock.policies import get_policy

__all__ = [
    "SlowdownsFormat",
    "TargetAdvice",
    "TargetAdviceFormat",
    "advise_targets",
]

_ALLOCATIONS: Final = ("t-cpu", "n-sys", "best-bandwidth", "static")
_PLACEMENTS: Final = ("greedy-non-clairvoyant", "greedy-clairvoyant")
#: The policy that shares every target: what storage does without control.
_SHARING: Final = "fair-share"
#: A placement must lower the mean slowdown by this part of it.
_WORTHWHILE: Final = 0.02


class SlowdownsFormat(TypedDict):
    """Mean-I/O-SlowDown on all targets, and with the advice."""

    all_targets: float
    advised: float


class TargetAdviceFormat(TypedDict):
    """Advice about storage targets, as a part of the advice."""

    allocation: str
    placement: str
    worthwhile: bool
    mean_io_slowdown: SlowdownsFormat
    targets: dict[str, list[int]]
    profiles: Literal["measured", "assumed"]
    sentence: str


@dataclass(frozen=True, slots=True)
class TargetAdvice:
    """The best placement against all targets for every job."""

    on_all: float
    """Mean-I/O-SlowDown if every job is striped over all targets."""
    best: float
    """Mean-I/O-SlowDown of the best combination."""
    plan: PlacementPlan
    """The best combination of an allocation and a placement."""
    measured: bool
    """True if the bandwidth of every job on 1, 2, ... targets is known."""

    @property
    def is_worthwhile(self) -> bool:
        """True if the best combination is clearly better than all targets."""
        return self.best < (1.0 - _WORTHWHILE) * self.on_all

    def sentence(self) -> str:
        """Return the advice in words."""
        found = (
            f"Mean-I/O-SlowDown is {self.on_all:.2f} on all targets and "
            f"{self.best:.2f} with {self.plan.allocator} + {self.plan.placer}."
        )
        if not self.is_worthwhile:
            return f"Stripe every job over all targets. {found}"
        return f"Place jobs with {self.plan.allocator} + {self.plan.placer}. {found}"

    def targets_by_job(self) -> dict[str, list[int]]:
        """Return job -> its targets in the best combination."""
        names = [application.name for application in self.plan.problem.applications]
        return dict(zip(names, map(list, self.plan.placement), strict=True))

    def document(self) -> TargetAdviceFormat:
        """Return the advice as a part of a JSON document."""
        return {
            "allocation": self.plan.allocator,
            "placement": self.plan.placer,
            "worthwhile": self.is_worthwhile,
            "mean_io_slowdown": {"all_targets": self.on_all, "advised": self.best},
            "targets": self.targets_by_job(),
            "profiles": "measured" if self.measured else "assumed",
            "sentence": self.sentence(),
        }


def advise_targets(instance: Instance, count: int) -> TargetAdvice:
    """Return the best placement of the jobs of an instance on `count` targets."""
    problem, measured = _problem(instance, count)
    policy = get_policy(_SHARING)
    comparison = compare_plans(
        problem,
        [get_allocation(name) for name in _ALLOCATIONS],
        [get_placement(name) for name in _PLACEMENTS],
        [policy],
    )
    everyone = range(len(problem.applications))
    widths = tuple(problem.most_targets(j) for j in everyone)
    on_all = PlacementPlan(
        problem, "all", "all", widths, tuple(tuple(range(n)) for n in widths)
    )
    if not comparison.outcomes:
        # Placements are compared until the first job ends.
        raise InputError(
            f"no placement can be simulated: {comparison.refusals[0].reason}",
            where="--targets",
            remedy="leave the option out, or give jobs of about the same length",
        )
    plan, result = comparison.outcomes[0]
    return TargetAdvice(
        on_all=simulate_plan(on_all, policy).metrics.mean_io_slowdown,
        best=result.metrics.mean_io_slowdown,
        plan=plan,
        measured=measured,
    )


def _problem(instance: Instance, count: int) -> tuple[Problem, bool]:
    """Return the placement problem of the jobs that do I/O; True if all is measured."""
    check_targets(count, "--targets")
    jobs = [a for a in instance.applications if a.volume.sum() > 0]
    if not jobs:
        raise InputError(
            "no job does I/O", where="--targets", remedy="leave the option out"
        )
    measured = all(job.profile.size >= count for job in jobs)
    profiled = tuple(_with_profile(job, instance, count) for job in jobs)
    return Problem(count, sum(job.nodes for job in jobs), profiled), measured


def _with_profile(job: Application, instance: Instance, count: int) -> Application:
    """Return a job with a bandwidth profile, the assumed one if none is measured."""
    if job.profile.size >= count:
        return replace(job, targets=(0,))
    widths = np.arange(1, count + 1)
    linear = widths * (instance.platform.bandwidth / count)
    most = job.nodes * instance.platform.node_bandwidth
    return replace(job, profile=np.minimum(linear, most), targets=(0,))
