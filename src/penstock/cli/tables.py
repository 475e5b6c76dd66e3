# SPDX-License-Identifier: MIT
"""Text tables of all commands, and words that several commands print.

rich lays the tables out: it knows how many columns of a terminal a character takes.
The text has no colours and is not cut to the width of a terminal, so that a pipe
receives all of it. rich is imported by the first table: ``penstock --help`` needs none.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

__all__ = ["format_table", "pressure_text"]

#: Blanks between two columns.
_GAP: Final = 2
#: Part of the aimed I/O pressure that may be missing.
_TOLERATED: Final = 0.1
#: Wider than any table (columns of a terminal).
_WIDTH: Final = 1_000_000


def format_table(
    rows: Sequence[Sequence[str]],
    *,
    left: int | None = None,
    gaps: Sequence[int] | None = None,
) -> str:
    """Return the rows as lines of text with aligned columns.

    Parameters
    ----------
    rows
        The cells of every line, the header included. All rows have the same length.
    left
        How many columns are aligned to the left; the others, which hold numbers, are
        aligned to the right. None: all to the left.
    gaps
        Blanks before every column; by default none before the first, else two.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return ""
    columns = len(rows[0])
    gaps = gaps or (0, *(_GAP,) * (columns - 1))
    left = columns if left is None else left
    table = Table.grid()
    for column in range(columns):
        table.add_column(justify="left" if column < left else "right", no_wrap=True)
    for row in rows:
        cells = zip(gaps, row, strict=True)
        table.add_row(*(Text(" " * gap + cell) for gap, cell in cells))
    output = io.StringIO()
    Console(file=output, width=_WIDTH, color_system=None).print(table)
    return "".join(f"{line.rstrip()}\n" for line in output.getvalue().splitlines())


def pressure_text(measured: float, aimed: float | None) -> str:
    """Return the measured I/O pressure and, if there is one, the aimed one.

    A pressure that misses its aim by more than a tenth is called not reached.
    """
    text = f"I/O pressure {measured:.3f}"
    if aimed is None:
        return text
    is_missed = measured < (1.0 - _TOLERATED) * aimed
    return f"{text} (aimed at {aimed:g}{': not reached' * is_missed})"
