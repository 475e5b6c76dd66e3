# SPDX-License-Identifier: MIT
"""Advice as a JSON document; `docs/reference/formats.md` describes every key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.advice.recommendation import PolicyOutcome, Recommendation
from penstock.advice.sentences import reasons, verdict_sentence
from penstock.model import FORMAT

__all__ = ["advice_document"]


def advice_document(
    recommendation: Recommendation,
    owners: Mapping[str, Sequence[str]],
    assumptions: Sequence[str],
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the document that ``penstock advise --json`` writes."""
    now, advised = recommendation.present, _advised(recommendation)
    return {
        "penstock": FORMAT,
        "provenance": dict(provenance),
        "verdict": str(recommendation.verdict),
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


def _outcome(outcome: PolicyOutcome) -> dict[str, Any]:
    return {
        "policy": outcome.policy,
        "min_yield": outcome.min_yield,
        "efficiency": outcome.efficiency,
    }
