# SPDX-License-Identifier: MIT
"""Statistics of the windows of the APEX workloads.

A ratio (MinYield over that of fair-share) within 0.001 of 1 counts as neither lower nor
higher. A statistic without any window is not a number (NaN), and no check holds on it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from penstock.experiments.claims import Tables
from penstock.papers.p1.apex.bands import BANDS, EVERY_WINDOW, SAME, Band
from penstock.papers.p1.apex.windows import column, numbers_of, windows_of
from penstock.papers.p1.policies import ALL_POLICIES

__all__ = [
    "Numbers",
    "Table",
    "correlation",
    "highest_of",
    "losses_of",
    "lowest_of",
    "mean_or_nan",
    "means_of",
    "median_or_nan",
    "ratio_by_band",
    "rising",
    "risk_of",
    "share_above",
    "share_below",
]

_Values: TypeAlias = NDArray[np.float64]
_Tests: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = dict[str, float]
Table: TypeAlias = dict[str, dict[str, float]]


def mean_or_nan(values: _Values | _Tests) -> float:
    """Return the mean, or NaN without values."""
    return float(values.mean()) if values.size else math.nan


def median_or_nan(values: _Values) -> float:
    """Return the median, or NaN without values."""
    return float(np.median(values)) if values.size else math.nan


def lowest_of(values: _Values) -> float:
    """Return the lowest value, or NaN without values."""
    return float(values.min()) if values.size else math.nan


def highest_of(values: _Values) -> float:
    """Return the highest value, or NaN without values."""
    return float(values.max()) if values.size else math.nan


def share_below(ratios: _Values) -> float:
    """Return the share of windows with a lower MinYield than under fair-share."""
    return mean_or_nan(ratios < 1 - SAME)


def share_above(ratios: _Values) -> float:
    """Return the share of windows with a higher MinYield than under fair-share."""
    return mean_or_nan(ratios > 1 + SAME)


def risk_of(ratios: _Values) -> Numbers:
    """Return how often and by how much at most a policy is lower than fair-share."""
    return {"share lower": share_below(ratios), "lowest ratio": lowest_of(ratios)}


def means_of(
    tables: Tables,
    trace: str,
    metric: str,
    band: Band = EVERY_WINDOW,
    policies: Iterable[str] = ALL_POLICIES,
) -> Numbers:
    """Return the mean of a metric for every policy."""
    rows = windows_of(tables, trace, band)
    return {p: mean_or_nan(numbers_of(rows, column(metric, p))) for p in policies}


def losses_of(
    tables: Tables, trace: str, metric: str, before: Band, after: Band
) -> Numbers:
    """Return by how much a metric falls from one band to another, for every policy."""
    first = means_of(tables, trace, metric, before)
    last = means_of(tables, trace, metric, after)
    return {policy: first[policy] - last[policy] for policy in ALL_POLICIES}


def ratio_by_band(tables: Tables, trace: str, policies: Iterable[str]) -> Table:
    """Return the mean ratio in the three bands of W, for every policy named."""
    names = tuple(policies)
    means = {
        name: means_of(tables, trace, "ratio", band, names)
        for name, band in BANDS.items()
    }
    return {policy: {name: means[name][policy] for name in BANDS} for policy in names}


def correlation(one: _Values, other: _Values) -> float:
    """Return the rank correlation, or NaN if one of the two is constant."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(spearmanr(one, other).statistic)


def rising(values: Iterable[float]) -> bool:
    """Return True if every value is higher than the one before it."""
    return all(a < b for a, b in itertools.pairwise(values))
