# SPDX-License-Identifier: MIT
"""HTML pages that need no other file: a figure with its claims, and the index.

The index groups the figures by paper, with counts of the outcomes of their claims. The
claims themselves are on the page of each figure and, all together, on the page "what
holds" (`penstock.experiments.output.what_holds`).
"""

from __future__ import annotations

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
from penstock.experiments.output.verdicts import (
    by_paper,
    counts_text,
    place_of,
    sorted_claims,
    totals_text,
)
from penstock.files import replacing

__all__ = ["INDEX", "WHAT_HOLDS", "write_index", "write_page"]

#: Names of the pages of a folder of figures.
INDEX: Final = "index.html"
WHAT_HOLDS: Final = "what-holds.html"
_TITLE: Final = "Figures reproduced by penstock"


def write_page(record: dict[str, Any], home: Path) -> None:
    """Write ``index.html`` with the figure, beside the files of the figure."""
    name = record["name"]
    drawing = (home / f"{name}.svg").read_text()
    drawing = drawing[drawing.index("<svg") :]
    links = ", ".join(
        f'<a href="{name}.{kind}">{kind.upper()}</a>'
        for kind in ("svg", "png", "parquet", "csv")
    )
    source = record["source"]
    claims = "".join(claim_block(c, source) for c in sorted_claims(record["claims"]))
    body = (
        f"<h1>{escape(record['title'])}</h1>"
        f"<p>{escape(source)}. {_sample(record)}"
        f'Files: {links}, <a href="claims.json">claims</a>.</p>'
        f"{_reference(record)}<figure>{drawing}</figure>"
        f"<h2>{escape(counts_text(record['claims']))}</h2>"
        f"{smoke_notice([record])}{claims}{_made_by(record)}"
    )
    _write(home / INDEX, record["title"], body)


def write_index(records: list[dict[str, Any]], folder: Path) -> None:
    """Write ``index.html`` with a card per figure, by paper, and counts of claims."""
    papers = by_paper(records)
    sections = "".join(
        f"{paper_heading(paper)}"
        f'<div class="cards">{"".join(map(_card, paper.records))}</div>'
        for paper in papers
    )
    body = (
        f"<h1>{_TITLE}</h1><p>{totals_text(papers)}. "
        f'<a href="{WHAT_HOLDS}">What holds</a>: every claim with its numbers.</p>'
        f"{smoke_notice(records)}{count_table(papers)}{sections}"
        f"{''.join(dict.fromkeys(map(_made_by, records)))}"
    )
    _write(folder / INDEX, _TITLE, body)


def _card(record: dict[str, Any]) -> str:
    """Return a picture of the same height for every figure, its title and counts."""
    name, title = record["name"], escape(record["title"])
    page = f"{name}/{INDEX}"
    return (
        f'<a class="card" href="{page}">'
        f'<img src="{name}/{name}.svg" alt="{title}" loading="lazy">'
        f"<b>{title}</b>"
        f'<span class="small">{escape(name)}: {escape(place_of(record))}</span>'
        f'<span class="small">{escape(counts_text(record["claims"]))}</span></a>'
    )


def _sample(record: dict[str, Any]) -> str:
    """Return the number of instances per point; "" if there are no instances."""
    count = record["instances"]
    return f"{count} instances per point. " if count else ""


def _reference(record: dict[str, Any]) -> str:
    reference = record.get("reference", "")
    return f'<p class="small">{escape(reference)}.</p>' if reference else ""


def _made_by(record: dict[str, Any]) -> str:
    facts = record["provenance"]
    return (
        f'<p class="small">penstock {escape(facts["version"])}: '
        f"<code>{escape(facts['command'])}</code></p>"
    )


def _write(path: Path, title: str, body: str) -> None:
    with replacing(path) as stream:
        stream.write(document(title, body).encode())
