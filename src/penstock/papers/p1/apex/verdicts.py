# SPDX-License-Identifier: MIT
"""Checks on APEX windows that the claims of several figures share.

A check without any window to look at does not hold: its numbers are not a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from penstock.experiments.claims import ClaimCase, Tables, Verdict, case, over
from penstock.papers.p1.apex.bands import (
    CONCLUSION,
    EVERY_WINDOW,
    NERSC,
    TENTHS,
    TRACES,
    TRILAB,
    Band,
)
from penstock.papers.p1.apex.measures import (
    Table,
    highest_of,
    mean_or_nan,
    means_of,
    ratio_by_band,
    rising,
    share_below,
)
from penstock.papers.p1.apex.windows import column, numbers_of, ratios_of, windows_of
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    FAIR_SHARE,
    GREEDY_COM,
    LOOK_AHEAD,
    PERIODIC,
    SECOND_SET,
)

__all__ = [
    "against_fair_share",
    "all_cells_pass",
    "all_pass",
    "by_weights",
    "conclusion_cases",
    "fcfs_as_set10",
    "gain_grows",
    "greedy_com_highest",
    "second_set_risky",
    "trilab_higher",
]

#: The smallest difference of two MinYields that a published figure shows.
_RESOLUTION: Final = 0.005
#: "Comparable": the largest difference of two means.
_COMPARABLE: Final = (-0.02, 0.02)
_LOWER: Final = (-1.0, 0.0)


def all_pass(numbers: Mapping[str, float], test: Callable[[float], bool]) -> Verdict:
    """Return the verdict that holds if every number passes the test."""
    return Verdict(all(test(v) for v in numbers.values()), dict(numbers))


def all_cells_pass(table: Table, test: Callable[[float], bool]) -> Verdict:
    """Return the verdict that holds if every number of a table passes the test."""
    cells = [value for row in table.values() for value in row.values()]
    return Verdict(all(test(value) for value in cells), table)


def by_weights(columns: Mapping[str, str], check: Callable[[str], Verdict]) -> Verdict:
    """Check a claim with the weights of the text and with those of the figure.

    Where only one of the two holds, the claim depends on the weights.
    """
    return over("weights", {name: check(metric) for name, metric in columns.items()})


def gain_grows(tables: Tables, trace: str, policies: Iterable[str]) -> Verdict:
    """Check that the mean ratio of every policy rises from band to band."""
    means = ratio_by_band(tables, trace, policies)
    return Verdict(all(rising(m.values()) for m in means.values()), means)


def second_set_risky(tables: Tables, trace: str, band: Band) -> Verdict:
    """Check that every policy of the second set is lower in 5 % of the windows."""
    shares = {p: share_below(ratios_of(tables, trace, p, band)) for p in SECOND_SET}
    return all_pass(shares, lambda share: share >= 0.05)


def fcfs_as_set10(tables: Tables, trace: str) -> Verdict:
    """Check that fcfs and set-10 have the same MinYield in every window.

    Differences below what the figure can show, 0.005, are allowed.
    """
    rows = windows_of(tables, trace)
    fcfs, set10 = (numbers_of(rows, column("min_yield", p)) for p in ("fcfs", "set-10"))
    gap = np.abs(fcfs - set10)
    numbers = {
        "largest difference": highest_of(gap),
        "share of windows that differ": mean_or_nan(gap > 1e-9),
        f"by more than {_RESOLUTION:g}": mean_or_nan(gap > _RESOLUTION),
    }
    return Verdict(numbers["largest difference"] <= _RESOLUTION, numbers)


def trilab_higher(tables: Tables, columns: Mapping[str, str], band: Band) -> Verdict:
    """Check that every policy has a higher mean on TRILAB than on NERSC.

    `columns` are the weights and the columns of one objective (`by_weights`). Means are
    compared at equal W: W is cut into tenths, and each tenth in which both traces have
    windows counts the same. (NERSC has most of its windows at low W.)
    """
    return by_weights(columns, lambda metric: _trilab_higher(tables, metric, band))


def _trilab_higher(tables: Tables, metric: str, band: Band) -> Verdict:
    low, high = band
    tenths = [t for t in TENTHS if low <= t[0] < high]
    cells = {
        trace: [means_of(tables, trace, metric, tenth) for tenth in tenths]
        for trace in TRACES
    }
    both = [
        number
        for number in range(len(tenths))
        if not any(math.isnan(cells[t][number][FAIR_SHARE]) for t in TRACES)
    ]
    means = {
        trace: {
            p: mean_or_nan(np.array([cells[trace][n][p] for n in both]))
            for p in ALL_POLICIES
        }
        for trace in TRACES
    }
    higher = [means[TRILAB][p] > means[NERSC][p] for p in ALL_POLICIES]
    return Verdict(all(higher), means)


def against_fair_share(
    tables: Tables, columns: Mapping[str, str], policy: str, on_trilab: Band
) -> Verdict:
    """Check that a policy has a higher mean than fair-share on NERSC.

    On TRILAB its mean minus that of fair-share must be in the interval `on_trilab`.
    """
    low, high = on_trilab

    def check(metric: str) -> Verdict:
        means = {
            trace: means_of(tables, trace, metric, EVERY_WINDOW, (policy, FAIR_SHARE))
            for trace in TRACES
        }
        gains = {trace: row[policy] - row[FAIR_SHARE] for trace, row in means.items()}
        return Verdict(gains[NERSC] > 0 and low <= gains[TRILAB] <= high, means)

    return by_weights(columns, check)


def conclusion_cases(objective: str, columns: Mapping[str, str]) -> list[ClaimCase]:
    """Return what the conclusion says of two policies, for `against_fair_share`."""
    name = objective.lower()
    return [
        case(
            f"look-ahead-{name}",
            f"look-ahead-greedy-yield has a higher mean {objective} than fair-share on "
            "NERSC and a comparable one (within 0.02) on TRILAB.",
            source=CONCLUSION,
            columns=columns,
            policy=LOOK_AHEAD,
            on_trilab=_COMPARABLE,
        ),
        case(
            f"periodic-{name}",
            f"periodic-greedy-yield has a higher mean {objective} than fair-share on "
            "NERSC and a lower one on TRILAB.",
            source=CONCLUSION,
            columns=columns,
            policy=PERIODIC,
            on_trilab=_LOWER,
        ),
    ]


def greedy_com_highest(
    tables: Tables, columns: Mapping[str, str], traces: Iterable[str], band: Band
) -> Verdict:
    """Check that greedy-com has the highest mean of all policies on every trace."""

    def check(metric: str) -> Verdict:
        means = {trace: means_of(tables, trace, metric, band) for trace in traces}
        others = tuple(p for p in ALL_POLICIES if p != GREEDY_COM)
        highest = [row[GREEDY_COM] > row[p] for row in means.values() for p in others]
        return Verdict(all(highest), means)

    return by_weights(columns, check)
