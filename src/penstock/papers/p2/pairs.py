# SPDX-License-Identifier: MIT
"""Figures that the paper shows twice: for I/O nodes and, in appendix B, for OSTs.

Both figures of a `FigurePair` are drawn by the same function and have the same claims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import ClaimCase, Tables, Verdict
from penstock.experiments.reproduction import Reproduction
from penstock.papers.declaration import figure
from penstock.papers.p2.study import GENERATED, IO_NODES, OSTS, case_study

__all__ = ["FigurePair", "figure_pair"]

_Checking = TypeVar("_Checking", bound=Callable[..., Verdict])


@dataclass(frozen=True, slots=True)
class FigurePair:
    """The same figure for two sets of profiles; see `figure_pair`."""

    io_nodes: Reproduction
    osts: Reproduction

    def claim(
        self,
        sentence: str,
        *,
        name: str = "",
        source: str = "",
        reason: str = "",
        contradicted: str = "",
    ) -> Callable[[_Checking], _Checking]:
        """Declare a claim of both figures; parameters as in `Reproduction.claim`."""

        def declare(check: _Checking) -> _Checking:
            for one in (self.io_nodes, self.osts):
                one.claim(
                    sentence,
                    name=name,
                    source=source,
                    reason=reason,
                    contradicted=contradicted,
                )(check)
            return check

        return declare

    def claim_cases(self, *cases: ClaimCase) -> Callable[[_Checking], _Checking]:
        """Declare claims of both figures, as `Reproduction.claim_cases` does."""

        def declare(check: _Checking) -> _Checking:
            for one in (self.io_nodes, self.osts):
                one.claim_cases(*cases)(check)
            return check

        return declare


def figure_pair(
    io_nodes: str,
    osts: str,
    draw: Callable[[Tables, str], Figure],
    summary: Callable[[Tables], pl.DataFrame],
) -> FigurePair:
    """Declare two figures by their names in the catalogue.

    `draw` takes the tables and a note to print below the figure. The note of the
    second figure says that the OST profiles are generated.
    """
    return FigurePair(
        figure(
            io_nodes,
            study=case_study(IO_NODES),
            draw=lambda tables: draw(tables, ""),
            summary=summary,
        ),
        figure(
            osts,
            study=case_study(OSTS),
            draw=lambda tables: draw(tables, GENERATED),
            summary=summary,
        ),
    )
