# SPDX-License-Identifier: MIT
"""Catalogue entries: facts about a figure that need no import of its module.

Every folder of `penstock.papers` builds the table of its figures with
`figure_entries`, in its ``__init__.py``. This module imports nothing of penstock, so
that ``penstock reproduce --list`` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["FigureEntry", "figure_entries"]


class FigureEntry(NamedTuple):
    """Where a figure is declared, where it comes from, and its title."""

    module: str
    """Full name of the module that declares the figure."""
    source: str
    """Paper, section and figure."""
    title: str


def figure_entries(
    package: str, paper: str, rows: Mapping[str, tuple[str, str, str]]
) -> dict[str, FigureEntry]:
    """Return the figures of one folder by name.

    A row is (module inside `package`, section and figure, title). The source of a
    figure is "paper, section and figure"; `paper` may be empty.
    """
    prefix = f"{paper}, " if paper else ""
    return {
        name: FigureEntry(f"{package}.{module}", f"{prefix}{place}", title)
        for name, (module, place, title) in rows.items()
    }
