# SPDX-License-Identifier: MIT
"""Drawings of the frontier show what their tables hold."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from penstock.papers.beyond.frontier_charts import (
    draw_counts,
    draw_differences,
    draw_frontier,
    draw_windows,
)
from penstock.papers.beyond.frontier_tables import (
    count_dominations,
    differences,
    means,
    windows_under_base,
)
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.policies import RECOMMENDED
from support.frontier_rows import AHEAD, point_rows

ROWS = pl.concat([point_rows(AHEAD), point_rows(AHEAD, point=1, label="W=1")])


@pytest.mark.parametrize("objective", ["efficiency", "utilization"])
def test_the_frontier_has_a_panel_per_point_with_the_bound(objective: str) -> None:
    drawn = draw_frontier(means(ROWS), objective)
    shown = [axis for axis in drawn.axes if axis.axison]
    assert [axis.get_title() for axis in shown] == ["W=0.8", "W=1"]
    bound = point_rows(AHEAD)["bound"].to_numpy().mean()
    for axis in shown:
        (dashed,) = [line for line in axis.lines if line.get_linestyle() == "--"]
        assert dashed.get_xdata() == pytest.approx([bound, bound])
    (legend,) = drawn.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert {*ALL_POLICIES, RECOMMENDED, "bound on MinYield"} == set(labels)


def test_a_policy_far_below_the_best_is_not_drawn() -> None:
    far = point_rows({**AHEAD, "fcfs": (-0.3, 0.0)})
    near = point_rows(AHEAD)
    counts = [
        len(draw_frontier(means(rows), "efficiency").axes[0].containers)
        for rows in (near, far)
    ]
    assert counts == [9, 8]


def test_differences_are_those_of_the_default() -> None:
    table = differences(ROWS, (RECOMMENDED, "fcfs"))
    left, middle, right = draw_differences(table).axes
    labels = [text.get_text() for text in left.get_yticklabels()]
    assert labels == ["W=0.8", "W=1"]
    for axis, column in ((left, "min_yield_gain"), (middle, "efficiency_gain")):
        dots: Any = axis.collections[-1]
        gains = table.filter(pl.col("policy") == RECOMMENDED)[column].to_list()
        assert [x for x, _ in dots.get_offsets().tolist()] == pytest.approx(gains)
    bars: Any = right.patches
    widths = [bar.get_width() for bar in bars]
    assert widths == pytest.approx([0.03 / 0.09] * 2)


def test_counts_leave_out_a_policy_against_itself() -> None:
    (axis,) = draw_counts(count_dominations(ROWS)).axes
    assert len(axis.texts) == 9 * 8
    assert {text.get_text() for text in axis.texts} == {"0", "2"}
    assert "2 points" in axis.get_title()


def test_windows_have_a_panel_per_trace() -> None:
    rows = pl.concat(
        [
            point_rows(
                {"fcfs": (-0.1, 0.0)}, group=trace, label=f"{trace} M_0", point=n
            )
            for n, trace in enumerate(("NERSC", "TRILAB"))
        ]
    )
    drawn = draw_windows(windows_under_base(rows))
    titles = [axis.get_title() for axis in drawn.axes]
    assert titles == ["NERSC: of 6 windows", "TRILAB: of 6 windows"]
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert sorted(texts) == ["0"] * 8 + ["6"]
