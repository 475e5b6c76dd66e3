# SPDX-License-Identifier: MIT
"""Drawings of the figures of target allocation: lines over the load, and boxes.

Figures have a row of panels per number K of applications. They are 10 inches wide at
most, so that their text is legible at the width of a page. Every algorithm has its own
colour and marker in all figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from penstock.experiments.output.charts import tidy, upright_box
from penstock.experiments.output.plots import colour_of
from penstock.policies import POLICIES

__all__ = ["LoadPanel", "Style", "load_grid", "new_figure", "spread_boxes", "style_of"]

_X_LABEL: Final = "minimum I/O-load, I/O-load(π_sys)"
#: Inches: width of a figure, height of a row of panels, of the rest.
_WIDTH: Final = 10.0
_ROW: Final = 2.9
_MARGIN: Final = 1.1


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
    "t-cpu, GNC": Style("#009E73", "v"),
    "best-bandwidth, GNC": Style("#D55E00", "v"),
    "best-bandwidth, GC": Style("#CC79A7", "o", 1.2),
}


def style_of(name: str) -> Style:
    """Return the style of an algorithm or a policy."""
    return _STYLES.get(name) or Style(colour_of(name), "o", 1.6)


@dataclass(frozen=True, slots=True)
class LoadPanel:
    """What a column of panels shows: lines over the minimum I/O-load, and its axes."""

    metric: str
    """The value of column ``metric`` in a table of `study.summary`."""
    lines: Mapping[str, str]
    """Contender -> name of its line, as in the legend."""
    y_label: str
    title: str = ""
    logarithmic: bool = False
    lowest: float | None = None
    """Where a logarithmic axis begins, if values near 0 would stretch it."""
    error: bool = False
    """The band is the 95 % confidence interval instead of the percentiles 10 to 90."""
    per_cent: bool = False


def load_grid(
    table: pl.DataFrame, panels: Sequence[LoadPanel], note: str = ""
) -> Figure:
    """Draw means with a band: a row per K, a column per panel.

    `table` holds tables of `study.summary`. A line is dotted where in most problems an
    application completed no phase.
    """
    numbers = table["K"].unique().sort().to_list()
    # One column: the panels of all K stand side by side.
    shape = (len(numbers), len(panels)) if len(panels) > 1 else (1, len(numbers))
    figure = new_figure(_WIDTH, _ROW * shape[0] + _MARGIN)
    axes = figure.subplots(
        *shape, squeeze=False, sharex=True, sharey="col" if len(panels) > 1 else "all"
    )
    places = [(number, panel) for number in numbers for panel in panels]
    for axis, (number, panel) in zip(axes.flat, places, strict=True):
        in_panel = table.filter(pl.col("K") == number, pl.col("metric") == panel.metric)
        for contender, name in panel.lines.items():
            _line(axis, panel, in_panel.filter(contender=contender), style_of(name))
        axis.set_title(_title(number, panel), fontsize=10)
    for column in range(shape[1]):
        _finish(axes[:, column], panels[column % len(panels)], first=column == 0)
    drawn = {name for panel in panels for name in panel.lines.values()}
    _legend(figure, sorted(drawn, key=_rank))
    figure.supxlabel(_footnotes(table, panels, note), fontsize=9, color="#555555")
    return figure


def _title(number: int, panel: LoadPanel) -> str:
    return f"K = {number}, {panel.title}" if panel.title else f"K = {number}"


def spread_boxes(rows: pl.DataFrame, names: Sequence[str], note: str) -> Figure:
    """Draw the I/O-spread: for each K and allocation a box per placement in `names`.

    `rows` has the columns ``K``, ``allocation``, ``placement`` and ``io_spread``.
    """
    numbers = rows["K"].unique().sort().to_list()
    figure = new_figure(_WIDTH, _ROW * max(len(numbers), 1) + _MARGIN)
    axes = figure.subplots(max(len(numbers), 1), 1, squeeze=False, sharex=True)[:, 0]
    for axis, number in zip(axes, numbers, strict=False):
        _boxes(axis, rows.filter(pl.col("K") == number), names)
        axis.set_title(f"K = {number}", fontsize=10)
        axis.set_ylim(bottom=0)
        tidy(axis, "y")
    figure.supylabel("I/O-spread: busiest minus idlest target (fraction of the time)")
    figure.supxlabel(f"allocation\n{note}", fontsize=9)
    figure.legend(
        handles=[Patch(color=style_of(n).colour, label=n, alpha=0.6) for n in names],
        loc="outside upper center",
        ncols=len(names),
        fontsize=10,
        frameon=False,
    )
    return figure


def _boxes(axis: Any, rows: pl.DataFrame, names: Sequence[str]) -> None:
    """Draw the boxes of one K."""
    allocations = [name for name in _STYLES if (rows["allocation"] == name).any()]
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


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure (inches) that arranges its own parts."""
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained")
    return figure


def _rank(name: str) -> tuple[int, str]:
    """Return the key that sorts legends: algorithms in the order of `_STYLES`."""
    order = [*_STYLES, *POLICIES]
    return (order.index(name) if name in order else len(order), name)


def _line(axis: Any, panel: LoadPanel, table: pl.DataFrame, style: Style) -> None:
    """Draw one line with its band; thin lines are above thick ones.

    Loads at which less than half of the problems are measured are left out.
    """
    table = table.filter(pl.col("sets") > 0, pl.col("sets") >= pl.col("left_out"))
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


def _finish(axes: Any, panel: LoadPanel, *, first: bool) -> None:
    """Label the panels of a column, the x axis below the last one."""
    for axis in axes:
        if panel.logarithmic:
            axis.set_yscale("log")
            axis.set_ylim(bottom=panel.lowest)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        elif panel.per_cent:
            axis.axhline(0.0, color="#777777", linewidth=0.8, zorder=1)
        if len(axes) > 1 or first:
            axis.set_ylabel(panel.y_label)
        axis.set_xlim(left=0)
        tidy(axis, "both")
    axes[-1].set_xlabel(_X_LABEL)


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
        fontsize=10,
        frameon=False,
    )


def _footnotes(table: pl.DataFrame, panels: Sequence[LoadPanel], note: str) -> str:
    """Return the text that explains the band, dotted lines and left out runs."""
    percentiles = "10th to 90th percentile of the problems"
    band = "95 % confidence interval of the mean" if panels[0].error else percentiles
    lines = [f"{note}; band: {band}" if note else f"band: {band}"]
    if (2 * table["complete"] < table["sets"]).any():
        lines.append(
            "dotted: in most problems an application completed no phase; phases that "
            "were begun count pro rata"
        )
    left_out, kept = (int(table[name].sum()) for name in ("left_out", "sets"))
    if left_out:
        lines.append(
            f"left out: {left_out / (left_out + kept):.1%} of the runs, in which an "
            "application had hardly begun its I/O"
        )
    return "\n".join(lines)
