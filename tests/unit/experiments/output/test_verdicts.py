# SPDX-License-Identifier: MIT
"""Outcomes in words and counts, by paper."""

from __future__ import annotations

from typing import Any

from penstock.experiments.claims import Outcome
from penstock.experiments.output.verdicts import (
    by_paper,
    count_cells,
    count_rows,
    counts_text,
    outcome_of,
    outcome_text,
    sorted_claims,
    totals_text,
)


def _claim(outcome: Outcome, **changes: Any) -> dict[str, Any]:
    holds = outcome is Outcome.HOLDS
    return {"holds": holds, "outcome": outcome.value, **changes}


HOLDS, FAILS = _claim(Outcome.HOLDS), _claim(Outcome.FAILS)
CONTRADICTED = _claim(Outcome.CONTRADICTED)
DEPENDS = _claim(Outcome.DEPENDS, depends_on="K", holds_at=["20", "40"])


def test_outcomes_in_words() -> None:
    assert outcome_text(HOLDS) == "holds"
    assert outcome_text(FAILS) == "does not hold"
    assert outcome_text(CONTRADICTED) == "contradicted by the paper itself"
    assert outcome_text(DEPENDS) == "depends on K: holds at 20 and 40"
    one = _claim(Outcome.DEPENDS, depends_on="W", holds_at=["0.5"])
    assert outcome_text(one) == "depends on W: holds at 0.5"


def test_a_record_of_an_earlier_version_has_no_outcome() -> None:
    assert outcome_of({"holds": True}) is Outcome.HOLDS
    assert outcome_of({"holds": False}) is Outcome.FAILS


def test_claims_that_do_not_hold_come_first() -> None:
    claims = [HOLDS, CONTRADICTED, DEPENDS, FAILS]
    assert sorted_claims(claims) == [FAILS, CONTRADICTED, DEPENDS, HOLDS]


def test_counts_in_words() -> None:
    assert counts_text([]) == "no claims"
    assert counts_text([HOLDS]) == "1 of 1 claim holds"
    assert counts_text([HOLDS, HOLDS, FAILS]) == "2 of 3 claims hold, 1 does not"
    assert counts_text([HOLDS, FAILS, FAILS, DEPENDS, CONTRADICTED]) == (
        "1 of 5 claims holds, 1 depends on a parameter, 1 contradicted by the paper "
        "itself, 2 do not"
    )
    assert count_cells([HOLDS, DEPENDS, FAILS, FAILS]) == [4, 1, 1, 0, 2]


def _record(paper: str, *claims: dict[str, Any]) -> dict[str, Any]:
    return {"paper": paper, "reference": f"R of {paper}", "claims": list(claims)}


def test_figures_are_grouped_by_paper_and_those_beyond_come_last() -> None:
    records = [_record("", FAILS), _record("a", HOLDS), _record("b"), _record("a")]
    papers = by_paper(records)
    assert [(p.name, len(p.records)) for p in papers] == [
        ("a", 2),
        ("b", 1),
        ("beyond the papers", 1),
    ]
    assert papers[0].reference == "R of a"


def test_the_sum_counts_the_claims_of_papers_only() -> None:
    papers = by_paper([_record("a", HOLDS), _record("b", FAILS), _record("", FAILS)])
    assert count_rows(papers) == [
        ("a", [1, 1, 0, 0, 0]),
        ("b", [1, 0, 0, 0, 1]),
        ("all papers", [2, 1, 0, 0, 1]),
        ("beyond the papers", [1, 0, 0, 0, 1]),
    ]
    assert [name for name, _ in count_rows(papers[:1])] == ["a"]


def test_a_claim_that_is_not_in_the_paper_counts_beyond_the_papers() -> None:
    added = _claim(Outcome.FAILS, beyond=True)
    first = _record("a", HOLDS, added) | {"unmeasured": [{"beyond": True}, {}]}
    papers = by_paper([first, _record("b", HOLDS), _record("", HOLDS)])
    assert count_rows(papers) == [
        ("a", [1, 1, 0, 0, 0]),
        ("b", [1, 1, 0, 0, 0]),
        ("all papers", [2, 2, 0, 0, 0]),
        ("beyond the papers", [2, 1, 0, 0, 1]),
    ]
    assert papers[0].records[0]["unmeasured"] == [{}]
    assert papers[-1].records[0]["unmeasured"] == [{"beyond": True}]
    assert papers[-1].reference == ""
    assert totals_text(papers) == (
        "2 of 2 claims hold; beyond the papers: 1 of 2 claims holds, 1 does not"
    )
    assert counts_text([HOLDS, added]) == (
        "1 of 1 claim holds; beyond the papers: 0 of 1 claim hold, 1 does not"
    )
    assert counts_text([added]) == "0 of 1 claim hold, 1 does not"
