# SPDX-License-Identifier: MIT
"""Outcomes of checked claims, in words and counts, by paper.

A *record* is the content of a ``claims.json``: one figure, with its checked claims.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.experiments.claims import Outcome
from penstock.units import counted

__all__ = [
    "BEYOND",
    "COUNT_TITLES",
    "WORST_FIRST",
    "PaperRecords",
    "by_paper",
    "count_cells",
    "count_rows",
    "counts_text",
    "outcome_of",
    "outcome_text",
    "place_of",
    "sorted_claims",
    "support_text",
    "totals_text",
]

Record = dict[str, Any]

#: The name of the group of figures that are in no paper.
BEYOND: Final = "beyond the papers"
#: The outcomes in the order in which a reader wants them.
WORST_FIRST: Final = tuple(reversed(Outcome))
#: Titles of the columns of a table of counts; `count_rows` returns its rows.
COUNT_TITLES: Final = (
    *("paper", "claims", "hold", "depend on a parameter"),
    *("contradicted by the paper itself", "do not hold"),
)
#: Where a record has claims: checked ones, and those that are not measured yet.
_CLAIM_LISTS: Final[tuple[str, ...]] = ("claims", "unmeasured")


@dataclass(frozen=True, slots=True)
class PaperRecords:
    """The figures of one paper."""

    name: str
    reference: str
    """Authors, title, place and year."""
    records: tuple[Record, ...]

    @property
    def claims(self) -> list[dict[str, Any]]:
        """All claims of the paper."""
        return [claim for record in self.records for claim in record["claims"]]


def by_paper(records: Iterable[Record]) -> list[PaperRecords]:
    """Group figures by paper, in the order of their first figure.

    A figure of a paper with claims that are not in the paper is also in the group
    `BEYOND`, with these claims alone.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        for part in _parts(record):
            groups.setdefault(part.get("paper") or BEYOND, []).append(part)
    return [
        PaperRecords(name, part[0].get("reference", ""), tuple(part))
        for name, part in sorted(groups.items(), key=lambda item: item[0] == BEYOND)
    ]


def _parts(record: Record) -> Iterator[Record]:
    """Yield the figure with the claims of its paper, and with the others, if any."""
    if not record.get("paper"):
        yield record
        return
    lists = {key: record[key] for key in _CLAIM_LISTS if key in record}
    said = {key: [c for c in claims if not _beyond(c)] for key, claims in lists.items()}
    other = {key: [c for c in claims if _beyond(c)] for key, claims in lists.items()}
    yield {**record, **said}
    if any(other.values()):
        yield {**record, **other, "paper": "", "reference": ""}


def _beyond(claim: Mapping[str, Any]) -> bool:
    return bool(claim.get("beyond"))


def place_of(record: Mapping[str, Any]) -> str:
    """Return section and figure; the name of the paper stands elsewhere."""
    source: str = record["source"]
    return source.removeprefix(f"{record.get('paper', '')}, ")


def outcome_of(claim: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a checked claim."""
    if "outcome" in claim:
        return Outcome(claim["outcome"])
    return Outcome.HOLDS if claim["holds"] else Outcome.FAILS


def outcome_text(claim: Mapping[str, Any]) -> str:
    """Return the outcome in words, such as "depends on K: holds at 20 and 40"."""
    outcome = outcome_of(claim)
    if outcome is Outcome.CONTRADICTED:
        return "contradicted by the paper itself"
    if outcome is not Outcome.DEPENDS:
        return str(outcome)
    *others, last = claim["holds_at"] or ["no single value"]
    values = f"{', '.join(others)} and {last}" if others else last
    return f"{outcome} {claim['depends_on']}: holds at {values}"


def support_text(claim: Mapping[str, Any]) -> str:
    """Return how sure the outcome is; "" if all resamples of the instances agree."""
    support = claim.get("support")
    if support is None or support == float(claim["holds"]):
        return ""
    return f"holds in {support:.0%} of the resamples"


def sorted_claims(claims: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the claims, those that do not hold first."""
    return sorted(claims, key=lambda claim: WORST_FIRST.index(outcome_of(claim)))


def count_cells(claims: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the number of claims, and of each outcome, as in `COUNT_TITLES`."""
    counts = Counter(map(outcome_of, claims))
    return [counts.total(), *(counts[outcome] for outcome in Outcome)]


def count_rows(papers: Iterable[PaperRecords]) -> list[tuple[str, list[int]]]:
    """Return a row of counts per paper; the last row counts the claims of papers."""
    papers = list(papers)
    rows = [(paper.name, count_cells(paper.claims)) for paper in papers]
    published = [paper for paper in papers if paper.name != BEYOND]
    if len(published) > 1:
        every = [claim for paper in published for claim in paper.claims]
        rows.insert(len(published), ("all papers", count_cells(every)))
    return rows


def counts_text(claims: Iterable[Mapping[str, Any]]) -> str:
    """Return the counts in words: "5 of 7 claims hold, 1 depends, 1 does not".

    Claims that are not in the paper are counted behind those that are.
    """
    claims = list(claims)
    said = [claim for claim in claims if not _beyond(claim)]
    other = [claim for claim in claims if _beyond(claim)]
    if not said:
        return _plain_counts(other)
    text = _plain_counts(said)
    return f"{text}; {BEYOND}: {_plain_counts(other)}" if other else text


def _plain_counts(claims: Iterable[Mapping[str, Any]]) -> str:
    total, hold, depend, contradicted, fail = count_cells(claims)
    if not total:
        return "no claims"
    text = f"{hold} of {counted(total, 'claim')} {'holds' if hold == 1 else 'hold'}"
    parts = {
        "depends on a parameter" if depend == 1 else "depend on a parameter": depend,
        "contradicted by the paper itself": contradicted,
        "does not" if fail == 1 else "do not": fail,
    }
    return ", ".join([text, *(f"{n} {words}" for words, n in parts.items() if n)])


def totals_text(papers: Iterable[PaperRecords]) -> str:
    """Return the counts of all papers in words, then those beyond the papers."""
    return counts_text(
        {**claim, "beyond": paper.name == BEYOND}
        for paper in papers
        for claim in paper.claims
    )
