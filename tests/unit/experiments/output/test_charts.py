# SPDX-License-Identifier: MIT
"""Charts show the values of the table."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from penstock.experiments.output.charts import (
    LABELS,
    binned,
    binned_lines,
    grouped_boxes,
    over_base,
    parameter_boxes,
    policies_of,
    pressure_scatter,
    rank_lines,
    ratio_grid,
)
from penstock.experiments.output.plots import colour_of, save_figure

POLICIES = ("fair-share", "fcfs", "set-10:period=given")
FACTS = {"version": "1", "command": "penstock x"}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Return 2 traces x 3 machines x 10 instances x 3 policies."""
    draw = np.random.default_rng(1)
    made = []
    points = itertools.product(("NERSC", "TRILAB"), (0, 2, 5))
    for point, (trace, machine) in enumerate(points):
        for instance in range(10):
            pressure = draw.uniform(0.2, 1.2)
            for policy in POLICIES:
                values = draw.uniform(0.1, 1.0, 2)
                made.append(
                    {
                        "point": point,
                        "trace": trace,
                        "machine": machine,
                        "instance": instance,
                        "pressure": pressure,
                        "policy": policy,
                        "min_yield": values[0],
                        "efficiency": values[1],
                    }
                )
    return pl.DataFrame(made)


def _rectangle(patch: Patch) -> Rectangle:
    assert isinstance(patch, Rectangle)
    return patch


def _legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def _values(
    rows: pl.DataFrame, column: str, metric: str, key: Any, policy: str
) -> np.ndarray:
    chosen = rows.filter((pl.col(column) == key) & (pl.col("policy") == policy))
    return chosen[metric].to_numpy()


def test_policies_are_in_the_order_of_their_table() -> None:
    names = ["mine.allocate", "set-10:period=given", "fcfs", "set-10", "fair-share"]
    frame = pl.DataFrame({"policy": names * 2})
    assert policies_of(frame) == [
        *("fair-share", "fcfs", "set-10", "set-10:period=given", "mine.allocate"),
    ]


def test_a_box_per_value_and_policy_between_the_quartiles(rows: pl.DataFrame) -> None:
    figure = grouped_boxes(rows, "machine", ("min_yield", "efficiency"))
    assert [axis.get_ylabel() for axis in figure.axes] == ["MinYield", "Efficiency"]
    assert figure.axes[-1].get_xlabel() == LABELS["machine"]
    assert [t.get_text() for t in figure.axes[-1].get_xticklabels()] == ["0", "2", "5"]
    assert _legend(figure) == list(POLICIES)
    boxes = figure.axes[0].patches
    assert len(boxes) == 3 * len(POLICIES)
    keys = itertools.product(POLICIES, (0, 2, 5))
    for box, (policy, machine) in zip(boxes, keys, strict=True):
        values = _values(rows, "machine", "min_yield", machine, policy)
        first, third = np.percentile(values, (25, 75))
        low, height = _rectangle(box).get_y(), _rectangle(box).get_height()
        assert (low, low + height) == pytest.approx((first, third))


def test_boxes_of_a_value_stand_side_by_side(rows: pl.DataFrame) -> None:
    figure = grouped_boxes(rows, "machine", ("min_yield",))
    boxes = [_rectangle(patch) for patch in figure.axes[0].patches]
    edges = sorted((b.get_x(), b.get_x() + b.get_width()) for b in boxes)
    for (_, end), (begin, _) in itertools.pairwise(edges):
        assert end < begin


def test_every_other_swept_parameter_has_its_own_panels(rows: pl.DataFrame) -> None:
    figure = grouped_boxes(
        rows, "machine", ("min_yield", "efficiency"), apart=["trace"]
    )
    assert [axis.get_title() for axis in figure.axes] == [
        *("trace = NERSC", "trace = TRILAB", "", ""),
    ]
    for panel, trace in zip(figure.axes, ("NERSC", "TRILAB"), strict=False):
        of_trace = rows.filter(pl.col("trace") == trace)
        boxes = panel.patches
        assert len(boxes) == 3 * len(POLICIES)
        for box, key in zip(boxes, itertools.product(POLICIES, (0, 2, 5)), strict=True):
            values = _values(of_trace, "machine", "min_yield", key[1], key[0])
            assert _rectangle(box).get_y() == pytest.approx(np.percentile(values, 25))
            low, high = panel.get_ylim()
            whiskers = np.percentile(values, (10, 90))
            assert low <= whiskers[0] <= whiskers[1] <= high


def test_many_parts_go_on_below(rows: pl.DataFrame) -> None:
    figure = grouped_boxes(rows, "trace", ("min_yield",), apart=["machine", "trace"])
    titles = [axis.get_title() for axis in figure.axes]
    assert len(titles) == 6
    assert titles[0] == f"{LABELS['machine']} = 0, trace = NERSC"
    seven = rows.with_columns(n=pl.int_range(pl.len()) % 7)
    figure = grouped_boxes(seven, "trace", ("min_yield",), apart=["n"])
    assert [axis.get_title() for axis in figure.axes] == [f"n = {k}" for k in range(7)]


def test_points_shows_every_result(rows: pl.DataFrame) -> None:
    figure = grouped_boxes(rows, "machine", ("min_yield",), points=True)
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "."]
    drawn = np.concatenate([np.asarray(line.get_ydata()) for line in dots])
    assert sorted(drawn) == sorted(rows["min_yield"])


def test_a_column_per_parameter(rows: pl.DataFrame) -> None:
    tables = {"machine": rows, "noise": rows.with_columns(noise=pl.lit(0.5))}
    figure = parameter_boxes(tables, ("min_yield", "efficiency"))
    assert len(figure.axes) == 4
    assert [axis.get_xlabel() for axis in figure.axes] == [
        *("", "", LABELS["machine"], LABELS["noise"]),
    ]
    assert [axis.get_ylabel() for axis in figure.axes] == [
        *("MinYield", "", "Efficiency", ""),
    ]


def test_rank_lines_begin_at_rank_one() -> None:
    curves = {"fcfs": np.array([0.5, 0.6, 0.7]), "fair-share": np.array([0.4, 0.4, 1])}
    figure = rank_lines([("W = 0.5", curves), ("W = 1", curves)], "rank")
    assert [axis.get_title() for axis in figure.axes] == ["W = 0.5", "W = 1"]
    line = figure.axes[0].lines[0]
    assert np.asarray(line.get_xdata()).tolist() == [1, 2, 3]
    assert np.asarray(line.get_ydata()).tolist() == [0.5, 0.6, 0.7]
    assert line.get_color() == colour_of("fcfs")
    assert _legend(figure) == ["fcfs", "fair-share"]


def test_over_base_divides_by_the_same_instance(rows: pl.DataFrame) -> None:
    ratios = over_base(
        rows.sample(fraction=1, shuffle=True, seed=2), "min_yield", "fcfs"
    )
    assert ratios.height == rows.height
    own = ratios.filter(pl.col("policy") == "fcfs")["ratio"]
    assert own.to_list() == [1.0] * own.len()
    one = (pl.col("point") == 4) & (pl.col("instance") == 7)
    fair, base = (
        rows.filter(one & (pl.col("policy") == name))["min_yield"].item()
        for name in ("fair-share", "fcfs")
    )
    ratio = ratios.filter(one & (pl.col("policy") == "fair-share"))["ratio"].item()
    assert ratio == pytest.approx(fair / base)


def test_ratio_grid_has_a_panel_for_all_but_the_base(rows: pl.DataFrame) -> None:
    figure = ratio_grid(rows, "min_yield", "fair-share")
    shown = [axis for axis in figure.axes if axis.axison]
    assert [axis.get_title() for axis in shown] == ["fcfs", "set-10:period=given"]
    ratios = np.asarray(shown[0].lines[0].get_ydata())
    low, high = shown[0].get_ylim()
    assert low < ratios.min()
    assert ratios.max() < high
    texts = [tick.get_text() for tick in shown[0].get_yticklabels()]
    assert "1" in texts
    assert [text[0] for text in texts if not text[0].isdigit()] == ["≤", "≥"]


def test_the_axis_of_ratios_fits_nearly_all_of_them(rows: pl.DataFrame) -> None:
    fair = rows.filter(pl.col("policy") == "fair-share")
    near = fair.with_columns(pl.lit("fcfs").alias("policy"), pl.col("min_yield") * 1.05)
    figure = ratio_grid(pl.concat([fair, near]), "min_yield", "fair-share")
    low, high = figure.axes[0].get_ylim()
    assert 0.85 < low < 0.9
    assert 1.1 < high < 1.15


def test_scatter_shows_every_window(rows: pl.DataFrame) -> None:
    figure = pressure_scatter(rows, "min_yield", by="machine", panel="trace")
    panels = figure.axes[:2]
    assert [axis.get_title() for axis in panels] == [
        *("NERSC (90 windows)", "TRILAB (90 windows)"),
    ]
    for axis, trace in zip(panels, ("NERSC", "TRILAB"), strict=True):
        drawn = np.asarray(axis.collections[0].get_offsets())
        of_trace = rows.filter(pl.col("trace") == trace)
        assert sorted(drawn[:, 1]) == sorted(of_trace["min_yield"])


def test_bins_hold_every_window_once(rows: pl.DataFrame) -> None:
    table = binned(rows, "min_yield", "trace")
    for trace, policy in itertools.product(("NERSC", "TRILAB"), POLICIES):
        of_trace = table.filter(
            (pl.col("trace") == trace) & (pl.col("policy") == policy)
        )
        assert of_trace["windows"].sum() == 30
        total = (of_trace["windows"] * of_trace["mean"]).sum()
        expected = _values(rows, "trace", "min_yield", trace, policy).sum()
        assert total == pytest.approx(expected)
        assert of_trace["pressure"].is_sorted()


def test_bins_of_known_pressures() -> None:
    """From 0 to 25, a bin is 1 wide; the highest pressure is in the last bin."""
    frame = pl.DataFrame(
        {
            "trace": "t",
            "policy": "fcfs",
            "pressure": [0.0, 0.5, 1.0, 25.0],
            "min_yield": [0.25, 0.75, 1.0, 0.5],
        }
    )
    table = binned(frame, "min_yield", "trace")
    assert table["pressure"].to_list() == pytest.approx([0.5, 1.5, 24.5])
    assert table["mean"].to_list() == [0.5, 1.0, 0.5]
    assert table["deviation"].to_list() == [0.25, 0.0, 0.0]
    assert table["windows"].to_list() == [2, 1, 1]


def test_bins_when_all_pressures_are_equal() -> None:
    frame = pl.DataFrame(
        {"trace": "t", "policy": "fcfs", "pressure": [0.5] * 3, "min_yield": [1.0] * 3}
    )
    table = binned(frame, "min_yield", "trace")
    assert table["windows"].to_list() == [3]
    assert table["pressure"].to_list() == [0.5]


@pytest.mark.parametrize("logarithmic", [False, True])
def test_binned_lines_draw_the_means(rows: pl.DataFrame, logarithmic: bool) -> None:
    figure = binned_lines(rows, "min_yield", "trace", logarithmic=logarithmic)
    first = figure.axes[0]
    assert first.get_yscale() == ("log" if logarithmic else "linear")
    table = binned(rows, "min_yield", "trace").filter(pl.col("trace") == "NERSC")
    for line, policy in zip(first.lines, POLICIES, strict=True):
        means = table.filter(pl.col("policy") == policy)["mean"]
        assert np.asarray(line.get_ydata()).tolist() == means.to_list()


def test_every_chart_can_be_written_and_has_the_same_bytes(
    rows: pl.DataFrame, tmp_path: Any
) -> None:
    curves = {"fcfs": np.linspace(0.5, 1, 5)}
    charts: dict[str, Callable[[], Figure]] = {
        "boxes": lambda: grouped_boxes(rows, "machine", ("min_yield",), points=True),
        "parameters": lambda: parameter_boxes({"machine": rows}, ("min_yield",)),
        "ranks": lambda: rank_lines([("one", curves)], "rank"),
        "scatter": lambda: pressure_scatter(rows, "min_yield", "machine", "trace"),
        "ratios": lambda: ratio_grid(rows, "min_yield", "fcfs"),
        "lines": lambda: binned_lines(rows, "min_yield", "trace"),
    }
    for name, chart in charts.items():
        for number in "12":
            save_figure(chart(), str(tmp_path / f"{name}{number}.svg"), FACTS)
        one, two = ((tmp_path / f"{name}{n}.svg").read_bytes() for n in "12")
        assert one == two, name
