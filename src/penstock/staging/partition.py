# SPDX-License-Identifier: MIT
"""Cutting the storage targets into parts, one for each application (papers/4 III-B)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.errors import InputError
from penstock.registry import Parameter
from penstock.staging.situation import Situation

__all__ = ["BY_PARAMETER", "halved", "parts", "proportional", "weights"]

_BY: Final = ("data", "processes")
BY_PARAMETER: Final = Parameter(
    "by", "what the parts are proportional to", "data", choices=_BY
)


def weights(situation: Situation, sharers: Sequence[int], by: str) -> list[float]:
    """Return the data or the processes of those who share; all 1 if none is known."""
    standings = [situation.applications[i] for i in sharers]
    if by == "processes":
        return [float(a.processes) for a in standings]
    data = [a.volume for a in standings]
    return data if sum(data) > 0 else [1.0] * len(data)


def proportional(shares: Sequence[float], targets: int) -> list[int]:
    """Return how many targets each gets: n_i near N w_i / sum w, at least 1, all of N.

    One by one to whoever is furthest below its quota (ties: the first).
    """
    _check_enough(len(shares), targets)
    total = sum(shares)
    quotas = [targets * share / total for share in shares]
    counts = [1] * len(shares)
    for _ in range(targets - len(shares)):
        counts[max(range(len(counts)), key=lambda i: quotas[i] - counts[i])] += 1
    return counts


def halved(sharers: int, targets: int) -> list[int]:
    """Return how many targets each gets if every arrival takes half of the last's.

    N/2, N/4, ..., as in papers/4 Figure 14.
    """
    _check_enough(sharers, targets)
    counts = [targets]
    for _ in range(sharers - 1):
        if counts[-1] < 2:
            raise InputError(
                f"{targets} targets cannot be halved for {sharers} applications",
                remedy="use split=proportional",
            )
        counts[-1:] = [counts[-1] - counts[-1] // 2, counts[-1] // 2]
    return counts


def parts(counts: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the targets themselves, from 0 on in a row."""
    ends = [sum(counts[: number + 1]) for number in range(len(counts))]
    return [tuple(range(end - n, end)) for n, end in zip(counts, ends, strict=True)]


def _check_enough(sharers: int, targets: int) -> None:
    if sharers > targets:
        raise InputError(
            f"{sharers} applications cannot have storage targets of their own: there "
            f"are {targets}",
            remedy="use the strategy combined, which stages when targets run out",
        )
