# SPDX-License-Identifier: MIT
"""Numbers for readers: at most three significant digits, small tables.

The 95 % half-width of a number is written behind it: "0.74 ± 0.02". It has one
significant digit (two if the first is 1), and the number ends at the same digit. A
half-width that is below the last digit of the number is left out. A share is between 0
and 1: where its interval would end beyond, the interval is written, "0.9 (0.6 to 1)".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["NumberTable", "number_tables", "number_text"]

#: Significant digits of a number.
_DIGITS: Final = 3
#: Numbers below and above these are written with an exponent.
_SMALL: Final = 1e-4
_LARGE: Final = 1e7
#: A table with more columns than this is turned, if it then has fewer.
_MOST_COLUMNS: Final = 6


@dataclass(frozen=True, slots=True)
class NumberTable:
    """Numbers of a claim as text, in rows and columns."""

    columns: tuple[str, ...]
    """Names of the columns; empty if every row has one number."""
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """Name and texts of every row."""


def number_text(
    value: float | str | None, spread: float | str | None = None, name: str = ""
) -> str:
    """Return a number with its half-width.

    An infinite number may be given as a text ("∞"), as in ``claims.json``. A number
    whose name has the word "share" is between 0 and 1.
    """
    if value is None:
        return "not finite"
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞" if value < 0 else "none"
    if not spread or isinstance(spread, str) or not math.isfinite(spread):
        return _rounded(value, _decimals(value, _DIGITS)) if value else "0"
    first_digit = f"{spread:e}"[0]
    decimals = _decimals(spread, 2 if first_digit == "1" else 1)
    if value:
        decimals = min(decimals, _decimals(value, _DIGITS))
    if round(spread, decimals) == 0:
        return _rounded(value, decimals)
    if "share" in name and not spread <= value <= 1 - spread:
        low, high = max(value - spread, 0.0), min(value + spread, 1.0)
        ends = (_rounded(end, decimals) if end else "0" for end in (low, high))
        return f"{_fixed(value, decimals)} ({' to '.join(ends)})"
    return f"{_fixed(value, decimals)} ± {_fixed(spread, decimals)}"


def _decimals(value: float, digits: int) -> int:
    """Return how many decimals `value` has with so many significant digits."""
    return digits - 1 - int(f"{value:.{digits - 1}e}".partition("e")[2])


def _rounded(value: float, decimals: int) -> str:
    """Return a number without zeros at its end."""
    if 0 < abs(value) < _SMALL or abs(value) >= _LARGE:
        return f"{value:.{_DIGITS}g}"
    text = _fixed(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals, "1,200" with -2 of them."""
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def number_tables(claim: Mapping[str, Any]) -> Iterator[NumberTable]:
    """Yield the numbers of a checked claim: first single ones, then the table."""
    numbers, spread = claim["numbers"], claim.get("spread") or {}
    single = {k: v for k, v in numbers.items() if not isinstance(v, Mapping)}
    if single:
        rows = ((k, (number_text(v, spread.get(k), k),)) for k, v in single.items())
        yield NumberTable((), tuple(rows))
    table = {k: v for k, v in numbers.items() if isinstance(v, Mapping)}
    if not table:
        return
    columns = tuple(dict.fromkeys(name for row in table.values() for name in row))
    texts = {
        (row, column): number_text(
            values[column], spread.get(row, {}).get(column), f"{row} {column}"
        )
        for row, values in table.items()
        for column in values
    }
    names = tuple(table)
    if len(columns) > max(len(names), _MOST_COLUMNS):
        columns, names = names, columns
        texts = {(row, column): text for (column, row), text in texts.items()}
    yield NumberTable(
        columns,
        tuple((n, tuple(texts.get((n, c), "") for c in columns)) for n in names),
    )
