# SPDX-License-Identifier: MIT
"""Parts of Markdown pages that scripts write: tables, and blocks between marks."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import InputError

__all__ = ["markdown_table", "replaced_block"]


def markdown_table(
    titles: Iterable[str], rows: Iterable[Iterable[str]], *, right: bool = False
) -> str:
    """Return a table; with `right`, all columns but the first are aligned right."""
    titles = list(titles)
    rule = "---:" if right else "---"
    lines = [titles, ["---", *[rule] * (len(titles) - 1)], *map(list, rows)]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


def replaced_block(text: str, block: str, content: str) -> str:
    """Return the text with new content between ``<!-- block -->`` and its end.

    Raises
    ------
    InputError
        If the text does not have both marks.
    """
    first, last = f"<!-- {block} -->", f"<!-- end of {block} -->"
    before, found_first, rest = text.partition(first)
    _, found_last, after = rest.partition(last)
    if not (found_first and found_last):
        raise InputError(f"the page has no {first} and {last}")
    return f"{before}{first}\n{content}\n{last}{after}"
