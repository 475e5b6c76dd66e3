# SPDX-License-Identifier: MIT
"""`figure` declares a figure of the catalogue in the module that computes it.

A figure shows the rows of studies, or of a table that a function computes (`rows`).
Such a table is computed like a study of one piece, a `TableStudy`: by a worker, and
kept until the code changes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from penstock.errors import InternalError
from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import (
    Reproduction,
    Scale,
    Work,
    all_rows,
    no_rows,
    unchanged,
)
from penstock.experiments.study import Declaration, Piece, Row
from penstock.papers import FIGURES
from penstock.papers.catalog import REFERENCES

__all__ = ["TableStudy", "declared_figure", "figure"]

_declared: dict[str, Reproduction] = {}


def figure(
    name: str,
    *,
    study: Callable[[Scale], Work] | None = None,
    rows: Callable[[Scale], pl.DataFrame] = no_rows,
    draw: Callable[[Tables], Figure],
    prepare: Callable[[Tables], Tables] = unchanged,
    summary: Callable[[Tables], pl.DataFrame] = all_rows,
) -> Reproduction:
    """Declare a figure and return it, so that claims can be added to it.

    Source and title come from `penstock.papers.FIGURES`. `Reproduction` describes the
    functions; either `study` or `rows` is given.
    """
    entry = FIGURES[name]
    made = Reproduction(
        name,
        entry.title,
        entry.source,
        study or partial(TableStudy.of, name),
        draw,
        prepare,
        summary,
        rows,
        entry.paper,
        REFERENCES.get(entry.paper, ""),
    )
    _declared[name] = made
    return made


def declared_figure(name: str) -> Reproduction:
    """Return a figure whose module has been imported.

    Raises
    ------
    InternalError
        If the module that the catalogue names does not declare the figure.
    """
    if name not in _declared:
        raise InternalError(f"{FIGURES[name].module} does not declare {name}")
    return _declared[name]


@dataclass(frozen=True, slots=True)
class TableStudy(Declaration):
    """A study of one piece: the table that the function `rows` of a figure computes."""

    scale: Scale

    CONTENDER = ()

    @classmethod
    def of(cls, name: str, scale: Scale) -> TableStudy:
        """Return the study of a figure."""
        return cls(name, (), 1, scale)

    def rows(self, point: int, index: int) -> Iterator[Row]:
        """Compute the table; yield its rows."""
        del point, index
        importlib.import_module(FIGURES[self.name].module)
        return declared_figure(self.name).rows(self.scale).iter_rows(named=True)

    def pieces(self) -> Iterator[Piece]:
        """Yield the only piece."""
        yield Piece(self, 0, 0, 1)

    def name_of(self, piece: Piece) -> str:
        """Return the name of the only piece in messages."""
        del piece
        return f"the table of {self.name}"

    def cost_of(self, piece: Piece) -> float:
        """Return the number of pieces: how long a table takes is not known before."""
        return float(piece.count)

    def arranged(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows as they are, and no times."""
        return rows, pl.DataFrame()

    def foreign_code(self) -> Iterator[Callable[..., Any]]:
        """Yield nothing: all code is part of penstock."""
        return iter(())
