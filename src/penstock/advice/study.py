# SPDX-License-Identifier: MIT
"""The steps of ``penstock advise``: from evidence to the document of the advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from penstock.advice.documents import advice_document
from penstock.advice.evidence import Evidence, PresentPolicy
from penstock.advice.owners import advice_for_owners
from penstock.advice.recommendation import recommend
from penstock.advice.scenarios import draw_scenarios
from penstock.advice.targets import advise_targets
from penstock.policies import get_policy

__all__ = ["advise_on"]


def advise_on(
    evidence: Evidence,
    *,
    now: str | None,
    scenarios: int,
    uncertainty: float | None,
    targets: int | None,
    seed: int,
    facts: Mapping[str, Any],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, Any]:
    """Return the advice as a JSON document.

    Parameters
    ----------
    now
        The policy in use; None: as the evidence says.
    uncertainty
        By which part the lengths of phases are uncertain; None: as the evidence says.
    targets
        Number of storage targets, for advice about them; None: without.
    facts
        What made the document.
    """
    instance = evidence.instances[0]
    # First, because it may be refused.
    placement = None if targets is None else advise_targets(instance, targets)
    doubt = evidence.uncertainty
    if uncertainty is not None:
        doubt = replace(doubt, phases=uncertainty)
    present = PresentPolicy(now, "given") if now else evidence.present
    drawn = draw_scenarios(evidence.instances, scenarios, doubt, seed)
    recommendation = recommend(
        drawn, present.label, operations=evidence.operations, progress=progress
    )
    owners = advice_for_owners(instance, get_policy(recommendation.policy))
    assumptions = [
        *evidence.notes,
        f"The policy in use is {present.label} ({present.source}).",
        f"Phases are {doubt.phases:.0%} longer or shorter from day to day, and every "
        "job starts up to half an iteration earlier or later.",
    ]
    document = advice_document(recommendation, owners, assumptions, facts)
    if placement is not None:
        document["placement"] = placement.document()
    return {**document}
