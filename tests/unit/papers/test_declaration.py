# SPDX-License-Identifier: MIT
"""Declaring a figure: source and title come from the catalogue."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.errors import InternalError
from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.papers import FIGURES
from penstock.papers.catalog import FigureEntry
from penstock.papers.declaration import TableStudy, declared_figure, figure

ROWS = pl.DataFrame({"ratio": [1.0, 2.0]})


def _rows(_scale: Scale) -> pl.DataFrame:
    return ROWS


def _draw(_tables: Tables) -> Figure:
    return Figure()


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add a figure to the catalogue; return its name."""
    entry = FigureEntry("a.module", "paper 0, Figure 1", "Title")
    monkeypatch.setitem(FIGURES, "p0-fig1", entry)
    return "p0-fig1"


def test_a_figure_takes_source_and_title_from_the_catalogue(name: str) -> None:
    made = figure(name, rows=_rows, draw=_draw)
    assert (made.name, made.source, made.title) == (
        "p0-fig1",
        "paper 0, Figure 1",
        "Title",
    )
    assert made.claims == []
    assert declared_figure(name) is made


def test_all_rows_are_kept_unless_the_figure_says_otherwise(name: str) -> None:
    tables = Tables(ROWS, pl.DataFrame())
    plain = figure(name, rows=_rows, draw=_draw)
    assert plain.prepare(tables) is tables
    assert plain.summary(tables) is ROWS
    short = figure(
        name, rows=_rows, draw=_draw, summary=lambda tables: tables.rows.head(1)
    )
    assert short.summary(tables).height == 1


def test_a_figure_that_no_module_declares_is_our_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(FIGURES, "p0-undeclared", FigureEntry("a.module", "", ""))
    with pytest.raises(
        InternalError, match=r"a\.module does not declare p0-undeclared"
    ):
        declared_figure("p0-undeclared")


def test_a_figure_outside_the_catalogue_cannot_be_declared() -> None:
    with pytest.raises(KeyError):
        figure("p0-fig3", rows=_rows, draw=_draw)


def test_a_table_is_kept_as_it_was_computed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(FIGURES, "p0-tab", FigureEntry("json", "", ""))
    table = pl.DataFrame(
        {
            "text": ["b", "a", None],
            "ratio": [1.0, float("inf"), None],
            "count": [1, 2, 3],
            "list": [[1.0], [], [2.0, 3.0]],
        }
    )
    scales = []

    def rows(scale: Scale) -> pl.DataFrame:
        scales.append(scale)
        return table

    study = figure("p0-tab", rows=rows, draw=_draw).study(Scale.PAPER)
    assert isinstance(study, TableStudy)
    for _ in range(2):
        assert run_study(study, tmp_path, Inline()).equals(table)
    assert scales == [Scale.PAPER], "computed once"
    assert [piece.name for piece in study.pieces()] == ["the table of p0-tab"]


def test_a_figure_with_a_study_has_no_rows_of_its_own(name: str) -> None:
    made = figure(name, study=lambda scale: TableStudy.of(name, scale), draw=_draw)
    with pytest.raises(InternalError, match="come from studies"):
        made.rows(Scale.SMOKE)
