# SPDX-License-Identifier: MIT
"""Drawings of burst-buffer coordination: delta-graphs, lines of rates, and bars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from penstock.experiments.output.plots import save_figure
from penstock.papers.p4.charts import (
    BarColumns,
    bars,
    delta_panels,
    new_figure,
    rate_lines,
)

DELTA = pl.DataFrame(
    [
        {
            "strategy": strategy,
            "application": name,
            "delay": delay,
            "offset": offset,
            "factor": 2.0 - offset / 60,
            "rate": 100.0 + offset,
        }
        for strategy in ("none", "1a")
        for name in ("A", "B")
        for delay in (0.0, 0.5)
        for offset in (0.0, 30.0)
    ]
)
BARS = pl.DataFrame(
    [
        {"test": test, "application": name, "strategy": strategy, "factor": factor}
        for test in ("one", "two")
        for name in ("A", "B")
        for strategy, factor in (("none", 2.0), ("1a", 1.5))
    ]
)
COLUMNS = BarColumns("test", "application", "strategy", "factor")


def _rectangles(figure: Figure) -> list[Rectangle]:
    """Return the bars of the first panel."""
    return [bar for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]


def test_a_delta_graph_has_a_line_per_delay_and_a_dashed_one_without_strategy() -> None:
    drawn = delta_panels(DELTA, "1a", "none")
    for axis in drawn.axes:
        styles = [line.get_linestyle() for line in axis.lines]
        assert styles.count("--") == 2
        assert styles.count("-") == 3  # two delays and the factor 1
    legend = drawn.axes[1].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["0 ms", "500 ms"]
    assert drawn.get_supxlabel() == "dashed: no strategy"


def test_a_delta_graph_without_a_base_has_no_dashed_lines() -> None:
    drawn = delta_panels(DELTA, "none")
    assert all(line.get_linestyle() == "-" for a in drawn.axes for line in a.lines)
    assert drawn.get_supxlabel() == ""


def test_rates_have_a_line_per_strategy_and_application() -> None:
    rows = DELTA.filter(pl.col("delay") == 0)
    (axis,) = rate_lines(rows, {"none": "interfering", "1a": "staged"}).axes
    _, labels = axis.get_legend_handles_labels()
    assert labels == ["A, interfering", "B, interfering", "A, staged", "B, staged"]
    assert np.asarray(axis.lines[0].get_ydata()).tolist() == [100.0, 130.0]


def test_bars_are_grouped_in_panels_and_named_in_the_legend() -> None:
    drawn = bars(BARS, COLUMNS, "factor", {"none": "interference"})
    assert [axis.get_title() for axis in drawn.axes] == ["one", "two"]
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["interference", "1a"]
    heights = [bar.get_height() for bar in _rectangles(drawn)]
    assert heights == [2.0, 2.0, 1.5, 1.5]
    ticks = drawn.axes[0].get_xticklabels()
    assert [label.get_text() for label in ticks] == ["A", "B"]


def test_a_missing_bar_leaves_its_place_empty() -> None:
    rows = BARS.filter(~((pl.col("application") == "A") & (pl.col("strategy") == "1a")))
    drawn = bars(rows, COLUMNS, "factor")
    centres = [bar.get_x() + bar.get_width() / 2 for bar in _rectangles(drawn)]
    assert centres == pytest.approx([-0.21, 0.79, 1.21])


def test_a_drawing_is_written_as_png(tmp_path: Path) -> None:
    path = tmp_path / "bars.png"
    facts = {"version": "0", "command": "test"}
    save_figure(bars(BARS, COLUMNS, "factor"), str(path), facts)
    assert path.stat().st_size > 5_000
    assert new_figure(3, 2).get_size_inches().tolist() == [3, 2]
