# SPDX-License-Identifier: MIT
"""Parts of HTML pages: the document, a claim, tables of numbers and of counts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Final

from penstock.experiments.claims import Outcome
from penstock.experiments.output.numbers import NumberTable, number_tables
from penstock.experiments.output.verdicts import (
    COUNT_TITLES,
    PaperRecords,
    count_rows,
    outcome_of,
    outcome_text,
    support_text,
)

__all__ = [
    "CSS_CLASSES",
    "claim_block",
    "count_table",
    "document",
    "html_table",
    "paper_heading",
    "smoke_notice",
]

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto;
       padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .3rem 0; }
td, th { padding: .15rem .9rem .15rem 0; text-align: left; font-weight: 400; }
th { color: #555; } td { font-variant-numeric: tabular-nums; }
table.counts td, table.counts th { border-bottom: 1px solid #ddd;
       padding: .3rem 1.4rem .3rem 0; } table.counts td + td { text-align: right; }
.claim { border-left: 4px solid; padding: .1rem 0 .1rem .8rem; margin: .9rem 0; }
.claim p { margin: .1rem 0; } .badge { font-weight: 600; font-size: .85rem; }
.holds { border-color: #117733; } .holds .badge { color: #117733; }
.fails { border-color: #CC3311; } .fails .badge { color: #CC3311; }
.depends { border-color: #AA7700; } .depends .badge { color: #8A6100; }
.contradicted { border-color: #332288; } .contradicted .badge { color: #332288; }
code, .small { font-size: .85rem; color: #555; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(21rem, 1fr));
         gap: 1.2rem; }
.card { border: 1px solid #ddd; border-radius: 6px; padding: .8rem; color: inherit;
        text-decoration: none; display: flex; flex-direction: column; gap: .2rem; }
.card:hover { border-color: #0b5394; }
.card img { width: 100%; height: 12rem; object-fit: contain; }
.scroll { overflow-x: auto; }
a { color: #0b5394; }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 .7rem; }
  .cards { grid-template-columns: 1fr; }
  td, th { padding-right: .6rem; font-size: .8rem; }
  table.counts td, table.counts th { padding-right: .7rem; }
}
#some:checked ~ section .holds { display: none; }
"""

#: Outcome -> class of its block in the pages.
CSS_CLASSES: Final = {
    Outcome.HOLDS: "holds",
    Outcome.FAILS: "fails",
    Outcome.DEPENDS: "depends",
    Outcome.CONTRADICTED: "contradicted",
}


_SMOKE: Final = (
    "These results are of smoke scale: verdicts are only indicative. "
    "--scale paper computes as many instances as the papers."
)


def smoke_notice(records: Sequence[dict[str, Any]]) -> str:
    """Return a warning if results are of smoke scale; else ""."""
    scales = {record["provenance"].get("scale") for record in records}
    return f"<p><b>{_SMOKE}</b></p>" if "smoke" in scales else ""


def document(title: str, body: str) -> str:
    """Return a whole page."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def claim_block(claim: dict[str, Any], source: str = "") -> str:
    """Return a claim: outcome, sentence, reason and numbers.

    Its source is named unless it is `source`, that of the figure.
    """
    parts = [
        f'<p><span class="badge">{escape(outcome_text(claim))}</span>'
        f"{_support_span(claim)}</p><p>{escape(claim['says'])}</p>"
    ]
    if claim.get("reason"):
        parts.append(f"<p>Why: {escape(claim['reason'])}</p>")
    if claim["source"] != source:
        parts.append(f'<p class="small">{escape(claim["source"])}</p>')
    parts += map(_number_table, number_tables(claim))
    return f'<div class="claim {CSS_CLASSES[outcome_of(claim)]}">{"".join(parts)}</div>'


def _support_span(claim: dict[str, Any]) -> str:
    text = support_text(claim)
    return f' <span class="small">{text}</span>' if text else ""


def _number_table(table: NumberTable) -> str:
    head = ""
    if table.columns:
        head = "<tr><th></th>" + _cells("th", table.columns) + "</tr>"
    rows = "".join(
        f"<tr><th>{escape(name)}</th>{_cells('td', texts)}</tr>"
        for name, texts in table.rows
    )
    return f'<div class="scroll"><table>{head}{rows}</table></div>'


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts; the first row is the header."""
    lines = [
        f"<tr>{_cells('td' if number else 'th', row)}</tr>"
        for number, row in enumerate(rows)
    ]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def count_table(papers: Sequence[PaperRecords]) -> str:
    """Return the counts of outcomes by paper; "" without claims."""
    rows = count_rows(papers)
    if not any(counts[0] for _, counts in rows):
        return ""
    lines = "".join(
        f"<tr>{_cells('td', (name, *map(str, counts)))}</tr>" for name, counts in rows
    )
    head = f"<tr>{_cells('th', COUNT_TITLES)}</tr>"
    return f'<div class="scroll"><table class="counts">{head}{lines}</table></div>'


def paper_heading(paper: PaperRecords) -> str:
    """Return the short name of a paper as a heading, with its reference below."""
    name = paper.name[:1].upper() + paper.name[1:]
    anchor = paper.name.replace(" ", "-")
    reference = f'<p class="small">{escape(paper.reference)}.</p>'
    return f'<h2 id="{escape(anchor)}">{escape(name)}</h2>' + (
        reference if paper.reference else ""
    )
