# SPDX-License-Identifier: MIT
"""The page "what holds": every claim of every figure, with outcome, numbers and reason.

It answers one question: does this claim hold, and if not, why? Claims are grouped by
paper and figure; in a figure those that do not hold come first. A switch at the top
hides the claims that hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from penstock.experiments.output.html import (
    claim_block,
    count_table,
    document,
    paper_heading,
    smoke_notice,
)
from penstock.experiments.output.page import INDEX, WHAT_HOLDS
from penstock.experiments.output.verdicts import (
    PaperRecords,
    by_paper,
    counts_text,
    place_of,
    sorted_claims,
)
from penstock.files import replacing

__all__ = ["HOW_TO_READ", "write_what_holds"]

_TITLE: Final = "What holds"

#: The text that explains outcomes and numbers, for all forms of this page.
HOW_TO_READ: Final = (
    "A claim is a sentence that a paper draws from a figure, in our words, checked "
    "on our table of the same figure. It holds, or does not hold; it depends on a "
    "parameter if it holds at some values of it only; and it is contradicted by the "
    "paper itself if it does not hold here and another figure, number or sentence of "
    "the paper, or the authors' published data, says otherwise, too. Behind ± is the "
    "95 % half-width of a number over instances, by bootstrap. There is no ± if "
    "nothing is random, if the half-width is below the last digit, if there are "
    "fewer than three instances, or if the number exists in fewer than two "
    "resamples. Claims that are not in a paper, but ours, count as beyond the "
    "papers."
)


def write_what_holds(records: Sequence[dict[str, Any]], folder: Path) -> None:
    """Write ``what-holds.html`` beside the index page."""
    papers = [paper for paper in by_paper(records) if paper.claims]
    body = (
        f'<h1>{_TITLE}</h1><p><a href="{INDEX}">All figures</a></p>'
        f"{smoke_notice(records)}<p>{escape(HOW_TO_READ)}</p>{count_table(papers)}"
        '<input type="radio" name="shown" id="every" checked>'
        '<label for="every">all claims</label> '
        '<input type="radio" name="shown" id="some">'
        '<label for="some">hide claims that hold</label>'
        f"{''.join(map(_section, papers))}"
    )
    with replacing(folder / WHAT_HOLDS) as stream:
        stream.write(document(_TITLE, body).encode())


def _section(paper: PaperRecords) -> str:
    figures = "".join(_figure(record) for record in paper.records if record["claims"])
    return f"<section>{paper_heading(paper)}{figures}</section>"


def _figure(record: dict[str, Any]) -> str:
    """Return the claims of a figure, those that do not hold first."""
    claims = record["claims"]
    blocks = (claim_block(c, record["source"]) for c in sorted_claims(claims))
    return (
        f'<h3><a href="{record["name"]}/{INDEX}">{escape(record["title"])}</a></h3>'
        f'<p class="small">{escape(place_of(record))}: {escape(counts_text(claims))}'
        f"</p>{''.join(blocks)}"
    )
