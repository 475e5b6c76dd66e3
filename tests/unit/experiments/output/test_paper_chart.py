# SPDX-License-Identifier: MIT
"""Figures for papers: their size, their texts, and that nothing is cut off."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

import penstock as ps
from penstock.errors import InputError
from penstock.experiments.output.paper_chart import WIDTHS_IN, paper_chart
from unit.samples import pair, steady_three

POLICIES = ["fcfs", "fair-share", "greedy-yield", "soft-deadline"]


@pytest.fixture(scope="module")
def result() -> ps.ComparisonResult:
    return ps.compare([pair(), steady_three()], POLICIES)


def _texts(figure: Figure) -> list[Any]:
    return [text for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("width", [*WIDTHS_IN, 5.0])
def test_texts_are_readable_in_print(
    width: str | float, result: ps.ComparisonResult
) -> None:
    figure = result.plot(width=width)
    expected = WIDTHS_IN[width] if isinstance(width, str) else width
    assert figure.get_figwidth() == expected
    assert min(text.get_fontsize() for text in _texts(figure)) >= 7


def test_every_value_is_on_the_axis(result: ps.ComparisonResult) -> None:
    (panel,) = result.plot(width="single-column").axes
    low, high = panel.get_xlim()
    drawn = [x for line in panel.lines for x in np.atleast_1d(line.get_xdata())]
    reached = [row["min_yield"] for row in result.rows]
    assert low < min(*drawn, np.mean(reached))
    assert max(drawn) <= 1.0 < high
    ticks = panel.get_xticks()
    assert np.allclose(np.diff(ticks), ticks[1] - ticks[0])
    assert [float(label.get_text()) for label in panel.get_xticklabels()] == (
        pytest.approx(list(ticks))
    )


def test_the_bound_and_the_recommendation_are_marked(
    result: ps.ComparisonResult,
) -> None:
    figure = result.plot(width="single-column")
    (panel,) = figure.axes
    bold = [
        label.get_text()
        for label in panel.get_yticklabels()
        if label.get_fontweight() == "bold"
    ]
    assert bold == [result.recommended] == ["soft-deadline"]
    words = " ".join(text.get_text() for text in _texts(figure))
    bound = np.mean([row["bound"].min_yield for row in result.rows])
    assert f"bound on MinYield {bound:.3f}" in words
    assert "bold: recommended" in words
    (dashed,) = (line for line in panel.lines if line.get_linestyle() == "--")
    assert np.asarray(dashed.get_xdata())[0] == pytest.approx(bound)


def test_without_bound_and_recommendation(result: ps.ComparisonResult) -> None:
    rows = [row | {"bound": None} for row in result.rows]
    words = [text.get_text() for text in _texts(paper_chart(rows, 3.0, None))]
    assert not any("bound" in word or "bold" in word for word in words)


@pytest.mark.parametrize("width", ["narrow", 0.0, 1000.0, -1.0])
def test_widths_that_are_refused(
    width: str | float, result: ps.ComparisonResult
) -> None:
    with pytest.raises(InputError, match="width"):
        result.plot(width=width)
