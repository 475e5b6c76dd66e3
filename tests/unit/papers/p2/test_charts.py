# SPDX-License-Identifier: MIT
"""Drawings of target allocation: lines over the load, boxes, legends and footnotes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from penstock.experiments.output.plots import save_figure
from penstock.papers.p2.charts import (
    LoadPanel,
    load_lines,
    new_figure,
    spread_boxes,
    style_of,
)
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    GC,
    GNC,
    PLACEMENTS,
    T_CPU,
)


def _table(name: str = T_CPU, **columns: Any) -> pl.DataFrame:
    """Return a summary of three loads."""
    return pl.DataFrame(
        {
            "allocation": name,
            "bin": [0.1, 0.2, 0.3],
            "sets": 10,
            "left_out": 0,
            "complete": 10,
            "mean": [1.0, 2.0, 3.0],
            "low": [0.5, 1.5, 2.5],
            "high": [1.5, 2.5, 3.5],
            "error": 0.1,
            **columns,
        }
    )


def _lines(panel: LoadPanel) -> tuple[Any, Any]:
    """Return the figure of one panel, and its axis."""
    drawn = load_lines([panel])
    (axis,) = drawn.axes
    return drawn, axis


def _curves(axis: Any, style: str) -> list[list[float]]:
    return [
        line.get_ydata().tolist()
        for line in axis.lines
        if line.get_linestyle() == style and len(line.get_xdata()) == 3
    ]


def test_algorithms_have_different_looks() -> None:
    for names in (ALLOCATIONS, PLACEMENTS):
        looks = {(style_of(n).colour, style_of(n).marker) for n in names}
        assert len(looks) == len(names)
    assert style_of("fair-share").marker == "o"


def test_a_line_goes_through_the_means() -> None:
    _, axis = _lines(LoadPanel(_table(), "allocation", "y"))
    assert _curves(axis, "-") == [[1.0, 2.0, 3.0]]
    assert axis.get_ylabel() == "y"


def test_per_cent_scales_the_means_and_draws_zero() -> None:
    _, axis = _lines(LoadPanel(_table(), "allocation", "y", per_cent=True))
    assert _curves(axis, "-") == [[100.0, 200.0, 300.0]]
    assert any(list(line.get_ydata()) == [0.0, 0.0] for line in axis.lines)


def test_a_line_is_only_dotted_where_most_sets_are_incomplete() -> None:
    table = _table(complete=[10, 5, 4])
    drawn, axis = _lines(LoadPanel(table, "allocation", "y"))
    (solid,) = _curves(axis, "-")
    assert solid[:2] == [1.0, 2.0]
    assert solid[2] != solid[2]
    assert "dotted" in drawn.get_supxlabel()


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        (LoadPanel(_table(), "allocation", "y"), "10th to 90th percentile"),
        (LoadPanel(_table(), "allocation", "y", error=True), "95 % confidence"),
        (
            LoadPanel(_table(left_out=[0, 0, 10]), "allocation", "y"),
            "left out: 25.0% of the runs",
        ),
    ],
)
def test_footnotes_explain_the_band_and_the_runs_left_out(
    panel: LoadPanel, words: str
) -> None:
    drawn, _ = _lines(panel)
    assert words in drawn.get_supxlabel()


def test_loads_with_mostly_unmeasured_sets_are_not_drawn() -> None:
    _, axis = _lines(LoadPanel(_table(left_out=[0, 0, 11]), "allocation", "y"))
    drawn = [line for line in axis.lines if line.get_linestyle() == "-"]
    assert [line.get_xdata().tolist() for line in drawn] == [[0.1, 0.2]]


def test_the_legend_has_the_lines_of_all_panels_in_a_fixed_order() -> None:
    both = pl.concat([_table(T_CPU), _table(BEST_BANDWIDTH)])
    panels = [
        LoadPanel(both, "allocation", "y", names=(T_CPU,)),
        LoadPanel(both, "allocation", "y", logarithmic=True),
    ]
    drawn = load_lines(panels, "a note")
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == [BEST_BANDWIDTH, T_CPU]
    assert [axis.get_yscale() for axis in drawn.axes] == ["linear", "log"]
    assert drawn.get_supxlabel().startswith("a note; band")


def test_boxes_of_placements_are_grouped_by_allocation(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        [
            {"allocation": a, "placement": p, "io_spread": 0.1 * k}
            for a in (T_CPU, BEST_BANDWIDTH, "mckp")
            for p in (GNC, GC)
            for k in range(5)
        ]
    )
    drawn = spread_boxes(rows, (GNC, GC), "a note")
    (axis,) = drawn.axes
    assert [label.get_text() for label in axis.get_xticklabels()] == [
        BEST_BANDWIDTH,
        T_CPU,
    ]
    assert axis.get_xlabel() == "allocation\na note"
    path = tmp_path / "boxes.png"
    save_figure(drawn, str(path), {"version": "0", "command": "test"})
    assert path.stat().st_size > 5_000


def test_a_new_figure_has_the_size_in_inches() -> None:
    assert new_figure(3, 2).get_size_inches().tolist() == [3, 2]
