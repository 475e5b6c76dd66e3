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
    load_grid,
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


def _table(name: str = T_CPU, number: int = 60, **columns: Any) -> pl.DataFrame:
    """Return a summary of three loads."""
    return pl.DataFrame(
        {
            "metric": "m",
            "contender": name,
            "K": number,
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


def _panel(**settings: Any) -> LoadPanel:
    return LoadPanel("m", {T_CPU: T_CPU}, "y", **settings)


def _lines(table: pl.DataFrame, panel: LoadPanel) -> tuple[Any, Any]:
    """Return the figure of one panel, and its axis."""
    drawn = load_grid(table, [panel])
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
    _, axis = _lines(_table(), _panel(title="a title"))
    assert _curves(axis, "-") == [[1.0, 2.0, 3.0]]
    assert (axis.get_ylabel(), axis.get_title()) == ("y", "K = 60, a title")


def test_per_cent_scales_the_means_and_draws_zero() -> None:
    _, axis = _lines(_table(), _panel(per_cent=True))
    assert _curves(axis, "-") == [[100.0, 200.0, 300.0]]
    assert any(list(line.get_ydata()) == [0.0, 0.0] for line in axis.lines)


def test_a_line_is_only_dotted_where_most_sets_are_incomplete() -> None:
    drawn, axis = _lines(_table(complete=[10, 5, 4]), _panel())
    (solid,) = _curves(axis, "-")
    assert solid[:2] == [1.0, 2.0]
    assert solid[2] != solid[2]
    assert "dotted" in drawn.get_supxlabel()


@pytest.mark.parametrize(
    ("table", "panel", "words"),
    [
        (_table(), _panel(), "10th to 90th percentile"),
        (_table(), _panel(error=True), "95 % confidence"),
        (_table(left_out=[0, 0, 10]), _panel(), "left out: 25.0% of the runs"),
    ],
)
def test_footnotes_explain_the_band_and_the_runs_left_out(
    table: pl.DataFrame, panel: LoadPanel, words: str
) -> None:
    drawn, _ = _lines(table, panel)
    assert words in drawn.get_supxlabel()


def test_loads_with_mostly_unmeasured_sets_are_not_drawn() -> None:
    _, axis = _lines(_table(left_out=[0, 0, 11]), _panel())
    drawn = [line for line in axis.lines if line.get_linestyle() == "-"]
    assert [line.get_xdata().tolist() for line in drawn] == [[0.1, 0.2]]


def test_there_is_a_row_of_panels_per_number_of_applications() -> None:
    table = pl.concat(
        _table(name, number) for name in (T_CPU, BEST_BANDWIDTH) for number in (60, 20)
    )
    both = {T_CPU: T_CPU, BEST_BANDWIDTH: BEST_BANDWIDTH}
    panels = [_panel(), LoadPanel("m", both, "y", logarithmic=True)]
    drawn = load_grid(table, panels, "a note")
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == [BEST_BANDWIDTH, T_CPU]
    assert [axis.get_yscale() for axis in drawn.axes] == ["linear", "log"] * 2
    titles = [axis.get_title() for axis in drawn.axes]
    assert titles == ["K = 20", "K = 20", "K = 60", "K = 60"]
    assert drawn.get_supxlabel().startswith("a note; band")


def test_values_near_zero_do_not_stretch_a_logarithmic_axis() -> None:
    table = _table(mean=[1e-15, 2.0, 3.0], low=[0.0, 1.5, 2.5])
    _, axis = _lines(table, _panel(logarithmic=True, lowest=0.05))
    assert axis.get_ylim()[0] == 0.05


def test_a_single_panel_stands_beside_those_of_other_numbers() -> None:
    table = pl.concat(_table(number=number) for number in (20, 40, 60))
    drawn = load_grid(table, [_panel()])
    heights = {axis.get_position().y0 for axis in drawn.axes}
    assert (len(drawn.axes), len(heights)) == (3, 1)
    assert [axis.get_ylabel() for axis in drawn.axes] == ["y", "", ""]


def test_no_drawing_is_wider_than_a_page() -> None:
    table = pl.concat(_table(number=number) for number in (20, 40, 60))
    for panels in ([_panel()], [_panel()] * 3):
        assert load_grid(table, panels).get_size_inches()[0] <= 10


def test_boxes_of_placements_are_grouped_by_allocation(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        [
            {"K": number, "allocation": a, "placement": p, "io_spread": 0.1 * k}
            for number in (20, 60)
            for a in (T_CPU, BEST_BANDWIDTH)
            for p in (GNC, GC)
            for k in range(5)
        ]
    )
    drawn = spread_boxes(rows, (GNC, GC), "a note")
    assert [axis.get_title() for axis in drawn.axes] == ["K = 20", "K = 60"]
    labels = [label.get_text() for label in drawn.axes[1].get_xticklabels()]
    assert labels == [BEST_BANDWIDTH, T_CPU]
    assert drawn.get_supxlabel() == "allocation\na note"
    path = tmp_path / "boxes.png"
    save_figure(drawn, str(path), {"version": "0", "command": "test"})
    assert path.stat().st_size > 5_000


def test_a_new_figure_has_the_size_in_inches() -> None:
    assert new_figure(3, 2).get_size_inches().tolist() == [3, 2]
