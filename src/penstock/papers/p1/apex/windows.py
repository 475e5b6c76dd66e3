# SPDX-License-Identifier: MIT
"""The windows of the APEX workloads as one table, and their ratios.

W is the I/O pressure of a window. A *ratio* is the MinYield of a policy over that of
fair-share in the same window.

The rows of the study have one row per window and policy. `shown` turns them into one
row per window: facts of the window, and a column ``metric policy`` for each metric and
policy (`column`). That is what all checks use: a claim is checked hundreds of times,
on resamples. The fact ``windows`` (windows per schedule) makes resamples draw whole
schedules (`penstock.experiments.resampling`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from penstock.experiments.claims import Tables
from penstock.papers.p1.apex.bands import EFFICIENCIES, EVERY_WINDOW, UTILIZATIONS, Band
from penstock.papers.p1.policies import ALL_POLICIES, FAIR_SHARE

__all__ = [
    "column",
    "facts_of",
    "long_rows",
    "numbers_of",
    "ratios_of",
    "shown",
    "values_of",
    "windows_of",
]

_Values: TypeAlias = NDArray[np.float64]

_KEY: Final = ("point", "instance")
_FACTS: Final = (
    *("windows", "trace", "machine", "pressure", "window"),
    *("applications", "nodes", "demand", "operations"),
)
_METRICS: Final = (
    *("min_yield", *EFFICIENCIES.values(), *UTILIZATIONS.values()),
    *("decisions", "seconds"),
)


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


def windows_of(tables: Tables, trace: str, band: Band = EVERY_WINDOW) -> pl.DataFrame:
    """Return the windows of a trace with W in a band."""
    low, high = band
    return tables.rows.filter(
        (pl.col("trace") == trace)
        & (pl.col("pressure") >= low)
        & (pl.col("pressure") < high)
    )


def facts_of(
    tables: Tables, trace: str, fact: str, band: Band = EVERY_WINDOW
) -> _Values:
    """Return a fact of the windows of a trace, such as ``pressure``."""
    return numbers_of(windows_of(tables, trace, band), fact)


def values_of(
    tables: Tables, trace: str, metric: str, policy: str, band: Band = EVERY_WINDOW
) -> _Values:
    """Return a metric of a policy in the windows of a trace."""
    return numbers_of(windows_of(tables, trace, band), column(metric, policy))


def ratios_of(
    tables: Tables, trace: str, policy: str, band: Band = EVERY_WINDOW
) -> _Values:
    """Return the ratios of a policy in the windows of a trace."""
    return values_of(tables, trace, "ratio", policy, band)


def numbers_of(rows: pl.DataFrame, name: str) -> _Values:
    """Return a column as floating-point numbers."""
    return rows[name].cast(pl.Float64).to_numpy()
