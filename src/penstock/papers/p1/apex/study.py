# SPDX-License-Identifier: MIT
"""The study behind Figures 5 to 10 of bandwidth sharing (section 6.3).

All policies run on windows of schedules of the APEX workloads (the traces NERSC and
TRILAB), on Celio (machine M_0) and its larger successors M_1 to M_10. One module per
figure draws it and checks its claims: `distributions` (section B.2), `fair_share` (5),
`nersc` (6), `trilab` (7), `efficiency` (8), `utilization` (9), `times` (10). They
share `bands` (of W), `windows` (the table), `measures` (statistics) and `verdicts`
(checks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.output.charts import (
    LABELS,
    binned,
    binned_lines,
    ratio_grid,
)
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study, sweep
from penstock.papers.p1.apex.bands import FIGURES_6_TO_10, TRACES, Band
from penstock.papers.p1.apex.windows import column, long_rows
from penstock.papers.p1.policies import ALL_POLICIES, FAIR_SHARE

__all__ = [
    "apex_study",
    "draw_by_pressure",
    "draw_ratios",
    "means_by_pressure",
    "ratios_by_window",
    "show_range",
]

#: Windows per schedule. Simulating all windows of a schedule takes under a second.
_WINDOWS: Final = 20
_SCHEDULES: Final = {Scale.SMOKE: 1, Scale.PAPER: 100}
_MACHINES: Final = {Scale.SMOKE: (0, 2, 5, 8, 10), Scale.PAPER: tuple(range(11))}


def apex_study(scale: Scale) -> Study:
    """Return the study: both traces on all machines."""
    swept = {"trace": TRACES, "machine": _MACHINES[scale]}
    points = sweep("apex", {"windows": _WINDOWS}, swept)
    return Study("p1-apex", points, _SCHEDULES[scale] * _WINDOWS, ALL_POLICIES)


def draw_ratios(trace: str) -> Callable[[Tables], Figure]:
    """Return the drawing of MinYield over that of fair-share, one panel per policy."""

    def draw(tables: Tables) -> Figure:
        rows = tables.rows.filter(pl.col("trace") == trace)
        drawn = ratio_grid(long_rows(rows, "min_yield"), "min_yield", FAIR_SHARE)
        return show_range(drawn, FIGURES_6_TO_10)

    return draw


def ratios_by_window(trace: str) -> Callable[[Tables], pl.DataFrame]:
    """Return the table of MinYield over that of fair-share.

    It has a row per window and a column per policy.
    """

    def summary(tables: Tables) -> pl.DataFrame:
        fair_share = pl.col(column("min_yield", FAIR_SHARE))
        return tables.rows.filter(pl.col("trace") == trace).select(
            *("trace", "machine", "instance", "pressure"),
            fair_share.alias("base"),
            *(pl.col(column("ratio", p)).alias(p) for p in ALL_POLICIES),
        )

    return summary


def show_range(figure: Figure, band: Band) -> Figure:
    """Make the panels of a figure show the range of W that the paper shows."""
    for axis in figure.axes:
        if axis.get_xlabel() == LABELS["pressure"] or not axis.get_xlabel():
            axis.set_xlim(*band)
    return figure


def draw_by_pressure(
    metrics: Mapping[str, str], *, logarithmic: bool = False
) -> Callable[[Tables], Figure]:
    """Return the drawing of means in intervals of pressure.

    There is a line of panels for each of the metrics: weights -> column.
    """

    def draw(tables: Tables) -> Figure:
        (name, *_) = metrics.values()
        rows = pl.concat(
            long_rows(tables.rows, metric)
            .rename({metric: name})
            .with_columns(_titled(weights).alias("panel"))
            for weights, metric in metrics.items()
        )
        drawn = binned_lines(rows, name, panel="panel", logarithmic=logarithmic)
        return show_range(drawn, FIGURES_6_TO_10)

    return draw


def _titled(weights: str) -> pl.Expr:
    """Return the title of a panel: the trace, and the weights if there are any."""
    trace = pl.col("trace")
    return pl.format(f"{{}}, weights {weights}", trace) if weights else trace


def means_by_pressure(metrics: Mapping[str, str]) -> Callable[[Tables], pl.DataFrame]:
    """Return the table of means in intervals of pressure, for each of the metrics."""

    def summary(tables: Tables) -> pl.DataFrame:
        return pl.concat(
            binned(long_rows(tables.rows, metric), metric, panel="trace").with_columns(
                pl.lit(metric).alias("metric")
            )
            for metric in metrics.values()
        )

    return summary
