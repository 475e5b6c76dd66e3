# SPDX-License-Identifier: MIT
"""What holds: the page and the READMEs agree with the claims and the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import paper_readmes
import pytest
from paper_readmes import (
    PAGE,
    ROOT,
    VERDICTS,
    declared_records,
    paper_folders,
    taken_over,
    updated_counts,
    updated_readme,
    verdicts_text,
    what_holds_page,
)

from penstock.errors import InputError
from penstock.experiments.check_digest import check_digest
from penstock.experiments.claims import Claim
from penstock.papers import FIGURES, get_figure

FOLDERS = paper_folders()
RUN = "run python scripts/paper_readmes.py"
FIGURE = "p3-fig1a"


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    return declared_records(json.loads(VERDICTS.read_text()))


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_a_readme_lists_the_figures_that_are_declared(
    folder: Path, records: list[dict[str, Any]]
) -> None:
    text = (folder / "README.md").read_text()
    assert text == updated_readme(folder, records), RUN


def test_the_page_shows_the_declared_claims(records: list[dict[str, Any]]) -> None:
    text = PAGE.read_text()
    assert text == what_holds_page(records), RUN
    for record in records:
        for claim in record["claims"]:
            assert claim["says"] in text, (record["name"], claim["name"])


def test_the_readme_has_the_counts(records: list[dict[str, Any]]) -> None:
    text = (ROOT / "README.md").read_text()
    assert text == updated_counts(text, records), RUN


def test_every_claim_that_does_not_hold_has_a_reason(
    records: list[dict[str, Any]],
) -> None:
    unexplained = [
        (record["name"], claim["name"])
        for record in records
        for claim in record["claims"]
        if not claim["holds"] and not claim["reason"]
    ]
    assert unexplained == []


def test_every_folder_of_figures_has_a_readme() -> None:
    modules = {entry.module.split(".")[2] for entry in FIGURES.values()}
    assert {folder.name for folder in FOLDERS} == modules


# --- A run at paper scale -----------------------------------------------------------


def _checked(name: str, sentence: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "says": sentence,
        "source": "s",
        "holds": True,
        "outcome": "holds",
        "depends_on": "",
        "holds_at": [],
        "numbers": {"x": 0.123456},
        "spread": {},
        "support": None,
        "reason": "",
        **changes,
    }


def _results(folder: Path, scale: str = "paper", **first: Any) -> Path:
    """Write results of a figure: all claims hold, the first one with changes."""
    claims = [
        _checked(c.name, c.sentence, check=check_digest(c.check))
        for c in get_figure(FIGURE).claims
    ]
    claims[0] |= first
    record = {"name": FIGURE, "provenance": {"scale": scale}, "claims": claims}
    (folder / FIGURE).mkdir()
    (folder / FIGURE / "claims.json").write_text(json.dumps(record))
    return folder


def test_verdicts_of_new_figures_are_taken_over_and_others_stay(tmp_path: Path) -> None:
    before = {"p1-fig2": {"c": _checked("c", "Old.")}}
    after = taken_over(before, _results(tmp_path))
    assert list(after) == ["p1-fig2", FIGURE]
    kept = after[FIGURE][get_figure(FIGURE).claims[0].name]
    assert kept["numbers"] == {"x": 0.1235}
    assert "source" not in kept


def test_the_file_of_verdicts_has_a_line_per_claim(tmp_path: Path) -> None:
    verdicts = taken_over({"p1-fig2": {}}, _results(tmp_path))
    text = verdicts_text(verdicts)
    assert json.loads(text) == verdicts
    assert text.count("\n") == len(get_figure(FIGURE).claims) + 7
    assert verdicts_text({}) == "{\n\n}\n"


def _page(tmp_path: Path, **first: Any) -> str:
    return what_holds_page(
        declared_records(taken_over({}, _results(tmp_path, **first)))
    )


@pytest.fixture
def declared() -> Iterator[list[Claim]]:
    """Return the claims of the figure; the test may change them."""
    claims = get_figure(FIGURE).claims
    before = list(claims)
    yield claims
    claims[:] = before


def test_a_claim_that_fails_is_shown_with_reason_and_numbers(
    tmp_path: Path, declared: list[Claim]
) -> None:
    declared[0] = replace(declared[0], reason="Because.", contradicted="")
    page = _page(
        tmp_path,
        holds=False,
        reason="An older reason.",
        numbers={"x": 0.123456, "W = 1": {"a": 0.5, "b": 2.0}},
        spread={"W = 1": {"a": 0.02}},
        support=0.25,
    )
    sentence = get_figure(FIGURE).claims[0].sentence
    assert (
        f"**does not hold**: {sentence} (Holds in 25% of the resamples.)  \n"
        "*Why:* Because.  \n*Numbers:* x 0.123\n\n"
        "|  | a | b |\n| --- | ---: | ---: |\n| W = 1 | 0.50 ± 0.02 | 2 |"
    ) in page
    held = len(get_figure(FIGURE).claims) - 1
    assert f"<details><summary>{held} claims that hold</summary>" in page
    others = sum(len(get_figure(n).claims) for n in FIGURES if n.startswith("p3-"))
    others -= held + 1
    assert f"| IO-SETS | {held + 1} | {held} | 0 | 0 | 1 | {others} |" in page


def test_a_claim_whose_sentence_has_changed_is_not_measured(tmp_path: Path) -> None:
    page = _page(tmp_path, says="Something else.")
    assert get_figure(FIGURE).claims[0].sentence not in page
    assert "Something else." not in page
    assert "1 not measured." in page


def test_a_claim_whose_check_has_changed_is_not_measured(tmp_path: Path) -> None:
    page = _page(tmp_path, check="0123")
    assert get_figure(FIGURE).claims[0].sentence not in page
    assert "1 not measured." in page


def test_a_verdict_of_the_same_check_counts(tmp_path: Path) -> None:
    first = get_figure(FIGURE).claims[0]
    assert first.sentence in _page(tmp_path, check=check_digest(first.check))


def test_a_verdict_without_digest_is_not_measured(tmp_path: Path) -> None:
    assert "1 not measured." in _page(tmp_path, check="")


def test_the_paper_may_contradict_a_claim_since_the_verdict(
    tmp_path: Path, declared: list[Claim]
) -> None:
    verdicts = taken_over({}, _results(tmp_path, holds=False))
    declared[0] = replace(declared[0], contradicted="Figure 2 does.")
    page = what_holds_page(declared_records(verdicts))
    assert "**contradicted by the paper itself**" in page
    assert "*Why:* Figure 2 does." in page


def test_the_counts_name_the_papers_that_are_measured(tmp_path: Path) -> None:
    count = len(get_figure(FIGURE).claims)
    records = declared_records(taken_over({}, _results(tmp_path)))
    text = updated_counts("<!-- counts -->\n<!-- end of counts -->\n", records)
    assert f"these claims hold: IO-SETS {count} of {count}. [What holds]" in text


def test_verdicts_of_smoke_scale_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _results(tmp_path, scale="smoke")
    monkeypatch.setattr("sys.argv", ["paper_readmes.py", "--verdicts", str(tmp_path)])
    with pytest.raises(SystemExit, match="is not of paper scale"):
        paper_readmes.main()


def test_a_readme_without_marks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Title\n")
    with pytest.raises(InputError, match="no <!-- figures -->"):
        updated_readme(tmp_path, [])
