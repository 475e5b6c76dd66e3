# SPDX-License-Identifier: MIT
"""A comparison as a figure for a paper: narrow, readable in print, true to scale.

The figure has the width of a column, so that it is included without scaling: its texts
keep their size, 7 points or more. Every value stands at its place on the axis; nothing
is cut off. The bound and the recommended policy are marked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from penstock.errors import InputError, UnknownNameError
from penstock.experiments.output.plots import ShownFigure, colour_of
from penstock.experiments.study import Row

__all__ = ["WIDTHS_IN", "paper_chart"]

#: Width of a column -> inches: columns of ACM and IEEE, and a page of two of them.
WIDTHS_IN: Final = {"single-column": 3.33, "double-column": 7.0}
_NARROWEST_IN: Final = 2.0
_WIDEST_IN: Final = 20.0
#: Sizes of texts (points).
_LABEL: Final = 8
_TICK: Final = 7
_MUTED: Final = "#444444"
_STEPS: Final = (0.01, 0.02, 0.05, 0.1, 0.2)


def paper_chart(
    rows: Sequence[Row], width: str | float, recommended: str | None
) -> Figure:
    """Draw MinYield and Efficiency of every policy, the highest MinYield on top.

    A filled dot is the mean MinYield, with a line from the 10th to the 90th percentile
    of the instances; an open dot is the mean Efficiency. The dashed line is the mean
    bound on MinYield. The name of the recommended policy is bold.

    Parameters
    ----------
    rows
        The rows of a comparison.
    width
        A key of `WIDTHS_IN`, or inches.
    recommended
        Label of the policy to mark; None: no mark.
    """
    names = list(dict.fromkeys(row["policy"] for row in rows))
    means = {name: _mean(rows, name, "min_yield") for name in names}
    names.sort(key=lambda name: -means[name])
    figure = ShownFigure(
        figsize=(_inches(width), 0.19 * len(names) + 0.95), layout="constrained"
    )
    panel = figure.subplots()
    for line, name in enumerate(names):
        _draw_policy(panel, line, rows, name)
    bounds = [row["bound"].min_yield for row in rows if row["bound"]]
    bound = float(np.mean(bounds)) if bounds else None
    if bound is not None:
        panel.axvline(bound, color=_MUTED, linestyle="--", linewidth=0.9, zorder=1)
    _draw_axis(panel, rows)
    panel.set_ylim(len(names) - 0.4, -0.6)
    panel.set_yticks(range(len(names)), names, fontsize=_TICK)
    for label in panel.get_yticklabels():
        if label.get_text() == recommended:
            label.set_fontweight("bold")
    _draw_legend(figure, bound, recommended if recommended in names else None)
    return figure


def _inches(width: str | float) -> float:
    if isinstance(width, str):
        if width not in WIDTHS_IN:
            raise UnknownNameError("width", width, WIDTHS_IN, where="plot")
        return WIDTHS_IN[width]
    if not _NARROWEST_IN <= width <= _WIDEST_IN:
        raise InputError(
            f"{width!r} is not the width of a figure",
            where="plot",
            remedy=f"give {_NARROWEST_IN:g} to {_WIDEST_IN:g} inches, or one of "
            f"{', '.join(WIDTHS_IN)}",
        )
    return width


def _values(rows: Sequence[Row], policy: str, objective: str) -> list[float]:
    return [row[objective] for row in rows if row["policy"] == policy]


def _mean(rows: Sequence[Row], policy: str, objective: str) -> float:
    return float(np.mean(_values(rows, policy, objective)))


def _draw_policy(panel: Any, line: int, rows: Sequence[Row], name: str) -> None:
    colour = colour_of(name)
    reached = _values(rows, name, "min_yield")
    low, high = np.percentile(reached, (10, 90))
    efficiency = _mean(rows, name, "efficiency")
    panel.hlines(line, low, high, color=colour, linewidth=3, alpha=0.4, zorder=2)
    panel.plot(np.mean(reached), line, "o", color=colour, markersize=4, zorder=4)
    panel.plot(
        efficiency,
        line,
        "o",
        markersize=4,
        markerfacecolor="white",
        markeredgecolor=colour,
        markeredgewidth=1,
        zorder=3,
    )


def _draw_axis(panel: Any, rows: Sequence[Row]) -> None:
    """Draw an axis of equal steps from a tick below all values to 1."""
    names = {row["policy"] for row in rows}
    lowest = min(
        *(np.percentile(_values(rows, name, "min_yield"), 10) for name in names),
        *(_mean(rows, name, "efficiency") for name in names),
        1.0 - _STEPS[0],
    )
    step = next(step for step in _STEPS if (1.0 - lowest) / step <= 5 or step == 0.2)
    begin = max(math.floor(lowest / step + 1e-9) * step, 0.0)
    ticks = np.arange(round(begin / step), round(1.0 / step) + 1) * step
    panel.set_xticks(ticks, [f"{tick:.2f}" for tick in ticks], fontsize=_TICK)
    margin = 0.03 * (1.0 - begin)
    panel.set_xlim(begin - margin, 1.0 + margin)
    panel.set_xlabel("yield (1: never delayed)", fontsize=_LABEL, labelpad=2)
    panel.grid(axis="x", color="#dddddd", linewidth=0.5)
    panel.set_axisbelow(True)
    panel.tick_params(axis="y", length=0)
    panel.tick_params(axis="x", length=2, width=0.5)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.spines["bottom"].set_linewidth(0.5)


def _draw_legend(figure: Figure, bound: float | None, recommended: str | None) -> None:
    entries = [
        Line2D([], [], marker="o", ls="", color=_MUTED, ms=4, label="MinYield"),
        Line2D([], [], marker="o", ls="", color=_MUTED, ms=4, mfc="white"),
    ]
    entries[1].set_label("Efficiency")
    if bound is not None:
        entries.append(
            Line2D(
                *([], []),
                ls="--",
                lw=0.9,
                color=_MUTED,
                # Efficiency has no bound here: it may lie to the right of the line.
                label=f"bound on MinYield {bound:.3f}",
            )
        )
    if recommended is not None:
        entries.append(Line2D([], [], ls="", label="bold: recommended"))
    figure.legend(
        handles=entries,
        loc="outside upper center",
        ncols=2 if figure.get_figwidth() < 5 else 4,
        fontsize=_TICK,
        frameon=False,
        handletextpad=0.3,
        columnspacing=1.0,
        borderpad=0.1,
        labelspacing=0.2,
    )
