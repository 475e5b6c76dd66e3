# SPDX-License-Identifier: MIT
"""Words: the answer comes first, and numbers in it are those of the recommendation."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.advice.recommendation import Answer, PolicyOutcome, Recommendation
from penstock.advice.sentences import reasons, verdict_sentence


def _outcome(policy: str, min_yields: list[float], **yields: float) -> PolicyOutcome:
    columns = np.array(min_yields)
    return PolicyOutcome(policy, columns, columns, yields or {"x": 0.9})


def _recommendation(
    verdict: Answer,
    present: PolicyOutcome,
    candidate: PolicyOutcome,
    *,
    bound: float = 0.9,
    operations: int = 40,
) -> Recommendation:
    outcomes = (candidate, present)
    return Recommendation(
        verdict,
        present,
        candidate,
        outcomes,
        bound,
        len(present.min_yields),
        operations,
    )


NOW = _outcome("fair-share", [0.70, 0.70], x=0.8, y=0.7)
BETTER = _outcome("soft-deadline", [0.76, 0.76], x=0.75, y=0.76)


def test_a_change_names_both_policies_and_the_gain() -> None:
    said = verdict_sentence(_recommendation(Answer.CHANGE, NOW, BETTER))
    assert said == (
        "Switch from fair-share to soft-deadline: the yield of the worst job rises by "
        "6.0 points (6.0 to 6.0 in nine of ten scenarios)."
    )


def test_a_change_names_the_job_that_loses_most() -> None:
    said = " ".join(reasons(_recommendation(Answer.CHANGE, NOW, BETTER)))
    assert "x loses most: 5.0 points of yield." in said
    assert "No policy can gain more than 20.0 points at this load." in said


def test_a_change_that_costs_nobody_anything_says_so() -> None:
    better = _outcome("soft-deadline", [0.76, 0.76], x=0.8, y=0.76)
    said = " ".join(reasons(_recommendation(Answer.CHANGE, NOW, better)))
    assert "No job loses more than 1 point of yield." in said


@pytest.mark.parametrize(
    ("present", "candidate", "expected"),
    [
        (_outcome("fcfs", [0.995]), None, "No job loses more than 1 %"),
        (_outcome("fcfs", [0.7]), None, "No other policy gives the worst job"),
        (
            _outcome("fcfs", [0.7]),
            _outcome("set-10", [0.705]),
            "set-10 raises the yield of the worst job by only 0.5 points",
        ),
    ],
)
def test_reasons_to_keep(
    present: PolicyOutcome, candidate: PolicyOutcome | None, expected: str
) -> None:
    kept = _recommendation(Answer.KEEP, present, candidate or present)
    assert verdict_sentence(kept) == "Keep fcfs."
    assert expected in " ".join(reasons(kept))


def test_thin_evidence_says_what_is_missing() -> None:
    few = _recommendation(Answer.THIN_EVIDENCE, NOW, BETTER, operations=2)
    assert "only 2 operations" in " ".join(reasons(few))
    unsure = _recommendation(
        Answer.THIN_EVIDENCE, NOW, _outcome("set-10", [0.9, 0.6], x=0.8, y=0.8)
    )
    said = " ".join(reasons(unsure))
    assert "does not raise it in 50% of them" in said
    assert verdict_sentence(unsure).startswith("The evidence is too thin")


def test_a_bound_that_is_reached_leaves_no_room() -> None:
    kept = _recommendation(Answer.KEEP, NOW, NOW, bound=0.7)
    assert "No policy can gain more than 1 point" in reasons(kept)[-1]


def test_one_operation_is_not_many() -> None:
    thin = _recommendation(Answer.THIN_EVIDENCE, NOW, BETTER, operations=1)
    assert "only 1 operation;" in reasons(thin)[0]
