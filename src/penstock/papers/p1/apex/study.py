# SPDX-License-Identifier: MIT
"""The study behind Figures 5 to 10 of bandwidth sharing (section 6.3).

All policies run on windows of schedules of the APEX workloads (the traces NERSC and
TRILAB), on Celio (machine M_0) and its larger successors M_1 to M_10. One module per
figure draws it and checks its claims: `fair_share` (5), `nersc` (6), `trilab` (7),
`efficiency` (8), `utilization` (9), `times` (10). `windows` holds what they share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.output.charts import (
    binned,
    binned_lines,
    over_base,
    ratio_grid,
)
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study, sweep
from penstock.papers.p1.apex.windows import TRACES
from penstock.papers.p1.policies import ALL_POLICIES, FAIR_SHARE

__all__ = [
    "apex_study",
    "draw_by_pressure",
    "draw_ratios",
    "means_by_pressure",
    "ratios_by_window",
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
        return ratio_grid(rows, "min_yield", FAIR_SHARE)

    return draw


def ratios_by_window(trace: str) -> Callable[[Tables], pl.DataFrame]:
    """Return the table of MinYield over that of fair-share.

    It has a row per window and a column per policy.
    """

    def summary(tables: Tables) -> pl.DataFrame:
        rows = tables.rows.filter(pl.col("trace") == trace)
        return over_base(rows, "min_yield", FAIR_SHARE).pivot(
            "policy",
            index=["trace", "machine", "instance", "pressure", "base"],
            values="ratio",
        )

    return summary


def draw_by_pressure(
    metric: str, *, logarithmic: bool = False
) -> Callable[[Tables], Figure]:
    """Return the drawing of the mean of `metric` in intervals of pressure."""

    def draw(tables: Tables) -> Figure:
        return binned_lines(tables.rows, metric, panel="trace", logarithmic=logarithmic)

    return draw


def means_by_pressure(metric: str) -> Callable[[Tables], pl.DataFrame]:
    """Return the table of the mean of `metric` in intervals of pressure."""
    return lambda tables: binned(tables.rows, metric, panel="trace")
