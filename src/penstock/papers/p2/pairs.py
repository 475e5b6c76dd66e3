# SPDX-License-Identifier: MIT
"""Figures that the paper shows twice: for I/O nodes and, in appendix B, for OSTs.

Both are drawn by the same function. What the paper says about the first one is a claim
about I/O nodes and not checked on OSTs: section 6.3 says what is different there, and
its claims are those of Figures 12 and 13. Appendix B claims nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction
from penstock.papers.declaration import figure
from penstock.papers.p2.study import GENERATED, IO_NODES, OSTS, case_study

__all__ = ["figure_pair"]


def figure_pair(
    io_nodes: str,
    osts: str,
    draw: Callable[[Tables, str], Figure],
    summary: Callable[[Tables], pl.DataFrame],
    prepare: Callable[[Tables], Tables],
) -> tuple[Reproduction, Reproduction]:
    """Declare two figures by their names in the catalogue.

    `draw` takes the prepared tables and a note to print below the figure. The note of
    the second figure says that the OST profiles are generated.
    """
    return (
        figure(
            io_nodes,
            study=case_study(IO_NODES),
            prepare=prepare,
            draw=lambda tables: draw(tables, ""),
            summary=summary,
        ),
        figure(
            osts,
            study=case_study(OSTS),
            prepare=prepare,
            draw=lambda tables: draw(tables, GENERATED),
            summary=summary,
        ),
    )
