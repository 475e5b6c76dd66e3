# SPDX-License-Identifier: MIT
"""Drawings of the figures of target allocation: lines over the load, and boxes.

Every algorithm has its own colour and marker in all figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from penstock.experiments.output.charts import tidy, upright_box
from penstock.experiments.output.plots import colour_of
from penstock.papers.p2.study import measured
from penstock.policies import POLICIES

__all__ = ["LoadPanel", "Style", "load_lines", "new_figure", "spread_boxes", "style_of"]

_X_LABEL: Final = "minimum I/O-load, I/O-load(π_sys)"


@dataclass(frozen=True, slots=True)
class Style:
    """Colour, marker and line width of an algorithm."""

    colour: str
    marker: str = "o"
    width: float = 2.2


#: Okabe and Ito's colours, for readers who are colour-blind. An algorithm whose results
#: often equal those of another has a thin line, drawn above the thick one.
_STYLES: Final = {
    "random": Style("#999999", "s"),
    "static": Style("#E69F00", "^"),
    "best-bandwidth": Style("#D55E00", "o"),
    "n-sys": Style("#0072B2", "v"),
    "t-cpu": Style("#009E73", "D", 1.2),
    "mckp": Style("#000000", "X"),
    "greedy-non-clairvoyant": Style("#56B4E9", "v"),
    "greedy-clairvoyant": Style("#CC79A7", "o"),
    "exclusive": Style("#000000", "X"),
    # Allocation and placement: colour of the first, marker of the second.
    "t-cpu + greedy-non-clairvoyant": Style("#009E73", "v"),
    "best-bandwidth + greedy-non-clairvoyant": Style("#D55E00", "v"),
    "best-bandwidth + greedy-clairvoyant": Style("#CC79A7", "o", 1.2),
}


def style_of(name: str) -> Style:
    """Return the style of an algorithm or a policy."""
    return _STYLES.get(name) or Style(colour_of(name), "o", 1.6)


@dataclass(frozen=True, slots=True)
class LoadPanel:
    """Lines over the minimum I/O-load: a table of `study.summary`, and its axes."""

    table: pl.DataFrame
    by: str
    """The column with the name of the line."""
    y_label: str
    title: str = ""
    logarithmic: bool = False
    error: bool = False
    """The band is the 95 % confidence interval instead of the percentiles 10 to 90."""
    per_cent: bool = False
    names: tuple[str, ...] = ()
    """The lines to draw; empty: all."""


def load_lines(panels: Sequence[LoadPanel], note: str = "") -> Figure:
    """Draw means with a band, panels side by side.

    A line is dotted where in most sets an application completed no phase.
    """
    width = 7.0 if len(panels) == 1 else min(4.7 * len(panels) + 1, 14.5)
    figure = new_figure(width, 4.8)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    drawn: list[str] = []
    for axis, panel in zip(axes, panels, strict=True):
        for name in _names(panel):
            _line(axis, panel, name)
            drawn.append(name)
        _finish(axis, panel)
    _legend(figure, sorted(set(drawn), key=_rank))
    figure.supxlabel(_footnotes(panels, note), fontsize=8, color="#555555")
    return figure


def spread_boxes(rows: pl.DataFrame, names: Sequence[str], note: str) -> Figure:
    """Draw the I/O-spread: for each allocation a box per placement in `names`."""
    allocations = [
        name
        for name in _STYLES
        if (rows["allocation"] == name).any() and name != "mckp"
    ]
    figure = new_figure(8.5, 4.6)
    axis: Any = figure.subplots()
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        for place, allocation in enumerate(allocations):
            values = rows.filter(
                pl.col("placement") == name, pl.col("allocation") == allocation
            )["io_spread"].drop_nulls()
            position = place + (number - (len(names) - 1) / 2) * width
            colour = style_of(name).colour
            upright_box(axis, position, values.to_numpy(), 0.8 * width, colour)
    axis.set_xticks(range(len(allocations)), allocations)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("I/O-spread: busiest minus idlest target\n(fraction of the time)")
    axis.set_xlabel(f"allocation\n{note}")
    tidy(axis, "y")
    figure.legend(
        handles=[Patch(color=style_of(n).colour, label=n, alpha=0.6) for n in names],
        loc="outside upper center",
        ncols=len(names),
        fontsize=9,
        frameon=False,
    )
    return figure


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure (inches) that arranges its own parts."""
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained")
    return figure


def _rank(name: str) -> tuple[int, str]:
    """Return the key that sorts legends: algorithms in the order of `_STYLES`."""
    order = [*_STYLES, *POLICIES]
    return (order.index(name) if name in order else len(order), name)


def _names(panel: LoadPanel) -> list[str]:
    known = panel.table[panel.by].unique().to_list()
    return sorted((n for n in known if n in (panel.names or known)), key=_rank)


def _line(axis: Any, panel: LoadPanel, name: str) -> None:
    """Draw one line with its band; thin lines are above thick ones."""
    table = measured(panel.table.filter(pl.col(panel.by) == name))
    style = style_of(name)
    scale = 100 if panel.per_cent else 1
    loads = table["bin"].to_numpy()
    mean = scale * table["mean"].to_numpy()
    low, high = (scale * table[column].to_numpy() for column in ("low", "high"))
    if panel.error:
        half = scale * table["error"].to_numpy()
        low, high = mean - half, mean + half
    kept = (2 * table["complete"] >= table["sets"]).to_numpy()
    over = 4 - style.width
    axis.fill_between(loads, low, high, color=style.colour, alpha=0.12, lw=0)
    look = {"color": style.colour, "linewidth": style.width, "zorder": over}
    axis.plot(loads, mean, ":", **look)
    solid = mean.copy()
    solid[~kept] = float("nan")
    axis.plot(loads, solid, "-", marker=style.marker, markersize=4.5, **look)


def _finish(axis: Any, panel: LoadPanel) -> None:
    axis.set_title(panel.title, fontsize=10)
    axis.set_xlabel(_X_LABEL)
    axis.set_ylabel(panel.y_label)
    axis.set_xlim(left=0)
    if panel.logarithmic:
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    elif panel.per_cent:
        axis.axhline(0.0, color="#777777", linewidth=0.8, zorder=1)
    tidy(axis, "both")


def _legend(figure: Figure, names: Sequence[str]) -> None:
    handles = []
    for name in names:
        style = style_of(name)
        handles.append(
            Line2D([], [], color=style.colour, marker=style.marker, lw=2, label=name)
        )
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(names), 6),
        fontsize=9,
        frameon=False,
    )


def _footnotes(panels: Sequence[LoadPanel], note: str) -> str:
    """Return the text that explains the band, dotted lines and left out runs."""
    counts = ("sets", "left_out", "complete")
    joined = pl.concat([panel.table.select(counts) for panel in panels])
    percentiles = "10th to 90th percentile of the sets"
    band = "95 % confidence interval of the mean" if panels[0].error else percentiles
    lines = [f"{note}; band: {band}" if note else f"band: {band}"]
    if (2 * joined["complete"] < joined["sets"]).any():
        lines.append(
            "dotted: in most sets an application completed no phase; phases that were "
            "begun count pro rata"
        )
    left_out, sets = (int(joined[name].sum()) for name in ("left_out", "sets"))
    if left_out:
        lines.append(
            f"left out: {left_out / (left_out + sets):.1%} of the runs, in which an "
            "application had hardly begun its I/O"
        )
    return "\n".join(lines)
