# SPDX-License-Identifier: MIT
"""Catalogue entries: facts about a figure that need no import of its module.

Every folder of `penstock.papers` builds the table of its figures with
`figure_entries`, in its ``__init__.py``. This module imports nothing of penstock, so
that ``penstock reproduce --list`` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["REFERENCES", "FigureEntry", "figure_entries"]

#: Short name of a paper -> its reference, as in ``docs/papers.md``.
REFERENCES: Final = {
    "bandwidth sharing": "Anne Benoit, Thomas Herault, Lucas Perotin, Yves Robert, "
    "Frédéric Vivien: Revisiting I/O bandwidth-sharing strategies for HPC "
    "applications. Journal of Parallel and Distributed Computing 188, 2024",
    "target allocation": "Alexis Bandet, Francieli Boito, Guillaume Pallez: Allocation "
    "and placement algorithms for scheduling distributed I/O resources in HPC "
    "systems. Inria research report 9549, 2024",
    "IO-SETS": "Francieli Boito, Guillaume Pallez, Luan Teylo, Nicolas Vidal: IO-SETS: "
    "Simple and efficient approaches for I/O bandwidth management. COMPAS, 2022",
    "burst-buffer coordination": "Anthony Kougkas, Matthieu Dorier, Rob Latham, Rob "
    "Ross, Xian-He Sun: Leveraging burst buffer coordination to prevent I/O "
    "interference. IEEE International Conference on e-Science, 2016",
    "two-level scheduling": "Yiqi Xu, Ming Zhao: Two-level throughput and latency IO "
    "control for parallel file systems. International Workshop on Feedback "
    "Computing, 2013",
}


class FigureEntry(NamedTuple):
    """Where a figure is declared, where it comes from, and its title."""

    module: str
    """Full name of the module that declares the figure."""
    source: str
    """Paper, section and figure."""
    title: str
    paper: str = ""
    """Short name of the paper; empty for figures that are in no paper."""


def figure_entries(
    package: str, paper: str, rows: Mapping[str, tuple[str, str, str]]
) -> dict[str, FigureEntry]:
    """Return the figures of one folder by name.

    A row is (module inside `package`, section and figure, title). The source of a
    figure is "paper, section and figure"; `paper` may be empty.
    """
    prefix = f"{paper}, " if paper else ""
    return {
        name: FigureEntry(f"{package}.{module}", f"{prefix}{place}", title, paper)
        for name, (module, place, title) in rows.items()
    }
