# SPDX-License-Identifier: MIT
"""What the recommended default has to reach, as checks.

Means are over the instances of a point, differences are paired by instance, and
*significant* means that the whole 95 % interval is above 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.papers.beyond.frontier_tables import (
    LOOK,
    PointTable,
    points_of,
    windows_under_base,
)
from penstock.papers.p1.policies import EIGHT
from penstock.policies import RECOMMENDED

__all__ = ["DOMINATION", "GAINS", "UTILIZATION", "WINDOWS"]

_SOURCE: Final = "beyond the papers: docs/background/beyond.md"
_PAPERS: Final = ("pressure", "io-sets", "NERSC", "TRILAB")
_OTHERS: Final = ("parameters", "caps", "history")
_GAP: Final = 0.25


def _chosen(tables: Tables, groups: Iterable[str]) -> list[PointTable]:
    wanted = set(groups)
    return [point for point in points_of(tables.rows) if point.group in wanted]


def _at_least(groups: tuple[str, ...]) -> Check:
    """Check that both gains are at least 0 in the mean; name those that are not."""

    def check(tables: Tables) -> Verdict:
        points = _chosen(tables, groups)
        misses: dict[str, float] = {}
        for point in points:
            found = {
                "MinYield": point.gain(RECOMMENDED).mean,
                "Efficiency": point.efficiency_gain(RECOMMENDED).mean,
            }
            worse = {k: gain for k, gain in found.items() if gain < 0.0}
            misses |= {f"{point.label} {name}": gain for name, gain in worse.items()}
        missed = len({label.rpartition(" ")[0] for label in misses})
        numbers = {"points": len(points), "points missed": missed}
        return Verdict(not misses, numbers | misses)

    return check


def _strictly_on_half(tables: Tables) -> Verdict:
    points = _chosen(tables, _PAPERS)
    gains = [(p.gain(RECOMMENDED), p.efficiency_gain(RECOMMENDED)) for p in points]
    in_mean = sum(all(g.mean > 0.0 for g in pair) for pair in gains)
    significant = sum(all(g.above_zero for g in pair) for pair in gains)
    numbers: dict[str, float] = {
        "points": len(points),
        "better in both, in the mean": in_mean,
        "better in both, significantly": significant,
    }
    return Verdict(2 * significant >= len(points), numbers)


def _utilization(tables: Tables) -> Verdict:
    points = _chosen(tables, _PAPERS)
    gains = {p.label: p.difference(RECOMMENDED, LOOK, "utilization") for p in points}
    misses = {label: gain.mean for label, gain in gains.items() if gain.mean < 0.0}
    return Verdict(not misses, {"points": len(points), **misses})


def _closes_a_quarter(tables: Tables) -> Verdict:
    closed = {
        point.label: point.gap_closed(RECOMMENDED)
        for point in _chosen(tables, ["pressure"])
        if point.label in ("W=0.8", "W=1")
    }
    return Verdict(min(closed.values()) >= _GAP, closed)


def _never_dominated(tables: Tables) -> Verdict:
    points = points_of(tables.rows)
    beaten = {
        f"{policy} at {point.label}": point.difference(policy, RECOMMENDED, "min_yield")
        for point in points
        for policy in EIGHT
        if point.dominates(policy, RECOMMENDED)
    }
    numbers = {name: gain.mean for name, gain in beaten.items()}
    return Verdict(not beaten, {"points": len(points), **numbers})


def _never_far_under_fair_share(tables: Tables) -> Verdict:
    numbers: dict[str, float] = {}
    for row in windows_under_base(tables.rows).iter_rows(named=True):
        if row["policy"] == RECOMMENDED:
            group = row["group"]
            numbers |= {
                f"{group} windows": row["windows"],
                f"{group} under": row["under"],
                f"{group} lowest ratio": row["lowest"],
            }
    return Verdict(not any(v for k, v in numbers.items() if "under" in k), numbers)


GAINS: Final = (
    Claim(
        "default-ahead",
        _SOURCE,
        f"{RECOMMENDED} has at least the MinYield of the best of the eight and the "
        "Efficiency of look-ahead-greedy-yield, in the mean, at every pressure of the "
        "synthetic workload, on IO-SETS and on both APEX workloads.",
        _at_least(_PAPERS),
        "Above saturation it keeps MinYield and gives up Efficiency "
        "(docs/background/beyond.md).",
    ),
    Claim(
        "default-strictly-ahead",
        _SOURCE,
        "It is significantly better than these in both on at least half of the points.",
        _strictly_on_half,
        "On NERSC windows most applications have one operation, and many policies do "
        "the same.",
    ),
    Claim(
        "default-ahead-elsewhere",
        _SOURCE,
        "The same with other n_small, sigma and noise, with unequal caps and with "
        "history.",
        _at_least(_OTHERS),
    ),
    Claim(
        "default-closes-a-quarter",
        _SOURCE,
        "It closes at least a quarter of the gap in MinYield between the best of the "
        "eight and the bound at W = 0.8 and W = 1.",
        _closes_a_quarter,
        "The bound knows the future and is not reached: see the limits in "
        "docs/background/beyond.md.",
    ),
)

DOMINATION: Final = (
    Claim(
        "default-not-dominated",
        _SOURCE,
        f"None of the eight dominates {RECOMMENDED} at any point.",
        _never_dominated,
    ),
)

WINDOWS: Final = (
    Claim(
        "default-not-under-fair-share",
        _SOURCE,
        f"On no APEX window is the MinYield of {RECOMMENDED} more than 1 % under that "
        "of fair-share.",
        _never_far_under_fair_share,
    ),
)

UTILIZATION: Final = (
    Claim(
        "default-utilization",
        _SOURCE,
        f"{RECOMMENDED} has at least the Utilization of look-ahead-greedy-yield, in "
        "the mean, at every pressure of the synthetic workload, on IO-SETS and on both "
        "APEX workloads.",
        _utilization,
        "Where its Efficiency is lower, so is its Utilization.",
    ),
)
