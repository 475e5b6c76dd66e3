# SPDX-License-Identifier: MIT
"""Advice as a JSON document; `docs/reference/formats.md` describes every key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from penstock.advice.recommendation import Answer, PolicyOutcome, Recommendation
from penstock.advice.sentences import reasons, verdict_sentence
from penstock.advice.targets import TargetAdviceFormat
from penstock.model import FORMAT

__all__ = [
    "AdviceBoundFormat",
    "AdviceFormat",
    "AdvisedJobFormat",
    "AdvisedPolicyFormat",
    "GainFormat",
    "PolicyYieldFormat",
    "advice_document",
    "roles_of_policies",
]


class PolicyYieldFormat(TypedDict):
    """A policy and its objectives, as means over the scenarios."""

    policy: str
    min_yield: float
    efficiency: float


class AdvisedPolicyFormat(PolicyYieldFormat):
    """The policy to use, with its MinYield in nine of ten scenarios."""

    interval: list[float]


class GainFormat(TypedDict):
    """The candidate (`Recommendation.candidate`), and its gain in MinYield."""

    policy: str
    min_yield: float
    interval: list[float]


class AdviceBoundFormat(TypedDict):
    """The mean of the MinYield that no scheduler exceeds."""

    min_yield: float


class AdvisedJobFormat(TypedDict):
    """A job: its yields, and what its owner can do."""

    name: str
    yield_now: float
    yield_advised: float
    advice: list[str]


class AdviceFormat(TypedDict):
    """The advice that ``penstock advise --json`` writes."""

    penstock: Literal[1]
    provenance: dict[str, Any]
    verdict: Answer
    policy: str
    summary: str
    now: PolicyYieldFormat
    advised: AdvisedPolicyFormat
    gain: GainFormat
    bound: AdviceBoundFormat
    scenarios: int
    policies: list[PolicyYieldFormat]
    applications: list[AdvisedJobFormat]
    reasons: list[str]
    assumptions: list[str]
    placement: NotRequired[TargetAdviceFormat]


def advice_document(
    recommendation: Recommendation,
    owners: Mapping[str, Sequence[str]],
    assumptions: Sequence[str],
    provenance: Mapping[str, Any],
) -> AdviceFormat:
    """Return the document that ``penstock advise --json`` writes."""
    now, advised = recommendation.present, _advised(recommendation)
    return {
        "penstock": FORMAT,
        "provenance": dict(provenance),
        "verdict": recommendation.verdict,
        "policy": recommendation.policy,
        "summary": verdict_sentence(recommendation),
        "now": _outcome(now),
        "advised": {**_outcome(advised), "interval": list(advised.interval())},
        "gain": {
            "policy": recommendation.candidate.policy,
            "min_yield": recommendation.gain,
            "interval": list(recommendation.gain_interval),
        },
        "bound": {"min_yield": recommendation.bound},
        "scenarios": recommendation.scenarios,
        "policies": [_outcome(outcome) for outcome in recommendation.outcomes],
        "applications": [
            {
                "name": name,
                "yield_now": reached,
                "yield_advised": advised.yields[name],
                "advice": list(owners.get(name, ())),
            }
            for name, reached in now.yields.items()
        ],
        "reasons": reasons(recommendation),
        "assumptions": list(assumptions),
    }


def _advised(recommendation: Recommendation) -> PolicyOutcome:
    """Return the outcome of the policy to use, which may be the present one."""
    is_candidate = recommendation.policy == recommendation.candidate.policy
    return recommendation.candidate if is_candidate else recommendation.present


def _outcome(outcome: PolicyOutcome) -> PolicyYieldFormat:
    return {
        "policy": outcome.policy,
        "min_yield": outcome.min_yield,
        "efficiency": outcome.efficiency,
    }


def roles_of_policies(advice: Mapping[str, Any]) -> dict[str, str]:
    """Return policy -> "now", "advised" or "candidate", as tables of advice show it.

    The candidate is the policy that a change would choose (`Recommendation.candidate`).
    """
    roles = {advice["gain"]["policy"]: "candidate", advice["now"]["policy"]: "now"}
    if advice["verdict"] == "change":
        roles[advice["policy"]] = "advised"
    return roles
