# SPDX-License-Identifier: MIT
"""A pair of figures: two studies and one drawing; claims on I/O nodes only."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.placement_study import PlacementStudy
from penstock.experiments.reproduction import Reproduction, Scale, unchanged
from penstock.papers import FIGURES, get_figure
from penstock.papers.catalog import FigureEntry
from penstock.papers.p2.pairs import figure_pair
from penstock.papers.p2.study import GENERATED

TABLES = Tables(pl.DataFrame({"ratio": [1.0, 2.0]}), pl.DataFrame())


def _draw(_tables: Tables, note: str) -> Figure:
    drawn = Figure()
    drawn.suptitle(note)
    return drawn


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> tuple[Reproduction, Reproduction]:
    """Return a pair of figures that is not in the paper."""
    for name in ("p0-fig1", "p0-fig2"):
        monkeypatch.setitem(FIGURES, name, FigureEntry("a.module", name, "Title"))
    return figure_pair(
        "p0-fig1", "p0-fig2", _draw, lambda tables: tables.rows.head(1), unchanged
    )


def test_each_figure_has_the_study_of_its_profiles(
    pair: tuple[Reproduction, Reproduction],
) -> None:
    studies = [figure.study(Scale.SMOKE) for figure in pair]
    assert [s.name for s in studies if isinstance(s, PlacementStudy)] == [
        "p2-io-nodes",
        "p2-osts",
    ]


def test_only_the_drawing_of_osts_says_that_profiles_are_generated(
    pair: tuple[Reproduction, Reproduction],
) -> None:
    drawn = [figure.draw(TABLES) for figure in pair]
    assert [d.get_suptitle() for d in drawn] == ["", GENERATED]


def test_both_keep_the_same_table(pair: tuple[Reproduction, Reproduction]) -> None:
    assert [figure.summary(TABLES).height for figure in pair] == [1, 1]


def test_sentences_about_io_nodes_are_not_checked_on_osts() -> None:
    for number in range(5, 10):
        nodes, osts = get_figure(f"p2-fig{number}"), get_figure(f"p2-fig{number + 9}")
        assert nodes.claims
        assert not osts.claims
