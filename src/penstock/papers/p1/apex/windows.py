# SPDX-License-Identifier: MIT
"""Windows of the APEX workloads: the measures and checks that several figures share.

W is the I/O pressure of a window. A *ratio* is the MinYield of a policy over that of
fair-share in the same window; a ratio within 0.001 of 1 counts as neither lower nor
higher. Where the paper says "few", "similar" or "high", the sentence of the claim gives
the number that its check uses. A check without any window to look at does not hold: its
numbers are not a number (NaN).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import spearmanr

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import over_base
from penstock.papers.p1.policies import ALL_POLICIES, FAIR_SHARE, GREEDY_COM, SECOND_SET

__all__ = [
    "ANY",
    "BANDS",
    "BEYOND",
    "HIGH",
    "LOW",
    "NEAR_ONE",
    "NERSC",
    "REASON_IDLE_JOBS",
    "REASON_IDLE_JOBS_TOO",
    "REASON_LARGER_NODES",
    "REASON_LEARNT_PERIODS",
    "REASON_RARE_WAKE_UPS",
    "REASON_SILVERTON",
    "SAME",
    "SYNTHESIS",
    "TRACES",
    "TRILAB",
    "UNSATURATED",
    "Band",
    "Numbers",
    "all_pass",
    "correlation",
    "fair_values",
    "fcfs_as_set10",
    "flat",
    "gain_grows",
    "greedy_com_highest",
    "highest_of",
    "losses_of",
    "lowest_of",
    "mean_or_nan",
    "means_of",
    "ratio_by_band",
    "ratios_of",
    "rising",
    "risk_of",
    "second_set_risky",
    "share_above",
    "share_below",
    "trilab_higher",
    "windows_of",
    "with_ratio",
]

_Values: TypeAlias = NDArray[np.float64]
_Tests: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = dict[str, float]
Band: TypeAlias = tuple[float, float]
"""An interval of W: from the first number on, below the second."""

NERSC: Final = "NERSC"
TRILAB: Final = "TRILAB"
TRACES: Final = (NERSC, TRILAB)

ANY: Final = (0.0, math.inf)
LOW: Final = (0.0, 0.5)
HIGH: Final = (1.0, math.inf)
BANDS: Final = {"W<0.5": LOW, "0.5<=W<1": (0.5, 1.0), "W>=1": HIGH}
UNSATURATED: Final = (0.0, 1.0)
NEAR_ONE: Final = (0.75, 1.0)
BEYOND: Final = (1.25, math.inf)
#: A ratio this close to 1 is neither lower nor higher than 1.
SAME: Final = 1e-3

#: The source of a claim that the synthesis makes.
SYNTHESIS: Final = "bandwidth sharing, section 6.3.8"

# Reasons why claims do not hold, measured on 1 to 5 schedules per machine (220 to 1,100
# windows per workload).
REASON_SILVERTON: Final = (
    "Two thirds of our TRILAB windows hold a Silverton job, whose checkpoint takes, "
    "running alone, from 0.2 (Celio) to 1 (M_10) of its period and blocks all others. "
)
REASON_IDLE_JOBS: Final = (
    "The claim holds if jobs without I/O in the window (60 % of the NERSC jobs, no "
    "TRILAB job) are left out, as in the authors' program."
)
REASON_IDLE_JOBS_TOO: Final = (
    "The claim holds without these windows if jobs without I/O in a window (60 % of "
    "the NERSC jobs) are left out as well, as in the authors' program."
)
REASON_LARGER_NODES: Final = (
    "The windows of M_10 that the authors published (apex/windows.csv) hold about five "
    "times as many jobs as ours (TRILAB: 110, ours 23): there the cores of a node grow "
    "too, about 5^(t/10) times, which the paper does not say. "
)
REASON_LEARNT_PERIODS: Final = (
    "If the periods are given, both policies decide the same. If they are learnt, they "
    "differ: a window begins in the middle of a period, so the first iteration is "
    "short. For up to eight periods the mean period stays under 3,162 s, the lower "
    "limit of the set for periods of 1 h."
)
REASON_RARE_WAKE_UPS: Final = (
    "periodic-greedy-yield loses, mostly under 1 %, where W is low: few operations "
    "mean few wake-ups (eq. 5). With 2,000 wake-ups in a window it never loses. "
)


# --- Windows and ratios ---------------------------------------------------------------


def windows_of(
    rows: pl.DataFrame, trace: str, policy: str, band: Band = ANY
) -> pl.DataFrame:
    """Return the rows of a policy in the windows of a trace with W in a band."""
    low, high = band
    return rows.filter(
        (pl.col("trace") == trace)
        & (pl.col("policy") == policy)
        & (pl.col("pressure") >= low)
        & (pl.col("pressure") < high)
    )


def fair_values(tables: Tables, trace: str, column: str, band: Band = ANY) -> _Values:
    """Return a column of the windows of a trace under fair-share."""
    values = windows_of(tables.rows, trace, FAIR_SHARE, band)[column]
    return values.to_numpy().astype(np.float64)


def with_ratio(tables: Tables, trace: str, policy: str) -> pl.DataFrame:
    """Return the windows of a trace under a policy, with a column `ratio`."""
    rows = tables.rows.filter(pl.col("policy").is_in([policy, FAIR_SHARE]))
    return windows_of(over_base(rows, "min_yield", FAIR_SHARE), trace, policy)


def ratios_of(tables: Tables, trace: str, policy: str, band: Band = ANY) -> _Values:
    """Return the ratios of a policy in the windows of a trace."""
    rows = with_ratio(tables, trace, policy)
    return windows_of(rows, trace, policy, band)["ratio"].to_numpy()


# --- Statistics -----------------------------------------------------------------------


def mean_or_nan(values: _Values | _Tests) -> float:
    """Return the mean, or NaN without values."""
    return float(values.mean()) if values.size else math.nan


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


def means_of(tables: Tables, trace: str, metric: str, band: Band = ANY) -> Numbers:
    """Return the mean of a metric for every policy."""
    return {
        policy: mean_or_nan(
            windows_of(tables.rows, trace, policy, band)[metric].to_numpy()
        )
        for policy in ALL_POLICIES
    }


def losses_of(
    tables: Tables, trace: str, metric: str, before: Band, after: Band
) -> Numbers:
    """Return by how much a metric falls from one band to another, for every policy."""
    first = means_of(tables, trace, metric, before)
    last = means_of(tables, trace, metric, after)
    return {policy: first[policy] - last[policy] for policy in ALL_POLICIES}


def ratio_by_band(
    tables: Tables, trace: str, policies: Iterable[str]
) -> dict[str, Numbers]:
    """Return the mean ratio in the three bands of W, for every policy named."""
    return {
        policy: {
            name: mean_or_nan(ratios_of(tables, trace, policy, band))
            for name, band in BANDS.items()
        }
        for policy in policies
    }


def correlation(one: _Values, other: _Values) -> float:
    """Return the rank correlation, or NaN if one of the two is constant."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(spearmanr(one, other).statistic)


def rising(values: Iterable[float]) -> bool:
    """Return True if every value is higher than the one before it."""
    return all(a < b for a, b in itertools.pairwise(values))


def flat(nested: Mapping[str, Mapping[str, float]]) -> Numbers:
    """Return nested numbers as one table, named by both keys."""
    return {f"{a} {b}": v for a, inner in nested.items() for b, v in inner.items()}


# --- Verdicts -------------------------------------------------------------------------


def all_pass(numbers: Mapping[str, float], test: Callable[[float], bool]) -> Verdict:
    """Return the verdict that holds if every number passes the test."""
    return Verdict(all(test(v) for v in numbers.values()), dict(numbers))


def gain_grows(tables: Tables, trace: str, policies: Iterable[str]) -> Verdict:
    """Check that the mean ratio of every policy rises from band to band."""
    means = ratio_by_band(tables, trace, policies)
    return Verdict(all(rising(m.values()) for m in means.values()), flat(means))


def second_set_risky(tables: Tables, trace: str, band: Band) -> Verdict:
    """Check that every policy of the second set is lower in 5 % of the windows."""
    shares = {p: share_below(ratios_of(tables, trace, p, band)) for p in SECOND_SET}
    return all_pass(shares, lambda share: share >= 0.05)


def fcfs_as_set10(tables: Tables, trace: str, tolerance: float) -> Verdict:
    """Check that fcfs and set-10 have the same MinYield in every window."""
    key = ["point", "instance"]
    fcfs, set10 = (
        windows_of(tables.rows, trace, policy).sort(key)["min_yield"].to_numpy()
        for policy in ("fcfs", "set-10")
    )
    gap = np.abs(fcfs - set10)
    numbers = {
        "largest difference": highest_of(gap),
        "mean difference": mean_or_nan(gap),
        "share of windows that differ": mean_or_nan(gap > tolerance),
    }
    return Verdict(numbers["largest difference"] <= tolerance, numbers)


def trilab_higher(tables: Tables, metric: str, band: Band) -> Verdict:
    """Check that every policy has a higher mean on TRILAB than on NERSC."""
    nersc = means_of(tables, NERSC, metric, band)
    trilab = means_of(tables, TRILAB, metric, band)
    return all_pass(
        {p: trilab[p] - nersc[p] for p in ALL_POLICIES}, lambda gap: gap > 0
    )


def greedy_com_highest(
    tables: Tables, metric: str, traces: Iterable[str], band: Band
) -> Verdict:
    """Check that greedy-com has the highest mean of all policies on every trace."""
    gaps: Numbers = {}
    for trace in traces:
        means = means_of(tables, trace, metric, band)
        mean = means.pop(GREEDY_COM)
        gaps |= {f"{trace} over {p}": mean - v for p, v in means.items()}
    return all_pass(gaps, lambda gap: gap > 0)
