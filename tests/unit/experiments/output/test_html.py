# SPDX-License-Identifier: MIT
"""Parts of pages: everything is escaped, nothing empty is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest

from penstock.experiments.claims import Outcome
from penstock.experiments.output.html import (
    CSS_CLASSES,
    claim_block,
    count_table,
    document,
    paper_heading,
    smoke_notice,
)
from penstock.experiments.output.verdicts import PaperRecords, by_paper

NASTY = '<b> & "x"'
ESCAPED = "&lt;b&gt; &amp; &quot;x&quot;"


def _claim(**changes: Any) -> dict[str, Any]:
    facts = {"source": "Figure 1", "says": "Up.", "holds": True, "numbers": {}}
    return {"name": "c", **facts, **changes}


def test_a_page_is_complete_and_its_title_escaped() -> None:
    page = document(NASTY, "<p>body</p>")
    assert page.startswith("<!doctype html>")
    assert f"<title>{ESCAPED}</title>" in page
    assert page.endswith("<body><p>body</p></body></html>\n")
    # Self-contained: no style sheet, script or picture of another server.
    assert not re.search(r"https?://|<script|<link", page)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_class_that_the_style_knows(outcome: Outcome) -> None:
    claim = _claim(outcome=outcome.value, depends_on="K", holds_at=["2"])
    block = claim_block(claim)
    assert f'class="claim {CSS_CLASSES[outcome]}"' in block
    assert f".{CSS_CLASSES[outcome]} {{" in document("t", "")


def test_all_texts_of_a_claim_are_escaped() -> None:
    claim = _claim(
        says=NASTY, holds=False, reason=NASTY, source=NASTY, numbers={NASTY: 1.0}
    )
    block = claim_block(claim)
    assert NASTY not in block
    assert block.count(ESCAPED) == 4


def test_a_claim_names_its_source_unless_it_is_that_of_the_figure() -> None:
    assert "Figure 1" in claim_block(_claim())
    assert "Figure 1" not in claim_block(_claim(), "Figure 1")
    assert "Why:" not in claim_block(_claim())
    assert "Why: too few" in claim_block(_claim(reason="too few"))


def test_numbers_in_two_dimensions_are_a_table_with_a_head() -> None:
    numbers = {"fcfs": {"low": 0.5, "high": 0.25}}
    block = claim_block(_claim(numbers=numbers))
    assert "<tr><th></th><th>low</th><th>high</th></tr>" in block
    assert "<tr><th>fcfs</th><td>0.5</td><td>0.25</td></tr>" in block


def test_the_counts_need_claims() -> None:
    record = {"paper": "a", "reference": "R", "claims": [_claim()], "source": "s"}
    table = count_table(by_paper([record]))
    assert "<tr><td>a</td><td>1</td><td>1</td><td>0</td>" in table
    assert count_table(by_paper([{**record, "claims": []}])) == ""


def test_the_heading_of_a_paper_has_an_anchor() -> None:
    heading = paper_heading(PaperRecords("two words", "A. Author & B", ()))
    assert heading.startswith('<h2 id="two-words">Two words</h2>')
    assert heading.endswith("A. Author &amp; B.</p>")
    assert paper_heading(PaperRecords("x", "", ())) == '<h2 id="x">X</h2>'


def test_one_record_of_smoke_scale_suffices_for_the_warning() -> None:
    records: list[dict[str, Any]] = [
        {"provenance": {"scale": "paper"}},
        {"provenance": {}},
    ]
    assert smoke_notice(records) == ""
    records.append({"provenance": {"scale": "smoke"}})
    assert "only indicative" in smoke_notice(records)
