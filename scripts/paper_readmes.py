# SPDX-License-Identifier: MIT
"""Write what holds: the page of all claims, and the counts in the READMEs.

``python scripts/paper_readmes.py [--verdicts FOLDER]``

FOLDER is the output of ``penstock reproduce ... --scale paper -o FOLDER``. The verdicts
on the claims of its figures are taken over into ``docs/background/what-holds.json``;
those of other figures stay. From this file and from the declared figures and claims,
the script writes

- ``docs/background/what-holds.md``: every claim with outcome, numbers and reason;
- the table of figures in ``src/penstock/papers/*/README.md``;
- the counts of claims by paper in ``README.md``.

Text around the tables is written by hand; a table stands between ``<!-- NAME -->`` and
``<!-- end of NAME -->``. A claim that is new, or whose sentence or check has changed
since, is "not measured" (`penstock.experiments.check_digest`). Reasons are those that
are declared now.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from penstock.experiments.check_digest import check_digest
from penstock.experiments.claims import Claim, Outcome, outcome_and_reason
from penstock.experiments.output.markdown import markdown_table, replaced_block
from penstock.experiments.output.numbers import NumberTable, number_tables
from penstock.experiments.output.verdicts import (
    BEYOND,
    COUNT_TITLES,
    PaperRecords,
    by_paper,
    count_cells,
    count_rows,
    counts_text,
    outcome_of,
    outcome_text,
    place_of,
    sorted_claims,
    support_text,
)
from penstock.experiments.output.what_holds import HOW_TO_READ
from penstock.papers import FIGURES, get_figure
from penstock.papers.catalog import REFERENCES

__all__ = [
    "declared_records",
    "main",
    "paper_folders",
    "taken_over",
    "updated_counts",
    "updated_readme",
    "verdicts_text",
    "what_holds_page",
]

ROOT: Final = Path(__file__).parents[1]
PAPERS: Final = ROOT / "src" / "penstock" / "papers"
#: The verdicts at paper scale: figure -> claim -> what ``claims.json`` says.
VERDICTS: Final = ROOT / "docs" / "background" / "what-holds.json"
PAGE: Final = VERDICTS.with_suffix(".md")
#: Parts of a checked claim that the pages show.
_KEPT: Final = (
    *("says", "holds", "depends_on", "holds_at"),
    *("numbers", "spread", "support"),
)
#: More single numbers than this become a table.
_MOST_INLINE: Final = 4

Verdicts = dict[str, dict[str, dict[str, Any]]]


def paper_folders() -> list[Path]:
    """Return the folders of `penstock.papers` that have a README."""
    return sorted(path.parent for path in PAPERS.glob("*/README.md"))


def taken_over(verdicts: Verdicts, folder: Path) -> Verdicts:
    """Return the verdicts with those of the figures that `folder` holds.

    Raises
    ------
    SystemExit
        If a figure was not made at paper scale.
    """
    fresh = dict(verdicts)
    for path in sorted(folder.glob("*/claims.json")):
        record = json.loads(path.read_text())
        if record["provenance"]["scale"] != "paper":
            raise SystemExit(f"{path} is not of paper scale")
        fresh[record["name"]] = {
            claim["name"]: {key: _short(claim[key]) for key in _KEPT}
            | {"check": claim.get("check", "")}
            for claim in record["claims"]
        }
    return {name: fresh[name] for name in FIGURES if name in fresh}


def verdicts_text(verdicts: Verdicts) -> str:
    """Return the verdicts as JSON, one claim per line."""
    figures = []
    for name, claims in verdicts.items():
        lines = [f"{json.dumps(n)}: {_compact(claim)}" for n, claim in claims.items()]
        figures.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(figures) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _short(value: Any) -> Any:
    """Return a number with four digits, which is more than the pages show."""
    if isinstance(value, dict):
        return {key: _short(part) for key, part in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def declared_records(verdicts: Verdicts) -> list[dict[str, Any]]:
    """Return a record per figure with the declared claims, as far as measured.

    ``unmeasured`` are the claims that have no verdict.
    """
    records = []
    for name, entry in FIGURES.items():
        known = verdicts.get(name, {})
        measured, unmeasured = [], []
        for claim in get_figure(name).claims:
            kept = known.get(claim.name)
            facts = {"name": claim.name, "source": claim.source, "beyond": claim.beyond}
            if kept is not None and _is_current(kept, claim):
                measured.append({**kept, **facts, **_explained(kept, claim)})
            else:
                unmeasured.append(facts)
        records.append(
            {
                "name": name,
                "title": entry.title,
                "source": entry.source,
                "paper": entry.paper,
                "reference": REFERENCES.get(entry.paper, ""),
                "claims": measured,
                "unmeasured": unmeasured,
            }
        )
    return records


def _is_current(kept: dict[str, Any], claim: Claim) -> bool:
    """Return False if the sentence or its check has changed since the verdict."""
    return bool(
        kept["says"] == claim.sentence
        and kept.get("check") == check_digest(claim.check)
    )


def _explained(kept: dict[str, Any], claim: Claim) -> dict[str, str]:
    """Return outcome and reason, as the claim is declared now."""
    outcome, reason = outcome_and_reason(
        claim, holds=kept["holds"], depends_on=kept["depends_on"]
    )
    return {"outcome": outcome.value, "reason": reason}


# --- The page ---------------------------------------------------------------------


def what_holds_page(records: Sequence[dict[str, Any]]) -> str:
    """Return the page "what holds" as Markdown."""
    papers = by_paper(records)
    parts = [
        "# What holds",
        "<!-- written by scripts/paper_readmes.py -->",
        HOW_TO_READ,
        "`penstock reproduce all --scale paper -o FOLDER` makes these results again, "
        "with a page `FOLDER/what-holds.html` that shows the same beside the figures. "
        "[How the figures differ from the papers](reproduction.md) lists our choices.",
        _count_table(papers),
        *(part for paper in papers for part in _paper_parts(paper)),
    ]
    return "\n\n".join(parts) + "\n"


def _count_table(papers: Sequence[PaperRecords]) -> str:
    """Return the counts by paper, with those not measured, if any, in a column."""
    missing = {
        paper.name: sum(len(record["unmeasured"]) for record in paper.records)
        for paper in papers
    }
    rows = [[name, *map(str, counts)] for name, counts in count_rows(papers)]
    if not any(missing.values()):
        return markdown_table(COUNT_TITLES, rows, right=True)
    missing["all papers"] = sum(n for name, n in missing.items() if name != BEYOND)
    title, claims, *outcomes = COUNT_TITLES
    return markdown_table(
        (title, f"{claims} measured", *outcomes, "not measured"),
        [[*row, str(missing[row[0]])] for row in rows],
        right=True,
    )


def _paper_parts(paper: PaperRecords) -> Iterable[str]:
    yield f"## {_capital(paper.name)}"
    if paper.reference:
        yield f"{paper.reference}."
    for record in paper.records:
        yield from _figure_parts(record)


def _figure_parts(record: dict[str, Any]) -> Iterable[str]:
    """Return the claims of a figure; those that hold can be folded away."""
    if not record["claims"] and not record["unmeasured"]:
        return
    yield f"### {record['name']}: {record['title']}"
    yield f"{_capital(place_of(record))}: {_score(record)}."
    claims = sorted_claims(record["claims"])
    held = [claim for claim in claims if outcome_of(claim) is Outcome.HOLDS]
    for claim in claims:
        if outcome_of(claim) is not Outcome.HOLDS:
            text = f"**{outcome_text(claim)}**: {claim['says']}{_support(claim)}"
            yield from _claim_parts(text, claim)
    if held:
        yield f"<details><summary>{_held_text(len(held))}</summary>"
        for claim in held:
            text = f"**holds**: {claim['says']}{_support(claim)}"
            yield from _claim_parts(text, claim)
        yield "</details>"


def _capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def _held_text(count: int) -> str:
    return "1 claim that holds" if count == 1 else f"{count} claims that hold"


def _score(record: dict[str, Any]) -> str:
    """Return the counts of a figure in words."""
    unmeasured = len(record["unmeasured"])
    if not record["claims"]:
        noun = "claim" if unmeasured == 1 else "claims"
        return f"{unmeasured} {noun}, not measured" if unmeasured else "no claims"
    text = counts_text(record["claims"])
    return f"{text}, {unmeasured} not measured" if unmeasured else text


def _support(claim: dict[str, Any]) -> str:
    text = support_text(claim)
    return f" ({_capital(text)}.)" if text else ""


def _claim_parts(text: str, claim: dict[str, Any]) -> Iterable[str]:
    """Return the sentence, few numbers behind it, the reason, tables of numbers."""
    tables = list(number_tables(claim))
    inline = [t for t in tables if not t.columns and len(t.rows) <= _MOST_INLINE]
    numbers = "; ".join(f"{name} {texts[0]}" for t in inline for name, texts in t.rows)
    lines = [text]
    if claim["reason"]:
        lines.append(f"*Why:* {claim['reason']}")
    if numbers:
        lines.append(f"*Numbers:* {numbers}")
    # Two blanks at its end break a line.
    yield "  \n".join(lines)
    for table in tables:
        if table not in inline:
            yield _numbers_table(table)


def _numbers_table(table: NumberTable) -> str:
    titles = ["", *(table.columns or ("number",))]
    rows = [[name, *texts] for name, texts in table.rows]
    return markdown_table(titles, rows, right=True)


# --- The READMEs ------------------------------------------------------------------


def updated_readme(folder: Path, records: Iterable[dict[str, Any]]) -> str:
    """Return the README of a paper's folder with the table of its figures."""
    package = f"penstock.papers.{folder.name}."
    own = [r for r in records if FIGURES[r["name"]].module.startswith(package)]
    lines = [[f"`{r['name']}`", r["title"], r["source"], _score(r)] for r in own]
    table = markdown_table(("figure", "shows", "source", "claims"), lines)
    text = (folder / "README.md").read_text()
    return replaced_block(text, "figures", table)


def updated_counts(text: str, records: Sequence[dict[str, Any]]) -> str:
    """Return the project's README with the counts of claims by paper."""
    counts = [
        f"{paper.name} {count_cells(paper.claims)[1]} of {len(paper.claims)}"
        for paper in by_paper(records)
        if paper.reference and paper.claims
    ]
    held = f"At paper scale these claims hold: {', '.join(counts)}." if counts else ""
    page = (
        "[What holds](docs/background/what-holds.md) lists every claim, its numbers "
        "and, where it does not hold, the reason."
    )
    return replaced_block(text, "counts", f"{held} {page}".strip())


def main() -> None:
    """Take the verdicts over, and write the page and the READMEs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    verdicts: Verdicts = json.loads(VERDICTS.read_text())
    if arguments.verdicts:
        verdicts = taken_over(verdicts, arguments.verdicts)
        VERDICTS.write_text(verdicts_text(verdicts))
    records = declared_records(verdicts)
    PAGE.write_text(what_holds_page(records))
    readme = ROOT / "README.md"
    readme.write_text(updated_counts(readme.read_text(), records))
    for folder in paper_folders():
        (folder / "README.md").write_text(updated_readme(folder, records))


if __name__ == "__main__":
    main()
