# SPDX-License-Identifier: MIT
"""Which policy a site should use, how much it gains, and how sure that is.

Rule. Every policy is simulated on the same scenarios (`penstock.advice.scenarios`).
The *gain* of a policy is the difference of its MinYield, the yield of the worst job, to
that of the present policy on the same scenario. The candidate is the policy with the
largest mean gain; the recommended one of the project is preferred to a policy that is
better by less than `WORTHWHILE`. The interval of the gain holds nine of ten scenarios.

The verdict is the first line that is true:

========================================================== =============
no job loses more than `WORTHWHILE` to others now          keep
there are fewer than `FEWEST_OPERATIONS` operations        thin-evidence
the candidate gains less than `WORTHWHILE` on the mean     keep
the whole interval of the gain is above 0                  change
the gain is likely, but not sure                           thin-evidence
========================================================== =============

No policy can have a MinYield above the bound (`penstock.analysis.bound`), which says
what could be gained at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from penstock.analysis import min_yield_bound
from penstock.errors import InputError
from penstock.model import Column, Instance
from penstock.policies import POLICIES, RECOMMENDED, get_policy
from penstock.sim import Run, simulate

__all__ = [
    "FEWEST_OPERATIONS",
    "WORTHWHILE",
    "Answer",
    "PolicyOutcome",
    "Recommendation",
    "recommend",
]

#: The least gain in MinYield for which a change of policy is worth the effort.
WORTHWHILE: Final = 0.01
#: Fewer operations in the logs show too little of how the jobs meet.
FEWEST_OPERATIONS: Final = 4
#: The interval of the gain leaves out this part of the scenarios at either end.
_TAIL: Final = 0.05
_INTERVAL: Final = (100 * _TAIL, 100 * (1 - _TAIL))


class Answer(StrEnum):
    """The answer in one word."""

    CHANGE = "change"
    KEEP = "keep"
    THIN_EVIDENCE = "thin-evidence"


@dataclass(frozen=True, eq=False, slots=True)
class PolicyOutcome:
    """What one policy gives; arrays have one entry per scenario."""

    policy: str
    """Label of the policy."""
    min_yields: Column = field(repr=False)
    efficiencies: Column = field(repr=False)
    """Progress of all jobs by the time for which they were there, by nodes."""
    yields: Mapping[str, float] = field(repr=False)
    """Application -> its mean yield over the scenarios that have it."""

    @property
    def min_yield(self) -> float:
        """Mean MinYield over the scenarios."""
        return float(self.min_yields.mean())

    @property
    def efficiency(self) -> float:
        """Mean Efficiency over the scenarios."""
        return float(self.efficiencies.mean())

    def interval(self) -> tuple[float, float]:
        """Return the interval that holds the MinYield of nine of ten scenarios."""
        return _interval(self.min_yields)


@dataclass(frozen=True, eq=False, slots=True)
class Recommendation:
    """The answer to "which policy should we use?"."""

    verdict: Answer
    present: PolicyOutcome
    candidate: PolicyOutcome
    """The policy that gains most, or soft-deadline if it gains less than 1 point less;
    the present one if none gains anything."""
    outcomes: tuple[PolicyOutcome, ...]
    """All policies, largest MinYield first."""
    bound: float
    """Mean bound on MinYield over the scenarios."""
    scenarios: int
    operations: int
    """Number of operations in the logs or instances."""

    @property
    def policy(self) -> str:
        """Label of the policy to use."""
        is_change = self.verdict is Answer.CHANGE
        return (self.candidate if is_change else self.present).policy

    @property
    def gain(self) -> float:
        """Mean gain of the worst job with the candidate (difference of yields)."""
        return self.candidate.min_yield - self.present.min_yield

    @property
    def gain_interval(self) -> tuple[float, float]:
        """The interval that holds the gain in nine of ten scenarios."""
        return _interval(self.candidate.min_yields - self.present.min_yields)

    @property
    def part_without_gain(self) -> float:
        """Part of the scenarios in which the worst job is not better off."""
        return float(np.mean(self.candidate.min_yields <= self.present.min_yields))

    @property
    def largest_loss(self) -> tuple[str, float]:
        """The application that loses most yield with the candidate, and how much."""
        before, after = self.present.yields, self.candidate.yields
        return max(
            ((name, before[name] - after[name]) for name in before),
            key=lambda loss: loss[1],
        )


def recommend(
    scenarios: Sequence[Instance],
    present: str = "fair-share",
    policies: Sequence[str] = tuple(POLICIES),
    *,
    operations: int | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Recommendation:
    """Simulate the policies on the scenarios; return what to do.

    `present` is the policy in use; fair-share is what storage does without control.
    """
    if not scenarios:
        raise InputError("no instance", remedy="name at least one log or instance")
    if operations is None:
        operations = sum(len(a.volume) for a in scenarios[0].applications)
    labels = list(dict.fromkeys(get_policy(p).label for p in (present, *policies)))
    outcomes = []
    progress(0, len(labels))
    for done, label in enumerate(labels, start=1):
        outcomes.append(_outcome(label, scenarios))
        progress(done, len(labels))
    before = outcomes[0]
    candidate = _candidate(before, outcomes)
    bounds = [min_yield_bound(scenario).min_yield for scenario in scenarios]
    return Recommendation(
        verdict=_verdict(before, candidate, operations),
        present=before,
        candidate=candidate,
        outcomes=tuple(sorted(outcomes, key=lambda o: -o.min_yield)),
        bound=float(np.mean(bounds)),
        scenarios=len(scenarios),
        operations=operations,
    )


def _outcome(label: str, scenarios: Sequence[Instance]) -> PolicyOutcome:
    """Simulate one policy on all scenarios."""
    policy = get_policy(label)
    runs = [simulate(scenario, policy, steady=False) for scenario in scenarios]
    yields: dict[str, list[float]] = {}
    for run in runs:
        names = [application.name for application in run.instance.applications]
        for name, reached in zip(names, run.yields.tolist(), strict=True):
            yields.setdefault(name, []).append(reached)
    return PolicyOutcome(
        policy=label,
        min_yields=np.array([run.yields.min() for run in runs]),
        efficiencies=np.array([_efficiency(run) for run in runs]),
        yields={name: float(np.mean(values)) for name, values in yields.items()},
    )


def _efficiency(run: Run) -> float:
    """Return the progress of all jobs by the time for which they were there.

    Both are weighted by nodes. The papers divide by the whole window instead
    (`penstock.analysis.metrics`), which does not suit jobs that begin inside it.
    """
    nodes = np.array([a.nodes for a in run.instance.applications], dtype=np.float64)
    there_s = float(nodes @ run.present)
    progress_s = float(nodes @ (run.work + run.volume / run.instance.caps))
    return progress_s / there_s if there_s > 0.0 else 1.0


def _candidate(
    present: PolicyOutcome, outcomes: Sequence[PolicyOutcome]
) -> PolicyOutcome:
    """Return the policy that gains most; prefer the recommended one if it is close."""
    best = max(outcomes, key=lambda outcome: outcome.min_yield)
    for outcome in outcomes:
        is_close = outcome.min_yield > best.min_yield - WORTHWHILE
        if outcome.policy == RECOMMENDED and is_close:
            best = outcome
    return best if best.min_yield > present.min_yield else present


def _verdict(
    present: PolicyOutcome, candidate: PolicyOutcome, operations: int
) -> Answer:
    gains = candidate.min_yields - present.min_yields
    if present.min_yield > 1.0 - WORTHWHILE:
        return Answer.KEEP
    if operations < FEWEST_OPERATIONS:
        return Answer.THIN_EVIDENCE
    if float(gains.mean()) < WORTHWHILE:
        return Answer.KEEP
    return Answer.CHANGE if _interval(gains)[0] > 0 else Answer.THIN_EVIDENCE


def _interval(values: Column) -> tuple[float, float]:
    low, high = np.percentile(values, _INTERVAL)
    return float(low), float(high)
