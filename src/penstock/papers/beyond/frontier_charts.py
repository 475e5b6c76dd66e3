# SPDX-License-Identifier: MIT
"""Drawings of the frontier: means of all policies, differences, and counts."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from penstock.experiments.output.charts import LABELS, footnote, policies_of, tidy
from penstock.experiments.output.plots import colour_of
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.policies import RECOMMENDED

__all__ = ["draw_counts", "draw_differences", "draw_frontier", "draw_windows"]

_COLUMNS: Final = 4
#: A policy whose MinYield is this much below the best is outside the panel.
_LEFT_OUT: Final = 0.12


def draw_frontier(means: pl.DataFrame, objective: str) -> Figure:
    """Draw a panel per point: an objective against MinYield, with 95 % intervals.

    The dashed line is the bound on MinYield. Policies with a MinYield far below the
    best are outside the panel: a line of text gives their numbers.
    """
    labels = means["point"].unique(maintain_order=True).to_list()
    lines = -(-len(labels) // _COLUMNS)
    figure = Figure(figsize=(3.0 * _COLUMNS, 2.4 * lines + 1.2))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(lines, _COLUMNS, squeeze=False)
    for axis, label in zip(axes.flat, labels, strict=False):
        _frontier_panel(axis, means.filter(pl.col("point") == label), objective)
        axis.set_title(label, fontsize=9)
    for axis in axes.flat[len(labels) :]:
        axis.set_axis_off()
    for line in axes:
        line[0].set_ylabel(LABELS[objective], fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel(LABELS["min_yield"], fontsize=9)
    _legend(figure, policies_of(means))
    footnote(
        figure,
        "marks: means over the instances; bars: 95 % confidence intervals of the mean; "
        f"text in a panel: MinYield and {LABELS[objective]} of policies far to its "
        "left",
    )
    return figure


def _frontier_panel(axis: Any, rows: pl.DataFrame, objective: str) -> None:
    bound, best = float(rows["bound"][0]), _highest(rows["min_yield"])
    shown = rows.filter(pl.col("min_yield") > best - _LEFT_OUT)
    for row in shown.iter_rows(named=True):
        axis.errorbar(
            row["min_yield"],
            row[objective],
            xerr=_bar(row["min_yield_error"]),
            yerr=_bar(row[f"{objective}_error"]),
            fmt=_marker(row["policy"]),
            color=colour_of(row["policy"]),
            elinewidth=0.6,
            **_look(row["policy"]),
        )
    outside = rows.filter(pl.col("min_yield") <= best - _LEFT_OUT)
    texts = [
        f"← {policy} {low:.2f}, {other:.2f}"
        for policy, low, other in outside.select(
            "policy", "min_yield", objective
        ).iter_rows()
    ]
    axis.text(
        0.03,
        0.03,
        "\n".join(texts),
        transform=axis.transAxes,
        fontsize=7,
        color="#555555",
        va="bottom",
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1},
        zorder=4,
    )
    axis.axvline(bound, color="#444444", linestyle="--", linewidth=1)
    axis.tick_params(labelsize=8)
    axis.locator_params(nbins=4)
    tidy(axis, "both")


def _marker(policy: str) -> str:
    """Return a star for the default, a dot for the eight, a square for the others."""
    if policy == RECOMMENDED:
        return "*"
    return "o" if policy in ALL_POLICIES else "s"


def _look(policy: str) -> dict[str, Any]:
    """Return size and filling: a hollow square does not hide a dot inside it."""
    if policy == RECOMMENDED:
        return {"markersize": 10}
    if policy in ALL_POLICIES:
        return {"markersize": 4}
    return {"markersize": 7, "markerfacecolor": "none"}


def _legend(figure: Figure, policies: list[str]) -> None:
    handles: list[Line2D] = [
        Line2D(
            [], [], color=colour_of(p), marker=_marker(p), ls="", label=p, **_look(p)
        )
        for p in policies
    ]
    bound = Line2D([], [], color="#444444", linestyle="--", label="bound on MinYield")
    figure.legend(
        handles=[*handles, bound],
        loc="outside upper center",
        ncols=5,
        fontsize=9,
        frameon=False,
    )


def draw_differences(table: pl.DataFrame) -> Figure:
    """Draw the differences of the default, with 95 % intervals, and the gap closed."""
    rows = table.filter(pl.col("policy") == RECOMMENDED)
    figure = Figure(figsize=(12, 0.22 * rows.height + 1.2))
    figure.set_layout_engine("constrained")
    panels: Any = figure.subplots(1, 3, sharey=True)
    gains = (
        ("min_yield_gain", "MinYield, minus that of the best of the eight"),
        ("efficiency_gain", "Efficiency, minus that of look-ahead-greedy-yield"),
    )
    places = list(range(rows.height))
    for panel, (column, title) in zip(panels, gains, strict=False):
        values = rows[column].to_list()
        errors = [_bar(width) for width in rows[f"{column}_error"].to_list()]
        colours = ["#117733" if value >= 0 else "#CC3311" for value in values]
        panel.errorbar(values, places, xerr=errors, fmt="none", ecolor="#999999")
        panel.scatter(values, places, color=colours, s=16, zorder=3)
        panel.axvline(0.0, color="#444444", linewidth=1)
        panel.set_xlabel(title, fontsize=9)
    panels[2].barh(places, rows["gap_closed"].to_list(), color=colour_of(RECOMMENDED))
    panels[2].set_xlabel("part of the gap to the bound that is closed", fontsize=9)
    panels[2].set_xlim(-0.3, 1.0)
    panels[0].set_yticks(places, rows["point"].to_list(), fontsize=8)
    panels[0].invert_yaxis()
    panels[0].margins(y=0.01)
    for panel in panels:
        panel.locator_params(axis="x", nbins=6)
        tidy(panel, "x")
    footnote(figure, "dots: mean differences; bars: their 95 % confidence intervals")
    return figure


def draw_counts(table: pl.DataFrame) -> Figure:
    """Draw at how many points the policy of a row dominates that of a column."""
    policies = table["policy"].to_list()
    points = int(table["points"][0])
    figure = Figure(figsize=(0.62 * len(policies) + 3.4, 0.4 * len(policies) + 3.0))
    figure.set_layout_engine("constrained")
    axis: Any = figure.subplots()
    counts = table.select(policies).to_numpy()
    axis.imshow(counts, cmap="Greens", vmin=0, vmax=points, aspect="auto")
    for (line, column), number in np.ndenumerate(counts):
        if line != column:
            colour = "white" if number > 0.6 * points else "#333333"
            axis.text(column, line, f"{number}", ha="center", va="center", color=colour)
    axis.set_xticks(range(len(policies)), policies, rotation=40, ha="right")
    axis.set_yticks(range(len(policies)), policies)
    title = f"number of the {points} points at which the row dominates the column"
    axis.set_title(title, fontsize=10)
    return figure


def draw_windows(table: pl.DataFrame) -> Figure:
    """Draw how many APEX windows are more than 1 % below fair-share, by policy."""
    policies = policies_of(table)
    groups = table["group"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(10, 0.35 * len(policies) + 1.3))
    figure.set_layout_engine("constrained")
    panels: Any = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
    for panel, group in zip(panels, groups, strict=True):
        rows = table.filter(pl.col("group") == group)
        under = dict(zip(rows["policy"], rows["under"], strict=True))
        places = range(len(policies))
        bars = panel.barh(
            places,
            [under[p] for p in policies],
            color=[colour_of(p) for p in policies],
        )
        panel.bar_label(bars, padding=3, fontsize=8)
        panel.set_title(f"{group}: of {rows['windows'][0]} windows", fontsize=10)
        panel.set_xlabel("MinYield more than 1 % below fair-share", fontsize=9)
        panel.margins(x=0.12)
        tidy(panel, "x")
    panels[0].set_yticks(range(len(policies)), policies)
    panels[0].invert_yaxis()
    return figure


def _bar(half_width: float) -> float:
    """Return the length of an error bar: none if the interval is not known."""
    return half_width if math.isfinite(half_width) else 0.0


def _highest(column: pl.Series) -> float:
    return float(column.to_numpy().max())
