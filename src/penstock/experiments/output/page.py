# SPDX-License-Identifier: MIT
"""HTML pages that need no other file: a figure with its claims, and the index."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from penstock.model import replacing

__all__ = ["write_index", "write_page"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto;
       padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } img, svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: .95rem; }
td, th { text-align: left; vertical-align: top; padding: .4rem .6rem;
         border-bottom: 1px solid #ddd; }
.yes { color: #117733; font-weight: 600; } .no { color: #CC3311; font-weight: 600; }
code, .small { font-size: .85rem; color: #555; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr));
         gap: 1.5rem; }
.card { border: 1px solid #ddd; border-radius: 6px; padding: .8rem; }
a { color: #0b5394; }
"""

#: How to read the boxes, which are those of bandwidth sharing.
_BOXES = (
    "Boxes, where there are any: 25th to 75th percentile of the instances; whiskers: "
    "10th to 90th; dots and lines: means. "
)


def write_page(record: dict[str, Any], home: Path) -> None:
    """Write ``index.html`` with the figure, beside the files of the figure."""
    name = record["name"]
    drawing = (home / f"{name}.svg").read_text()
    drawing = drawing[drawing.index("<svg") :]
    links = ", ".join(
        f'<a href="{name}.{kind}">{kind.upper()}</a>'
        for kind in ("svg", "png", "parquet", "csv")
    )
    body = (
        f"<h1>{escape(record['title'])}</h1>"
        f"<p>{escape(record['source'])}. {_sample(record)}"
        f'Files: {links}, <a href="claims.json">claims</a>.</p>'
        f"{drawing}{_claims_table(record['claims'])}{_made_by(record)}"
    )
    _write(home / "index.html", record["title"], body)


def write_index(records: list[dict[str, Any]], folder: Path) -> None:
    """Write ``index.html`` with a card per figure and all claims."""
    cards = "".join(
        f'<div class="card"><a href="{r["name"]}/index.html">'
        f'<img src="{r["name"]}/{r["name"]}.svg" alt="{escape(r["title"])}"></a>'
        f'<p><a href="{r["name"]}/index.html">{escape(r["name"])}</a>: '
        f"{escape(r['title'])}</p><p>{_score(r['claims'])}</p></div>"
        for r in records
    )
    claims = [claim for r in records for claim in r["claims"]]
    body = (
        f"<h1>Figures reproduced by penstock</h1><p>{_score(claims)}</p>"
        f'<div class="cards">{cards}</div><h2>All claims</h2>{_claims_table(claims)}'
        f"{_made_by(records[0]) if records else ''}"
    )
    _write(folder / "index.html", "Figures reproduced by penstock", body)


def _sample(record: dict[str, Any]) -> str:
    """Return the number of instances per point; "" if there are no instances."""
    count = record["instances"]
    return f"{count} instances per point. {_BOXES}" if count else ""


def _score(claims: list[dict[str, Any]]) -> str:
    if not claims:
        return "no claims"
    held = sum(claim["holds"] for claim in claims)
    return f"{held} of {len(claims)} claims hold"


def _claims_table(claims: list[dict[str, Any]]) -> str:
    if not claims:
        return ""
    lines = "".join(_claim_line(claim) for claim in claims)
    head = "<tr><th>claim</th><th>holds</th><th>numbers</th></tr>"
    return f"<table>{head}{lines}</table>"


def _claim_line(claim: dict[str, Any]) -> str:
    answer = "yes" if claim["holds"] else "no"
    verdict = f'<span class="{answer}">{answer}</span>'
    numbers = "<br>".join(_number_lines(claim["numbers"]))
    note = ""
    if claim.get("reason"):
        note = f'<br><span class="small">{escape(claim["reason"])}</span>'
    return (
        f"<tr><td>{escape(claim['says'])}"
        f'<br><span class="small">{escape(claim["source"])}</span>'
        f"{note}</td>"
        f"<td>{verdict}</td><td><code>{numbers}</code></td></tr>"
    )


def _number_lines(numbers: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, number in numbers.items():
        if isinstance(number, dict):
            yield from _number_lines(number, f"{prefix}{name}, ")
        else:
            yield f"{escape(prefix + name)} {_shown(number)}"


def _shown(number: float | None) -> str:
    """Return a number of a claim as text; None stands for a number not finite."""
    return "not finite" if number is None else f"{number:g}"


def _made_by(record: dict[str, Any]) -> str:
    facts = record["provenance"]
    return (
        f'<p class="small">penstock {escape(facts["version"])}: '
        f"<code>{escape(facts['command'])}</code></p>"
    )


def _write(path: Path, title: str, body: str) -> None:
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )
    with replacing(path) as stream:
        stream.write(text.encode())
