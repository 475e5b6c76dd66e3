# SPDX-License-Identifier: MIT
"""Divide the storage targets into parts, one for each application.

A part is a run of targets with consecutive numbers. Source: burst-buffer coordination,
section III-B.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from penstock.errors import InputError
from penstock.registry import Parameter
from penstock.staging.situation import Situation

__all__ = [
    "BY_PARAMETER",
    "check_enough",
    "halved",
    "parts",
    "proportional",
    "weights",
]

_BY: Final = ("data", "processes", "nodes")
BY_PARAMETER: Final = Parameter(
    "by", "what the parts are proportional to", "data", choices=_BY
)


def weights(situation: Situation, sharers: Sequence[int], by: str) -> list[float]:
    """Return the weight of every sharer: its data (bytes), its processes or its nodes.

    A volume that is not known counts as the mean of those that are; if none is known,
    all weights are 1.
    """
    applications = [situation.applications[i] for i in sharers]
    if by == "processes":
        return [float(a.processes) for a in applications]
    if by == "nodes":
        return [float(a.nodes) for a in applications]
    known = [a.phase_bytes for a in applications if a.phase_bytes > 0]
    usual = fmean(known) if known else 1.0
    return [a.phase_bytes or usual for a in applications]


def proportional(shares: Sequence[float], targets: int) -> list[int]:
    """Return the number of targets of every sharer, for N targets and shares w.

    n_i is near N w_i / sum w and at least 1, and all targets are given away. After
    the first one each, targets go one by one to the sharer that is furthest below its
    quota N w_i / sum w (ties: the first).
    """
    check_enough(len(shares), targets)
    total = sum(shares)
    quotas = [targets * share / total for share in shares]
    counts = [1] * len(shares)
    for _ in range(targets - len(shares)):
        counts[max(range(len(counts)), key=lambda i: quotas[i] - counts[i])] += 1
    return counts


def halved(sharers: int, targets: int) -> list[int]:
    """Return the number of targets of every sharer: N/2, N/4, ..., for N targets.

    Every arrival takes half of the targets of the sharer before it (Figure 14 of
    burst-buffer coordination).
    """
    check_enough(sharers, targets)
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
    """Return the targets of every sharer: consecutive numbers from 0 on."""
    ends = [sum(counts[: number + 1]) for number in range(len(counts))]
    return [tuple(range(end - n, end)) for n, end in zip(counts, ends, strict=True)]


def check_enough(sharers: int, targets: int) -> None:
    """Raise `InputError` if not every sharer can have a target of its own."""
    if sharers > targets:
        raise InputError(
            f"{sharers} applications cannot have storage targets of their own: there "
            f"are {targets}",
            remedy="use the strategy combined, which stages when targets run out",
        )
