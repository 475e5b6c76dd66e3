# SPDX-License-Identifier: MIT
"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["format_table"]


def format_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: int
) -> str:
    """Return lines of columns that are as wide as need be, two spaces apart.

    The first `left` columns are words, set to the left; the others are numbers.
    """
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join(
            f"{cell:{'<' if number < left else '>'}{widths[number]}}"
            for number, cell in enumerate(line)
        ).rstrip()
        + "\n"
        for line in lines
    )
