# SPDX-License-Identifier: MIT
"""papers/1 section 6.3: Figures 5 to 10, the APEX workloads on Celio and its heirs."""

from __future__ import annotations

from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.output.charts import (
    binned,
    binned_lines,
    over_base,
    pressure_scatter,
    ratio_grid,
)
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.study import Study, sweep
from penstock.papers.p1 import apex_claims as claims
from penstock.papers.p1.policies_of_paper import EIGHT
from penstock.workloads.apex.table import scaled_celio

__all__ = ["FIGURES"]

_TRACES: Final = ("NERSC", "TRILAB")
_BASE: Final = "fair-share"


#: Per schedule. A schedule with all runs of its windows takes under a second.
_WINDOWS: Final = 20
_SCHEDULES: Final = {Scale.SMOKE: 1, Scale.PAPER: 100}
_MACHINES: Final = {Scale.SMOKE: (0, 2, 5, 8, 10), Scale.PAPER: tuple(range(11))}


def _study(scale: Scale) -> Study:
    swept = {"trace": _TRACES, "machine": _MACHINES[scale]}
    points = sweep("apex", {"windows": _WINDOWS}, swept)
    return Study("p1-apex", points, _SCHEDULES[scale] * _WINDOWS, EIGHT)


def _draw_fair_share(tables: Tables) -> Figure:
    rows = tables.rows.filter(pl.col("policy") == _BASE)
    return pressure_scatter(rows, "min_yield", by="machine", panel="trace")


def _draw_ratios(tables: Tables, trace: str) -> Figure:
    rows = tables.rows.filter(pl.col("trace") == trace)
    return ratio_grid(rows, "min_yield", _BASE)


def _window_statistics(tables: Tables) -> pl.DataFrame:
    """Return means over the windows of a trace on a machine, and FairShare's MinYield.

    Durations in seconds; usage: the nodes in use over those of the machine.
    """
    rows = tables.rows.filter(pl.col("policy") == _BASE)
    nodes = {t: scaled_celio(t).nodes for t in rows["machine"].unique().to_list()}
    size = pl.col("machine").replace_strict(nodes, return_dtype=pl.Int64)
    return (
        rows.with_columns((pl.col("nodes") / size).alias("usage"))
        .group_by("trace", "machine")
        .agg(
            pl.len().alias("windows"),
            pl.mean("applications", "nodes", "usage"),
            pl.mean("window").alias("duration"),
            pl.mean("pressure"),
            pl.max("pressure").alias("highest_pressure"),
            pl.mean("min_yield").alias("fair_share_min_yield"),
            pl.min("min_yield").alias("fair_share_lowest_min_yield"),
        )
        .sort("trace", "machine")
    )


def _ratios(tables: Tables, trace: str) -> pl.DataFrame:
    """Return a line per window, a column per policy: MinYield over FairShare's."""
    rows = tables.rows.filter(pl.col("trace") == trace)
    return over_base(rows, "min_yield", _BASE).pivot(
        "policy",
        index=["trace", "machine", "instance", "pressure", "base"],
        values="ratio",
    )


def _binned_figure(
    number: int, section: str, what: str, metric: str, *, logarithmic: bool = False
) -> Reproduction:
    """Return a figure of the means of `metric` in intervals of pressure."""

    def draw(tables: Tables) -> Figure:
        return binned_lines(
            claims.timed(tables), metric, panel="trace", logarithmic=logarithmic
        )

    return Reproduction(
        name=f"p1-fig{number}",
        title=f"{what} of all strategies on APEX workloads",
        source=f"papers/1 section {section}, Figure {number}",
        study=_study,
        draw=draw,
        claims=list(claims.BY_FIGURE[number]),
        summary=lambda t: binned(claims.timed(t), metric, panel="trace"),
    )


def _ratio_figure(number: int, section: str, trace: str) -> Reproduction:
    """Return a figure of the MinYield of every policy over that of FairShare."""
    return Reproduction(
        name=f"p1-fig{number}",
        title=f"MinYield of all strategies over FairShare's, {trace}",
        source=f"papers/1 section {section}, Figure {number}",
        study=_study,
        draw=lambda t: _draw_ratios(t, trace),
        claims=list(claims.BY_FIGURE[number]),
        summary=lambda t: _ratios(t, trace),
    )


FIGURES: Final = {
    "p1-fig5": Reproduction(
        name="p1-fig5",
        title="MinYield of FairShare on APEX workloads",
        source="papers/1 section 6.3.2, Figure 5",
        study=_study,
        draw=_draw_fair_share,
        claims=list(claims.BY_FIGURE[5]),
        summary=_window_statistics,
    ),
    "p1-fig6": _ratio_figure(6, "6.3.3", "NERSC"),
    "p1-fig7": _ratio_figure(7, "6.3.4", "TRILAB"),
    "p1-fig8": _binned_figure(8, "6.3.5", "Efficiency", "efficiency"),
    "p1-fig9": _binned_figure(9, "6.3.6", "Utilization", "utilization"),
    "p1-fig10": _binned_figure(
        10, "6.3.7", "Simulation time", "seconds", logarithmic=True
    ),
}
