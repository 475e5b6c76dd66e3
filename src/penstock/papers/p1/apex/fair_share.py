# SPDX-License-Identifier: MIT
"""Figure 5 of bandwidth sharing (section 6.3.2): MinYield of fair-share on APEX.

`penstock.papers.p1.apex.bands` says what W is, and which W the figure shows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict, case, over
from penstock.experiments.output.charts import pressure_scatter
from penstock.papers.declaration import figure
from penstock.papers.p1.apex.bands import (
    EVERY_WINDOW,
    FIGURE_5,
    HIGH,
    NERSC,
    TRACES,
    TRILAB,
    Band,
)
from penstock.papers.p1.apex.measures import (
    Table,
    correlation,
    highest_of,
    lowest_of,
    mean_or_nan,
    rising,
)
from penstock.papers.p1.apex.study import apex_study, show_range
from penstock.papers.p1.apex.windows import (
    column,
    facts_of,
    long_rows,
    shown,
    values_of,
)
from penstock.papers.p1.policies import FAIR_SHARE

__all__ = ["fig5"]

_FAIR: Final = column("min_yield", FAIR_SHARE)
#: W about 0.4, about 1, and the highest that the figure shows.
_LOWEST: Final = (0.4, 0.5)
_ABOUT_ONE: Final = (0.9, 1.1)
_HIGHEST: Final = (1.2, 1.41)


def _draw(tables: Tables) -> Figure:
    rows = long_rows(tables.rows, "min_yield").filter(pl.col("policy") == FAIR_SHARE)
    drawn = pressure_scatter(rows, "min_yield", by="machine", panel="trace")
    return show_range(drawn, FIGURE_5)


def _summary(tables: Tables) -> pl.DataFrame:
    """Return statistics of MinYield on the windows of a trace on a machine."""
    return (
        tables.rows.group_by("trace", "machine")
        .agg(
            pl.len().alias("windows"),
            pl.mean("pressure"),
            pl.mean(_FAIR).alias("mean_min_yield"),
            pl.min(_FAIR).alias("lowest_min_yield"),
            pl.max(_FAIR).alias("highest_min_yield"),
        )
        .sort("trace", "machine")
    )


fig5 = figure(
    "p1-fig5", study=apex_study, prepare=shown(FIGURE_5), draw=_draw, summary=_summary
)


def _min_yields(tables: Tables, trace: str, band: Band = EVERY_WINDOW) -> np.ndarray:
    return values_of(tables, trace, "min_yield", FAIR_SHARE, band)


@fig5.claim(
    "NERSC: the MinYield of fair-share stays above 0.8 where W is low (0.4 to 0.5).",
    reason="The exceptions, 7 % of these windows, have jobs that began together when "
    "the machine was empty: some 180 MILC jobs that read at once in the first window "
    "of a schedule, or some 45 Materials jobs that still write checkpoints at once.",
)
def _nersc_high_at_low_pressure(tables: Tables) -> Verdict:
    """Take the lowest MinYield for W from 0.4 to 0.5."""
    values = _min_yields(tables, NERSC, _LOWEST)
    numbers = {
        "lowest": lowest_of(values),
        "share under 0.8": mean_or_nan(values <= 0.8),
    }
    return Verdict(numbers["lowest"] > 0.8, numbers)


@fig5.claim_cases(
    case(
        "nersc-falls",
        "NERSC: the MinYield of fair-share tends to fall as W grows (rank correlation "
        "under -0.5).",
        trace=NERSC,
        least=0.5,
    ),
    case(
        "trilab-falls",
        "TRILAB: the higher W, the lower the MinYield of fair-share (rank correlation "
        "under -0.8).",
        trace=TRILAB,
        least=0.8,
    ),
)
def _falls(tables: Tables, trace: str, least: float) -> Verdict:
    """Correlate MinYield with W over the windows of a trace."""
    pressures = facts_of(tables, trace, "pressure")
    value = correlation(pressures, _min_yields(tables, trace))
    return Verdict(value <= -least, {"rank correlation": value})


@fig5.claim(
    "NERSC: the MinYield of fair-share is under 0.5 in some windows with W about 1 "
    "(0.9 to 1.1)."
)
def _nersc_under_half_at_one(tables: Tables) -> Verdict:
    """Take the lowest MinYield for W from 0.9 to 1.1."""
    values = _min_yields(tables, NERSC, _ABOUT_ONE)
    numbers = {
        "lowest": lowest_of(values),
        "share under 0.5": mean_or_nan(values < 0.5),
    }
    return Verdict(numbers["lowest"] < 0.5, numbers)


@fig5.claim(
    "NERSC: the share of windows with a MinYield under 0.5 grows with W, also beyond "
    "W = 1."
)
def _nersc_low_yields_multiply(tables: Tables) -> Verdict:
    """Compare the shares in three bands of W around 1."""
    bands = {
        "0.7<=W<0.9": (0.7, 0.9),
        "0.9<=W<1.1": _ABOUT_ONE,
        "1.1<=W<=1.4": (1.1, 1.41),
    }
    shares = {
        name: mean_or_nan(_min_yields(tables, NERSC, band) < 0.5)
        for name, band in bands.items()
    }
    return Verdict(rising(shares.values()), shares)


@fig5.claim_cases(
    case(
        "nersc-machine-matters",
        "NERSC: W depends a little on the machine (fitted; rank correlation of at "
        "least 0.2).",
        trace=NERSC,
        least=0.2,
    ),
    case(
        "trilab-machine-matters",
        "TRILAB: the larger the machine, the higher W (fitted; rank correlation of at "
        "least 0.8).",
        trace=TRILAB,
        least=0.8,
    ),
)
def _machine_matters(tables: Tables, trace: str, least: float) -> Verdict:
    """Correlate W with the number of the machine over the windows of a trace."""
    machines = facts_of(tables, trace, "machine")
    value = correlation(machines, facts_of(tables, trace, "pressure"))
    return Verdict(value >= least, {"rank correlation": value})


@fig5.claim("NERSC: most windows have a low W (more than half are under 0.7).")
def _nersc_mostly_low_pressure(tables: Tables) -> Verdict:
    """Take the share of windows with W < 0.7."""
    share = mean_or_nan(facts_of(tables, NERSC, "pressure") < 0.7)
    return Verdict(share > 0.5, {"share with W < 0.7": share})


@fig5.claim(
    "NERSC: fair-share has a MinYield of 1 (0.99) in some windows with a high W, up to "
    "1.4 (1.2 to 1.4).",
    contradicted="Section 6.3.1 lets all jobs join when the window begins; if none of "
    "them were delayed, the volume of equation 11 would pass, so that W would be at "
    "most 1.",
)
def _nersc_one_at_high_pressure(tables: Tables) -> Verdict:
    """Take the highest MinYield at the highest W."""
    values = _min_yields(tables, NERSC)
    pressures = facts_of(tables, NERSC, "pressure")
    numbers = {
        "highest MinYield, W>=1": highest_of(values[pressures >= 1]),
        "highest MinYield, W>=1.2": highest_of(_min_yields(tables, NERSC, _HIGHEST)),
        "highest W with MinYield >= 0.99": highest_of(pressures[values >= 0.99]),
    }
    return Verdict(numbers["highest MinYield, W>=1.2"] >= 0.99, numbers)


@fig5.claim(
    "W follows the machine, and MinYield follows W, more closely on TRILAB than on "
    "NERSC (rank correlations).",
)
def _trilab_clearer(tables: Tables) -> Verdict:
    """Compare the rank correlations of both traces."""
    numbers: Table = {}
    for trace in TRACES:
        pressures = facts_of(tables, trace, "pressure")
        numbers[trace] = {
            "machine and W": correlation(facts_of(tables, trace, "machine"), pressures),
            "W and MinYield": correlation(pressures, _min_yields(tables, trace)),
        }
    clearer = [
        abs(numbers[TRILAB][name]) > abs(numbers[NERSC][name])
        for name in numbers[TRILAB]
    ]
    return Verdict(all(clearer), numbers)


@fig5.claim("TRILAB: the MinYield of fair-share is never under 0.4.")
def _trilab_none_under(tables: Tables) -> Verdict:
    """Take the lowest MinYield of all windows."""
    values = _min_yields(tables, TRILAB)
    numbers = {
        "lowest": lowest_of(values),
        "share under 0.4": mean_or_nan(values < 0.4),
    }
    return Verdict(numbers["lowest"] >= 0.4, numbers)


@fig5.claim(
    "TRILAB: the MinYield of fair-share is never close to 1 (0.95) when W is above 1."
)
def _trilab_none_close_to_one(tables: Tables) -> Verdict:
    """Take the highest MinYield for W >= 1."""
    highest = highest_of(_min_yields(tables, TRILAB, HIGH))
    return Verdict(highest < 0.95, {"highest, W>=1": highest})


@fig5.claim(
    "Some TRILAB windows saturate the bandwidth (fitted; the highest W of a machine is "
    "1 or more).",
    reason="The sentence of the paper begins with Celio, where the highest W of all "
    "TRILAB windows is 0.54: it is true of larger machines only.",
)
def _trilab_saturates(tables: Tables) -> Verdict:
    """Take the highest W on every machine."""
    pressures = facts_of(tables, TRILAB, "pressure")
    machines = facts_of(tables, TRILAB, "machine")
    verdicts = {}
    for machine in np.unique(machines).tolist():
        highest = highest_of(pressures[machines == machine])
        verdicts[f"M_{machine:g}"] = Verdict(highest >= 1, {"highest W": highest})
    return over("machine", verdicts)
