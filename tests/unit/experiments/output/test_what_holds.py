# SPDX-License-Identifier: MIT
"""The page "what holds": claims by paper and figure, those that fail first."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import pytest

from penstock.experiments.output.what_holds import HOW_TO_READ, write_what_holds


def _claim(says: str, *, holds: bool) -> dict[str, Any]:
    return {"name": says, "says": says, "source": "s", "holds": holds, "numbers": {}}


def _record(name: str, **changes: Any) -> dict[str, Any]:
    claims = [_claim("Ups are up.", holds=True), _claim("Downs are.", holds=False)]
    return {
        "name": name,
        "title": f"Title of {name}",
        "paper": "some paper",
        "reference": "A. Author: A paper, 2020",
        "source": "some paper, Figure 1",
        "provenance": {"version": "1", "command": "c"},
        "claims": claims,
        **changes,
    }


def _page(folder: Path, *records: dict[str, Any]) -> str:
    write_what_holds(records, folder)
    assert [path.name for path in folder.iterdir()] == ["what-holds.html"]
    return (folder / "what-holds.html").read_text(encoding="utf-8")


def _text(page: str) -> str:
    body = page.partition("</head>")[2]
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


def test_claims_are_grouped_by_paper_and_figure(tmp_path: Path) -> None:
    page = _page(
        tmp_path,
        _record("one"),
        _record("two", paper="", reference="", claims=[]),
        _record("three", paper="other paper"),
    )
    text = _text(page)
    assert text.index("Some paper") < text.index("Title of one")
    assert text.index("Title of one") < text.index("Other paper")
    assert text.index("Other paper") < text.index("Title of three")
    assert "all papers 4 2 0 0 2" in text
    assert set(re.findall(r'href="([^"]*)"', page)) == {
        "index.html",
        "one/index.html",
        "three/index.html",
    }


def test_a_figure_without_claims_is_not_on_the_page(tmp_path: Path) -> None:
    text = _text(_page(tmp_path, _record("one"), _record("two", claims=[])))
    assert "Title of one" in text
    assert "Title of two" not in text


def test_claims_that_do_not_hold_come_first_and_are_never_hidden(
    tmp_path: Path,
) -> None:
    page = _page(tmp_path, _record("one"))
    text = _text(page)
    assert text.index("Downs are.") < text.index("Ups are up.")
    assert "Figure 1: 1 of 2 claims holds, 1 does not" in text
    assert re.findall(r'class="claim (\w+)"', page) == ["fails", "holds"]
    # The switch hides the blocks that hold, and needs both buttons of one group.
    assert "#some:checked ~ section .holds { display: none; }" in page
    assert len(re.findall(r'<input type="radio" name="shown"', page)) == 2


def test_the_page_says_how_to_read_it(tmp_path: Path) -> None:
    page = _page(tmp_path, _record("one", title="<b> & co"))
    assert escape(HOW_TO_READ) in page
    assert "&lt;b&gt; &amp; co" in page


@pytest.mark.parametrize(("scale", "warned"), [("smoke", True), ("paper", False)])
def test_smoke_scale_is_warned_of(tmp_path: Path, scale: str, warned: bool) -> None:
    facts = {"version": "1", "command": "c", "scale": scale}
    text = _text(_page(tmp_path, _record("one", provenance=facts)))
    assert ("only indicative" in text) is warned
