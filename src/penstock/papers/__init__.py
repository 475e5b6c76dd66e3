# SPDX-License-Identifier: MIT
"""The figures and tables of the papers, by the name that the command line uses.

Each folder holds the figures of one paper: bandwidth sharing (`p1`), target allocation
(`p2`), IO-SETS (`p3`), burst-buffer coordination (`p4`), two-level scheduling (`p5`);
`beyond` holds figures that are in no paper. The README of a folder lists its figures,
their claims and run times.

A figure is declared in two places that share no text:

- The table in the ``__init__.py`` of the folder (`penstock.papers.catalog`) holds its
  module, source and title. It imports nothing heavy, so that
  ``penstock reproduce --list`` is fast.
- The module calls `penstock.papers.declaration.figure` with the name of the figure, its
  study and the function that draws it. Source and title come from the table. Claims
  follow as decorated functions (`penstock.experiments.claims`)::

      fig2 = figure("p1-fig2", study=_study, draw=_draw)

      @fig2.claim("FCFS has the lowest Efficiency at every pressure.")
      def _fcfs_worst(tables: Tables) -> Verdict:
          ...

To add a figure, add a row to the table and call `figure` in the module of that row.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from penstock.errors import UnknownNameError
from penstock.papers import beyond, p1, p2, p3, p4, p5

if TYPE_CHECKING:
    from penstock.experiments.reproduction import Reproduction

__all__ = ["FIGURES", "get_figure"]

#: Figure -> its module, source and title, in the order of ``--list``.
FIGURES: Final = {
    **p1.FIGURES,
    **p2.FIGURES,
    **p3.FIGURES,
    **p4.FIGURES,
    **p5.FIGURES,
    **beyond.FIGURES,
}


def get_figure(name: str) -> Reproduction:
    """Import the module of a figure and return the figure, with its claims.

    Raises
    ------
    UnknownNameError
        If no figure has this name.
    """
    if name not in FIGURES:
        raise UnknownNameError("figure", name, [*FIGURES, "all"])
    # Imported here because `declaration` imports this module, and matplotlib.
    from penstock.papers.declaration import declared_figure  # noqa: PLC0415

    importlib.import_module(FIGURES[name].module)
    return declared_figure(name)
