# SPDX-License-Identifier: MIT
"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "format_table", "pressure_text"]


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


def counted(number: int, noun: str) -> str:
    """Return ``1 run``, ``2 runs``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def pressure_text(measured: float, aimed: float | None) -> str:
    """Return the I/O pressure that came out, and the one that was aimed at if any."""
    text = f"I/O pressure {measured:.3f}"
    return text if aimed is None else f"{text} (aimed at {aimed:g})"
