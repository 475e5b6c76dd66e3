# SPDX-License-Identifier: MIT
"""`figure` declares a figure of the catalogue in the module that computes it."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from matplotlib.figure import Figure

from penstock.errors import InternalError
from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import (
    Reproduction,
    Scale,
    Work,
    all_rows,
    unchanged,
)
from penstock.papers import FIGURES

__all__ = ["declared_figure", "figure"]

_declared: dict[str, Reproduction] = {}


def figure(
    name: str,
    *,
    study: Callable[[Scale], Work],
    draw: Callable[[Tables], Figure],
    prepare: Callable[[Tables], Tables] = unchanged,
    summary: Callable[[Tables], pl.DataFrame] = all_rows,
) -> Reproduction:
    """Declare a figure and return it, so that claims can be added to it.

    Source and title come from `penstock.papers.FIGURES`. `Reproduction` describes the
    four functions.
    """
    entry = FIGURES[name]
    made = Reproduction(name, entry.title, entry.source, study, draw, prepare, summary)
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
