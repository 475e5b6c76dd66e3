# SPDX-License-Identifier: MIT
"""Pages: self-contained, well-formed, everything shown and nothing unescaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from penstock.experiments.output.page import write_index, write_page
from penstock.experiments.output.what_holds import write_what_holds

SVG = '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg id="picture"><g/></svg>\n'
NASTY = "<script>alert(1)</script> & \"co\" 'x'"
VOID = {"meta", "br", "img", "input"}


def _record(name: str = "fig", **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": "A figure",
        "paper": "some paper",
        "reference": "A. Author: A paper, 2020",
        "source": "papers/0 Figure 1",
        "instances": 7,
        "provenance": {"version": "1.2", "command": "penstock reproduce fig"},
        "claims": [
            _claim(says="Ups are up.", holds=True, numbers={"n": 1.5, "big": 1e9}),
            _claim(says="Downs are down.", holds=False, reason="too few instances"),
        ],
        **changes,
    }


def _claim(**changes: Any) -> dict[str, Any]:
    claim: dict[str, Any] = {"name": "c", "source": "papers/0", "holds": True}
    claim["numbers"] = {}
    return {**claim, **changes}


class _Reader(HTMLParser):
    """Collects text and links, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.html = ""

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for key, value in attributes:
            if key in ("href", "src"):
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += f" {data}"


def _read(path: Path) -> _Reader:
    reader = _Reader()
    reader.html = path.read_text(encoding="utf-8")
    reader.feed(reader.html)
    assert reader.open == []
    return reader


def _page(folder: Path, record: dict[str, Any]) -> _Reader:
    (folder / f"{record['name']}.svg").write_text(SVG)
    write_page(record, folder)
    return _read(folder / "index.html")


def test_a_page_holds_the_picture_the_claims_and_the_command(tmp_path: Path) -> None:
    page = _page(tmp_path, _record())
    for part in (
        *("A figure", "papers/0 Figure 1", "7 instances per point"),
        *("Ups are up.", "n 1.5 big 1e+09", "Downs are down.", "too few instances"),
        *("penstock 1.2:", "penstock reproduce fig", "A. Author: A paper, 2020."),
        "1 of 2 claims holds, 1 does not",
    ):
        assert part in page.text
    assert page.tags.count("svg") == 1
    # Claims that do not hold come first.
    assert re.findall(r'class="claim (\w+)"', page.html) == ["fails", "holds"]
    files = {f"fig.{kind}" for kind in ("svg", "png", "parquet", "csv")}
    assert set(page.links) == {*files, "claims.json"}
    assert "<?xml" not in (tmp_path / "index.html").read_text()


def test_text_from_users_is_escaped(tmp_path: Path) -> None:
    record = _record(
        title=NASTY,
        source=NASTY,
        provenance={"version": NASTY, "command": NASTY},
        claims=[
            _claim(says=NASTY, source=NASTY, reason=NASTY, numbers={NASTY: 1}),
        ],
    )
    page = _page(tmp_path, record)
    assert "script" not in page.tags
    # Title, heading, source, claim, its reason and number, version, command.
    assert page.text.count(NASTY) == 8
    write_index([record], tmp_path)
    index = _read(tmp_path / "index.html")
    assert "script" not in index.tags
    # Title and source of the card, version, command.
    assert index.text.count(NASTY) == 4
    write_what_holds([record], tmp_path)
    every = _read(tmp_path / "what-holds.html")
    assert "script" not in every.tags
    # Title and source of the figure; claim, reason and number.
    assert every.text.count(NASTY) == 5


def test_a_page_without_a_sample_does_not_mention_instances(tmp_path: Path) -> None:
    assert "instances" not in _page(tmp_path, _record(instances=None, claims=[])).text


def test_without_claims_there_is_no_table(tmp_path: Path) -> None:
    assert "table" not in _page(tmp_path, _record(claims=[])).tags


def test_the_index_shows_every_figure_and_the_score(tmp_path: Path) -> None:
    write_index([_record("one"), _record("two"), _record("x", claims=[])], tmp_path)
    index = _read(tmp_path / "index.html")
    assert "2 of 4 claims hold, 2 do not" in index.text
    assert index.text.count("1 of 2 claims holds") == 2
    assert index.text.count("no claims") == 1
    assert "Some paper A. Author: A paper, 2020." in index.text
    pictures = {f"{name}/{name}.svg" for name in ("one", "two", "x")}
    pages = {f"{name}/index.html" for name in ("one", "two", "x")}
    assert set(index.links) == pictures | pages | {"what-holds.html"}


def test_the_index_names_every_command(tmp_path: Path) -> None:
    other = {"version": "1.2", "command": "penstock reproduce two"}
    records = [_record("one"), _record("x"), _record("two", provenance=other)]
    write_index(records, tmp_path)
    text = _read(tmp_path / "index.html").text
    assert text.count("penstock reproduce fig") == 1
    assert text.count("penstock reproduce two") == 1


def test_an_index_of_nothing(tmp_path: Path) -> None:
    write_index([], tmp_path)
    assert "no claims" in _read(tmp_path / "index.html").text


@pytest.mark.parametrize("infinite", [float("inf"), float("nan")])
def test_numbers_that_are_not_finite_are_shown(tmp_path: Path, infinite: float) -> None:
    record = _record(claims=[_claim(says="So.", numbers={"x": infinite})])
    shown = "∞" if infinite > 0 else "none"
    assert f"x {shown}" in _page(tmp_path, record).text


def test_numbers_are_rounded_and_tables_have_half_widths(tmp_path: Path) -> None:
    claim = _claim(
        says="So.",
        numbers={"W = 0.8": {"fcfs": 0.0109132}, "W = 0.9": {"fcfs": 0.516075}},
        spread={"W = 0.9": {"fcfs": 0.0213}},
        support=0.75,
    )
    text = " ".join(_page(tmp_path, _record(claims=[claim])).text.split())
    assert "fcfs W = 0.8 0.0109 W = 0.9 0.52 ± 0.02" in text
    assert "holds in 75% of the resamples" in text


def test_a_claim_that_depends_on_a_parameter_names_it(tmp_path: Path) -> None:
    claim = _claim(says="So.", holds=False, outcome="depends on", numbers={"x": 1})
    claim |= {"depends_on": "K", "holds_at": ["20"]}
    page = _page(tmp_path, _record(claims=[claim]))
    assert "depends on K: holds at 20" in page.text
    assert 'class="claim depends"' in page.html
