# SPDX-License-Identifier: MIT
"""Windows of the APEX workloads: the measures and checks that several figures share.

W is the I/O pressure of a window. A *ratio* is the MinYield of a policy over that of
fair-share in the same window; a ratio within 0.001 of 1 counts as neither lower nor
higher.

- The published Figure 5 shows 0.4 <= W <= 1.4, and Figures 6 to 10 show
  0.5 <= W <= 1.4. Our figures show the same ranges, and their claims are checked inside
  them. "Low W" is the lowest quarter, W < 0.75; "high W" is W >= 1.
- Where the paper says "few", "similar" or "high", the sentence of the claim gives the
  number that its check uses.
- A check without any window to look at does not hold: its numbers are not a number.

The rows of the study have one row per window and policy. `shown` turns them into one
row per window: facts of the window, and a column ``metric policy`` for each metric and
policy (`column`). That is what all checks use: a claim is checked hundreds of times,
on resamples.
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

from penstock.experiments.claims import Tables, Verdict, over
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    FAIR_SHARE,
    GREEDY_COM,
    SECOND_SET,
)

__all__ = [
    "ANY",
    "BANDS",
    "BEYOND",
    "CONCLUSION",
    "EFFICIENCIES",
    "EVERY_WINDOW",
    "FIGURES_6_TO_10",
    "FIGURE_5",
    "FIRST",
    "HIGH",
    "LAST",
    "LOW",
    "NEAR_ONE",
    "NERSC",
    "SAME",
    "SYNTHESIS",
    "TRACES",
    "TRILAB",
    "UNSATURATED",
    "UTILIZATIONS",
    "Band",
    "Numbers",
    "Table",
    "against_fair_share",
    "all_cells_pass",
    "all_pass",
    "by_weights",
    "column",
    "correlation",
    "facts_of",
    "fcfs_as_set10",
    "gain_grows",
    "greedy_com_highest",
    "highest_of",
    "long_rows",
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
    "shown",
    "trilab_higher",
    "values_of",
    "windows_of",
]

_Values: TypeAlias = NDArray[np.float64]
_Tests: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = dict[str, float]
Table: TypeAlias = dict[str, dict[str, float]]
Band: TypeAlias = tuple[float, float]
"""An interval of W: from the first number on, below the second."""

NERSC: Final = "NERSC"
TRILAB: Final = "TRILAB"
TRACES: Final = (NERSC, TRILAB)

#: The ranges of W that the published figures show, both ends included.
FIGURE_5: Final = (0.4, 1.4)
FIGURES_6_TO_10: Final = (0.5, 1.4)
EVERY_WINDOW: Final = (0.0, math.inf)

ANY: Final = (0.0, math.inf)
LOW: Final = (0.0, 0.75)
NEAR_ONE: Final = (0.75, 1.0)
HIGH: Final = (1.0, math.inf)
BANDS: Final = {"W<0.75": LOW, "0.75<=W<1": NEAR_ONE, "W>=1": HIGH}
UNSATURATED: Final = (0.0, 1.0)
#: The first and the last tenth before saturation that Figures 6 to 10 show.
FIRST: Final = (0.5, 0.6)
LAST: Final = (0.9, 1.0)
BEYOND: Final = (1.25, math.inf)
#: A ratio this close to 1 is neither lower nor higher than 1.
SAME: Final = 1e-3

#: The sources of claims that the synthesis and the conclusion make.
SYNTHESIS: Final = "bandwidth sharing, section 6.3.8"
CONCLUSION: Final = "bandwidth sharing, section 7"

#: Efficiency and Utilization: the weights of the applications -> the column. The text
#: weighs by nodes; the figures weigh Efficiency by caps and count every job once in
#: Utilization.
EFFICIENCIES: Final = {"p_i (text)": "efficiency", "b_i (figure)": "cap_efficiency"}
UTILIZATIONS: Final = {"p_i (text)": "utilization", "1 (figure)": "set_utilization"}

#: Intervals of W of width 0.1, the last one with its upper end.
_TENTHS: Final = tuple(
    (tenth / 10, (tenth + 1) / 10 if tenth < 13 else 1.41) for tenth in range(4, 14)
)
_KEY: Final = ("point", "instance")
_FACTS: Final = (
    *("trace", "machine", "pressure", "window"),
    *("applications", "nodes", "demand", "operations"),
)
_METRICS: Final = (
    *("min_yield", *EFFICIENCIES.values(), *UTILIZATIONS.values()),
    *("decisions", "seconds"),
)


# --- Windows and ratios ---------------------------------------------------------------


def column(metric: str, policy: str) -> str:
    """Return the column that holds a metric of a policy."""
    return f"{metric} {policy}"


def shown(band: Band) -> Callable[[Tables], Tables]:
    """Return the preparation of a figure: one row per window with W in a range.

    Both ends of the range are included. Beside the metrics there is a column ``ratio``
    for every policy.
    """

    def prepare(tables: Tables) -> Tables:
        rows = tables.rows.filter(pl.col("pressure").is_between(*band))
        if "seconds" not in rows.columns:
            rows = rows.join(
                tables.times, on=[*_KEY, "policy"], how="left", maintain_order="left"
            )
        wide = rows.select(*_KEY, *_FACTS).unique([*_KEY], maintain_order=True)
        for policy in ALL_POLICIES:
            names = {metric: column(metric, policy) for metric in _METRICS}
            of_policy = rows.filter(pl.col("policy") == policy)
            wide = wide.join(
                of_policy.select(*_KEY, *_METRICS).rename(names),
                on=_KEY,
                how="left",
                maintain_order="left",
            )
        fair = pl.col(column("min_yield", FAIR_SHARE))
        ratios = [
            (pl.col(column("min_yield", p)) / fair).alias(column("ratio", p))
            for p in ALL_POLICIES
        ]
        return Tables(wide.with_columns(ratios), pl.DataFrame())

    return prepare


def long_rows(rows: pl.DataFrame, metric: str) -> pl.DataFrame:
    """Return one row per window and policy, with one metric: what charts take."""
    return pl.concat(
        rows.select(
            *_KEY,
            *_FACTS,
            pl.lit(policy).alias("policy"),
            pl.col(column(metric, policy)).alias(metric),
        )
        for policy in ALL_POLICIES
    )


def windows_of(tables: Tables, trace: str, band: Band = ANY) -> pl.DataFrame:
    """Return the windows of a trace with W in a band."""
    low, high = band
    return tables.rows.filter(
        (pl.col("trace") == trace)
        & (pl.col("pressure") >= low)
        & (pl.col("pressure") < high)
    )


def facts_of(tables: Tables, trace: str, fact: str, band: Band = ANY) -> _Values:
    """Return a fact of the windows of a trace, such as ``pressure``."""
    return _numbers(windows_of(tables, trace, band), fact)


def values_of(
    tables: Tables, trace: str, metric: str, policy: str, band: Band = ANY
) -> _Values:
    """Return a metric of a policy in the windows of a trace."""
    return _numbers(windows_of(tables, trace, band), column(metric, policy))


def ratios_of(tables: Tables, trace: str, policy: str, band: Band = ANY) -> _Values:
    """Return the ratios of a policy in the windows of a trace."""
    return values_of(tables, trace, "ratio", policy, band)


def _numbers(rows: pl.DataFrame, name: str) -> _Values:
    return rows[name].cast(pl.Float64).to_numpy()


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


def means_of(
    tables: Tables,
    trace: str,
    metric: str,
    band: Band = ANY,
    policies: Iterable[str] = ALL_POLICIES,
) -> Numbers:
    """Return the mean of a metric for every policy."""
    rows = windows_of(tables, trace, band)
    return {p: mean_or_nan(_numbers(rows, column(metric, p))) for p in policies}


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


# --- Verdicts -------------------------------------------------------------------------


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


def fcfs_as_set10(tables: Tables, trace: str, tolerance: float) -> Verdict:
    """Check that fcfs and set-10 have the same MinYield in every window."""
    rows = windows_of(tables, trace)
    fcfs, set10 = (_numbers(rows, column("min_yield", p)) for p in ("fcfs", "set-10"))
    gap = np.abs(fcfs - set10)
    numbers = {
        "largest difference": highest_of(gap),
        "mean difference": mean_or_nan(gap),
        "share of windows that differ": mean_or_nan(gap > tolerance),
    }
    return Verdict(numbers["largest difference"] <= tolerance, numbers)


def trilab_higher(tables: Tables, metric: str, band: Band) -> Verdict:
    """Check that every policy has a higher mean on TRILAB than on NERSC.

    Means are compared at equal W: W is cut into tenths, and each tenth in which both
    traces have windows counts the same. (NERSC has most of its windows at low W.)
    """
    low, high = band
    tenths = [t for t in _TENTHS if low <= t[0] < high]
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
    tables: Tables, metric: str, policy: str, on_trilab: Band
) -> Verdict:
    """Check that a policy has a higher mean than fair-share on NERSC.

    On TRILAB its mean minus that of fair-share must be in the interval `on_trilab`.
    """
    means = {
        trace: means_of(tables, trace, metric, ANY, (policy, FAIR_SHARE))
        for trace in TRACES
    }
    gains = {trace: row[policy] - row[FAIR_SHARE] for trace, row in means.items()}
    low, high = on_trilab
    return Verdict(gains[NERSC] > 0 and low <= gains[TRILAB] <= high, means)


def greedy_com_highest(
    tables: Tables, metric: str, traces: Iterable[str], band: Band
) -> Verdict:
    """Check that greedy-com has the highest mean of all policies on every trace."""
    means = {trace: means_of(tables, trace, metric, band) for trace in traces}
    others = tuple(p for p in ALL_POLICIES if p != GREEDY_COM)
    highest = [row[GREEDY_COM] > row[p] for row in means.values() for p in others]
    return Verdict(all(highest), means)
