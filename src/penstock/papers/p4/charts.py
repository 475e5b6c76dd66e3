# SPDX-License-Identifier: MIT
"""Drawings of the figures of burst-buffer coordination: delta-graphs and bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.output.charts import tidy

__all__ = ["BarColumns", "bars", "delta_panels", "new_figure", "rate_lines"]

#: Okabe and Ito's colours, for readers who are colour-blind.
_COLOURS: Final = (
    *("#D55E00", "#E69F00", "#009E73", "#0072B2", "#CC79A7", "#56B4E9", "#000000"),
)
_MARKERS: Final = "osD^vXP"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure (inches) that arranges its own parts."""
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained")
    return figure


def delta_panels(rows: pl.DataFrame, strategy: str, base: str = "") -> Figure:
    """Draw the interference factor against D, a panel per application, a line per d.

    The strategy `base`, if any, is drawn with thin dashed lines.
    """
    figure = new_figure(10.5, 4.2)
    axes = figure.subplots(1, 2, sharey=True)
    delays = rows["delay"].unique().sort().to_list()
    for axis, name in zip(axes, ("A", "B"), strict=True):
        own = rows.filter(pl.col("application") == name)
        for number, delay in enumerate(delays):
            paced = own.filter(pl.col("delay") == delay)
            _delta_line(axis, paced, base, number, dashed=True)
            _delta_line(axis, paced, strategy, number, dashed=False)
        axis.axhline(1.0, color="#777777", linewidth=0.8, zorder=1)
        axis.set_title(f"application {name}", fontsize=10)
        axis.set_xlabel("D: begin of B after that of A (s)")
        axis.set_xlim(left=0)
        tidy(axis, "both")
    axes[0].set_ylabel("interference factor")
    axes[1].legend(frameon=False, fontsize=9, title="d")
    if base:
        figure.supxlabel("dashed: no strategy", fontsize=8, color="#555555")
    return figure


def _delta_line(
    axis: Any, rows: pl.DataFrame, strategy: str, number: int, *, dashed: bool
) -> None:
    """Draw the line of one strategy, if it has rows; all rows have the same d."""
    line = rows.filter(pl.col("strategy") == strategy)
    if line.is_empty():
        return
    look: dict[str, Any] = {"color": _COLOURS[number]}
    if dashed:
        look |= {"linestyle": "--", "linewidth": 0.8, "alpha": 0.6}
    else:
        look |= {"marker": _MARKERS[number], "markersize": 4, "linewidth": 1.6}
        look |= {"label": f"{1000 * line['delay'][0]:g} ms"}
    axis.plot(line["offset"].to_numpy(), line["factor"].to_numpy(), **look)


def rate_lines(rows: pl.DataFrame, labels: dict[str, str]) -> Figure:
    """Draw bandwidths against D, a line per strategy and application."""
    figure = new_figure(7.5, 4.4)
    axis: Any = figure.subplots()
    number = 0
    for strategy, label in labels.items():
        for name in ("A", "B"):
            line = rows.filter(
                pl.col("strategy") == strategy, pl.col("application") == name
            )
            axis.plot(
                line["offset"].to_numpy(),
                line["rate"].to_numpy(),
                color=_COLOURS[number],
                marker=_MARKERS[number],
                markersize=4,
                # Without a strategy both lines are the same: both stay visible.
                linestyle="-" if name == "A" else (0, (3, 3)),
                label=f"{name}, {label}",
            )
            number += 1
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("D: begin of B after that of A (s)")
    axis.set_ylabel("bandwidth (MB/s)")
    axis.legend(frameon=False, fontsize=9)
    tidy(axis, "both")
    return figure


@dataclass(frozen=True, slots=True)
class BarColumns:
    """The columns of a table that `bars` draws."""

    panel: str
    """One panel per value."""
    group: str
    """One group of bars per value, named below the axis."""
    kind: str
    """One bar per value in each group, named in the legend."""
    height: str


def bars(
    rows: pl.DataFrame,
    columns: BarColumns,
    y_label: str,
    names: dict[str, str] | None = None,
) -> Figure:
    """Draw groups of bars; `names` gives the words of the legend for kinds of bars."""
    titles = rows[columns.panel].unique(maintain_order=True).to_list()
    figure = new_figure(max(4.2 * len(titles) + 1.2, 8.0), 4.3)
    axes = figure.subplots(1, len(titles), sharey=True, squeeze=False)[0]
    kinds = rows[columns.kind].unique(maintain_order=True).to_list()
    for axis, title in zip(axes, titles, strict=True):
        shown = rows.filter(pl.col(columns.panel) == title)
        _draw_groups(axis, shown, columns, kinds, names or {})
        axis.set_title(str(title), fontsize=10)
        tidy(axis, "y")
    axes[0].set_ylabel(y_label)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=5, fontsize=9, frameon=False
    )
    return figure


def _draw_groups(
    axis: Any,
    rows: pl.DataFrame,
    columns: BarColumns,
    kinds: Sequence[Any],
    names: dict[str, str],
) -> None:
    groups = rows[columns.group].unique(maintain_order=True).to_list()
    width = 0.84 / len(kinds)
    for number, kind in enumerate(kinds):
        own = rows.filter(pl.col(columns.kind) == kind)
        heights = dict(own.select(columns.group, columns.height).iter_rows())
        places = [i for i, group in enumerate(groups) if group in heights]
        drawn = axis.bar(
            [i + (number - (len(kinds) - 1) / 2) * width for i in places],
            [heights[groups[i]] for i in places],
            0.92 * width,
            color=_COLOURS[number % len(_COLOURS)],
            label=names.get(str(kind), str(kind)),
        )
        axis.bar_label(drawn, fmt="%.3g", fontsize=7, padding=1)
    axis.set_xticks(range(len(groups)), [str(group) for group in groups])
