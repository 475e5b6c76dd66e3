# SPDX-License-Identifier: MIT
"""The windows of the APEX workloads, their ratios and what is asked of them.

What the checks of two or more figures need: names, bands of pressure, why claims
fail, means and shares over windows. The package says what W and a ratio are.
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

from penstock.experiments.claims import Check, Tables, Verdict
from penstock.experiments.output.charts import over_base

__all__ = [
    "ANY",
    "BANDS",
    "BEST",
    "BEYOND",
    "COM",
    "EIGHT",
    "FAIR",
    "HIGH",
    "IDLE",
    "IDLE_TOO",
    "LEARNT",
    "LOOK",
    "LOW",
    "MACHINES",
    "NEAR_ONE",
    "NERSC",
    "PERIODIC",
    "RARE",
    "SAME",
    "SECOND",
    "SEVEN",
    "SILVERTON",
    "SYNTHESIS",
    "THIRD",
    "TRACES",
    "TRILAB",
    "UNSATURATED",
    "YIELD",
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
    "mean_of",
    "means_of",
    "ratio_by_band",
    "ratios_of",
    "rising",
    "risk_of",
    "second_risky",
    "share_above",
    "share_below",
    "timed",
    "trilab_higher",
    "windows_of",
    "with_ratio",
]

_Values: TypeAlias = NDArray[np.float64]
_Tests: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = dict[str, float]
Band: TypeAlias = tuple[float, float]

NERSC: Final = "NERSC"
TRILAB: Final = "TRILAB"
TRACES: Final = (NERSC, TRILAB)
FAIR: Final = "fair-share"
COM: Final = "greedy-com"
YIELD: Final = "greedy-yield"
LOOK: Final = "look-ahead-greedy-yield"
PERIODIC: Final = "periodic-greedy-yield"
BEST: Final = "best-next-event"
#: The sets of strategies that section 6.3.3 tells apart, besides GreedyCom.
SECOND: Final = ("fcfs", "set-10", YIELD)
THIRD: Final = (LOOK, PERIODIC, BEST)
SEVEN: Final = (COM, *SECOND, *THIRD)
EIGHT: Final = (FAIR, *SEVEN)

ANY: Final = (0.0, math.inf)
LOW: Final = (0.0, 0.5)
_MIDDLE: Final = (0.5, 1.0)
HIGH: Final = (1.0, math.inf)
BANDS: Final = {"W<0.5": LOW, "0.5<=W<1": _MIDDLE, "W>=1": HIGH}
UNSATURATED: Final = (0.0, 1.0)
NEAR_ONE: Final = (0.75, 1.0)
BEYOND: Final = (1.25, math.inf)
SAME: Final = 1e-3

#: The source of a claim of the synthesis.
SYNTHESIS: Final = "papers/1 section 6.3.8"


#: Why claims fail. Looked into on 1 to 5 schedules per machine, that is 220 to 1,100
#: windows per workload.
SILVERTON: Final = (
    "Two thirds of our TRILAB windows hold a Silverton job, whose checkpoint, alone, "
    "takes from 0.2 (Celio) to 1 (M_10) of the period and blocks all others. "
)
IDLE: Final = (
    "Holds if jobs without I/O in the window (60 % of those of NERSC, none of TRILAB) "
    "are left out, as in the authors' program."
)
IDLE_TOO: Final = (
    "It holds without these windows, if also jobs without I/O in a window (60 % of "
    "those of NERSC) are left out, as in the authors' program."
)
MACHINES: Final = (
    "The windows of M_10 that the authors published (apex/windows.csv) hold about five "
    "times as many jobs as ours (TRILAB: 110, ours 23): there the cores of a node grow "
    "too, about 5^(t/10) times, which the paper does not say. "
)
LEARNT: Final = (
    "With periods that are given the two are the same to the last bit. Learnt, they "
    "differ: a window begins within a period, and the short first iteration keeps the "
    "mean under 3,162 s, where the set of 1 h begins, for up to eight periods."
)
RARE: Final = (
    "PeriodicGreedyYield loses, mostly under 1 %, where W is low: few operations, so "
    "few wake-ups (eq. 5). With 2,000 wake-ups in a window it never does. "
)


# --- Windows, ratios and what is asked of them ----------------------------------------


def timed(tables: Tables) -> pl.DataFrame:
    """Return the rows with the seconds that each simulation took."""
    return tables.rows.join(
        tables.times, on=["point", "instance", "policy"], maintain_order="left"
    )


def windows_of(
    rows: pl.DataFrame, trace: str, policy: str, band: Band = ANY
) -> pl.DataFrame:
    """Return the rows of a strategy in the windows of a trace with W in a band."""
    low, high = band
    return rows.filter(
        (pl.col("trace") == trace)
        & (pl.col("policy") == policy)
        & (pl.col("pressure") >= low)
        & (pl.col("pressure") < high)
    )


def fair_values(tables: Tables, trace: str, column: str, band: Band = ANY) -> _Values:
    """Return a column of the windows of a trace, with FairShare."""
    values = windows_of(tables.rows, trace, FAIR, band)[column]
    return values.to_numpy().astype(np.float64)


def with_ratio(tables: Tables, trace: str, policy: str) -> pl.DataFrame:
    """Return the windows of a trace with a strategy, and its ratio in each."""
    rows = tables.rows.filter(pl.col("policy").is_in([policy, FAIR]))
    return windows_of(over_base(rows, "min_yield", FAIR), trace, policy)


def ratios_of(tables: Tables, trace: str, policy: str, band: Band = ANY) -> _Values:
    """Return the ratios of a strategy in the windows of a trace."""
    rows = with_ratio(tables, trace, policy)
    return windows_of(rows, trace, policy, band)["ratio"].to_numpy()


def mean_of(values: _Values | _Tests) -> float:
    """Return the mean, or not a number where there is no value."""
    return float(values.mean()) if values.size else math.nan


def lowest_of(values: _Values) -> float:
    """Return the lowest value, or not a number where there is none."""
    return float(values.min()) if values.size else math.nan


def highest_of(values: _Values) -> float:
    """Return the highest value, or not a number where there is none."""
    return float(values.max()) if values.size else math.nan


def share_below(ratios: _Values) -> float:
    """Return the share of windows with a lower MinYield than FairShare's."""
    return mean_of(ratios < 1 - SAME)


def share_above(ratios: _Values) -> float:
    """Return the share of windows with a higher MinYield than FairShare's."""
    return mean_of(ratios > 1 + SAME)


def risk_of(ratios: _Values) -> Numbers:
    """Return how often, and how far at worst, a strategy is lower than FairShare."""
    return {"share lower": share_below(ratios), "lowest ratio": lowest_of(ratios)}


def means_of(tables: Tables, trace: str, metric: str, band: Band = ANY) -> Numbers:
    """Return the mean of a metric of every strategy."""
    return {
        policy: mean_of(windows_of(tables.rows, trace, policy, band)[metric].to_numpy())
        for policy in EIGHT
    }


def correlation(one: _Values, other: _Values) -> float:
    """Return the rank correlation, or not a number where nothing varies."""
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return math.nan
    return float(spearmanr(one, other).statistic)


def rising(values: Iterable[float]) -> bool:
    """Return whether every value is higher than the one before it."""
    return all(a < b for a, b in itertools.pairwise(values))


def all_pass(numbers: Mapping[str, float], test: Callable[[float], bool]) -> Verdict:
    """Return the verdict that all numbers pass a test."""
    return Verdict(all(test(v) for v in numbers.values()), dict(numbers))


def ratio_by_band(
    tables: Tables, trace: str, policies: Iterable[str]
) -> dict[str, Numbers]:
    """Return, for every strategy, the mean ratio in the three bands of pressure."""
    return {
        policy: {
            name: mean_of(ratios_of(tables, trace, policy, band))
            for name, band in BANDS.items()
        }
        for policy in policies
    }


def flat(nested: Mapping[str, Mapping[str, float]]) -> Numbers:
    """Return nested numbers as one table, named by both keys."""
    return {f"{a} {b}": v for a, inner in nested.items() for b, v in inner.items()}


def gain_grows(trace: str, policies: Iterable[str]) -> Check:
    """Return a check that the mean ratio rises from band to band."""

    def check(tables: Tables) -> Verdict:
        means = ratio_by_band(tables, trace, policies)
        return Verdict(all(rising(m.values()) for m in means.values()), flat(means))

    return check


# --- Checks of more than one figure ---------------------------------------------------


def second_risky(trace: str, band: Band) -> Check:
    """Return a check: FCFS, Set-10, GreedyYield lose in 5 % of the windows or more."""

    def check(tables: Tables) -> Verdict:
        shares = {p: share_below(ratios_of(tables, trace, p, band)) for p in SECOND}
        return all_pass(shares, lambda share: share >= 0.05)

    return check


def fcfs_as_set10(trace: str, tolerance: float) -> Check:
    """Return a check: FCFS and Set-10 have one MinYield, to a tolerance, everywhere."""

    def check(tables: Tables) -> Verdict:
        key = ["point", "instance"]
        one = windows_of(tables.rows, trace, "fcfs").sort(key)["min_yield"].to_numpy()
        two = windows_of(tables.rows, trace, "set-10").sort(key)["min_yield"].to_numpy()
        gap = np.abs(one - two)
        numbers = {
            "largest difference": highest_of(gap),
            "mean difference": mean_of(gap),
            "share of windows that differ": mean_of(gap > tolerance),
        }
        return Verdict(numbers["largest difference"] <= tolerance, numbers)

    return check


def losses_of(
    tables: Tables, trace: str, metric: str, before: Band, after: Band
) -> Numbers:
    """Return what every strategy loses of a metric from one band to another."""
    first = means_of(tables, trace, metric, before)
    last = means_of(tables, trace, metric, after)
    return {policy: first[policy] - last[policy] for policy in EIGHT}


def trilab_higher(metric: str, band: Band) -> Check:
    """Return a check: every strategy has a higher mean on TRILAB than on NERSC."""

    def check(tables: Tables) -> Verdict:
        nersc = means_of(tables, NERSC, metric, band)
        trilab = means_of(tables, TRILAB, metric, band)
        return all_pass({p: trilab[p] - nersc[p] for p in EIGHT}, lambda gap: gap > 0)

    return check


def greedy_com_highest(metric: str, traces: Iterable[str], band: Band) -> Check:
    """Return a check: GreedyCom has the highest mean of all strategies."""

    def check(tables: Tables) -> Verdict:
        gaps: Numbers = {}
        for trace in traces:
            means = means_of(tables, trace, metric, band)
            mine = means.pop(COM)
            gaps |= {f"{trace} over {p}": mine - v for p, v in means.items()}
        return all_pass(gaps, lambda gap: gap > 0)

    return check
