# SPDX-License-Identifier: MIT
"""A recommendation in words: first what to do, then why."""

from __future__ import annotations

from penstock.advice.recommendation import (
    FEWEST_OPERATIONS,
    WORTHWHILE,
    Answer,
    Recommendation,
)
from penstock.units import counted

__all__ = ["reasons", "verdict_sentence"]


def verdict_sentence(recommendation: Recommendation) -> str:
    """Return the answer in one sentence."""
    present = recommendation.present.policy
    candidate = recommendation.candidate.policy
    if recommendation.verdict is Answer.CHANGE:
        return (
            f"Switch from {present} to {candidate}: the yield of the worst job rises "
            f"by {_points_interval(recommendation)}."
        )
    if recommendation.verdict is Answer.KEEP:
        return f"Keep {present}."
    return f"The evidence is too thin to leave {present}."


def reasons(recommendation: Recommendation) -> list[str]:
    """Return the sentences that support the answer."""
    why = {
        Answer.CHANGE: _why_change,
        Answer.KEEP: _why_keep,
        Answer.THIN_EVIDENCE: _why_thin,
    }[recommendation.verdict](recommendation)
    return [*why, _room(recommendation)]


def _why_change(recommendation: Recommendation) -> list[str]:
    name, loss = recommendation.largest_loss
    efficiency = recommendation.candidate.efficiency - recommendation.present.efficiency
    lines = [
        f"The yield of the worst job is {recommendation.present.min_yield:.3f} now and "
        f"{recommendation.candidate.min_yield:.3f} then, on the mean of "
        f"{recommendation.scenarios} scenarios."
    ]
    if loss < WORTHWHILE:
        lines.append("No job loses more than 1 point of yield.")
    else:
        lines.append(f"{name} loses most: {_points(loss)} of yield.")
    if abs(efficiency) >= WORTHWHILE:
        change = "rises" if efficiency > 0 else "falls"
        lines.append(
            f"The efficiency of the machine {change} by {_points(efficiency)}."
        )
    return lines


def _why_keep(recommendation: Recommendation) -> list[str]:
    present = recommendation.present
    if present.min_yield > 1.0 - WORTHWHILE:
        return [
            f"No job loses more than 1 % of its time to others: the yield of the worst "
            f"job is {present.min_yield:.3f}."
        ]
    if recommendation.candidate is present:
        return [
            f"No other policy gives the worst job a better yield than "
            f"{present.min_yield:.3f}."
        ]
    return [
        f"{recommendation.candidate.policy} raises the yield of the worst job by only "
        f"{_points_interval(recommendation)}, from {present.min_yield:.3f}. A change "
        "should gain at least 1 point."
    ]


def _why_thin(recommendation: Recommendation) -> list[str]:
    if recommendation.operations < FEWEST_OPERATIONS:
        return [
            f"The evidence has only {counted(recommendation.operations, 'operation')}; "
            f"at least {FEWEST_OPERATIONS} are needed. Give more logs or instances."
        ]
    return [
        f"{recommendation.candidate.policy} raises the yield of the worst job by "
        f"{_points(recommendation.gain)} on the mean of {recommendation.scenarios} "
        f"scenarios, but does not raise it in {recommendation.part_without_gain:.0%} "
        f"of them ({_interval(recommendation)}).",
        "Give more logs, or logs with more detail, so that the scenarios differ less.",
    ]


def _room(recommendation: Recommendation) -> str:
    """Return what is possible at most: the bound."""
    room = recommendation.bound - recommendation.present.min_yield
    if room < WORTHWHILE:
        return "No policy can gain more than 1 point."
    return f"No policy can gain more than {_points(room)} at this load."


def _points_interval(recommendation: Recommendation) -> str:
    return f"{_points(recommendation.gain)} ({_interval(recommendation)})"


def _interval(recommendation: Recommendation) -> str:
    low, high = recommendation.gain_interval
    return f"{100 * low:.1f} to {100 * high:.1f} in nine of ten scenarios"


def _points(difference: float) -> str:
    return f"{abs(100 * difference):.1f} points"
