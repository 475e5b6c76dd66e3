# SPDX-License-Identifier: MIT
"""The page needs no other file, shows the document, and escapes names."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from penstock.advice.documents import advice_document
from penstock.advice.recommendation import recommend
from penstock.advice.report import report_page
from penstock.advice.targets import advise_targets
from penstock.model import Instance
from unit.samples import app, make


def _instance(name: str = "a") -> Instance:
    phases = [("work", 3.0), ("io", 2.0)] * 6
    return make(
        app(name, *phases, ("work", 99.0)),
        app("b", *phases, ("work", 99.0)),
        window=(0.0, 40.0),
    )


def _advice(instance: Instance, **more: Any) -> dict[str, Any]:
    result = recommend([instance], "fcfs", ["fair-share"])
    facts = {"version": "1.0", "command": "penstock advise x.json"}
    return advice_document(result, {"b": ["Do less."]}, ["B is 1."], facts) | more


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in {"meta", "br", "img", "use", "path", "rect"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            assert self.open.pop() == tag


def test_the_page_shows_summary_reasons_jobs_and_origin() -> None:
    advice = _advice(_instance())
    page = report_page(advice, _instance())
    for text in (advice["summary"], *advice["reasons"], "Do less.", "B is 1."):
        assert text in page
    assert "penstock advise x.json" in page
    parser = _Tags()
    parser.feed(page)
    assert parser.open == []


def test_the_page_loads_nothing() -> None:
    page = report_page(_advice(_instance()), _instance())
    assert "<svg" in page
    loaded = re.findall(r'(?:src|href)="(?!#)[^"]*"', page)
    assert [link for link in loaded if not link.startswith('href="#')] == []
    assert "<script" not in page


def test_names_are_escaped() -> None:
    instance = _instance("<b>&")
    assert "<td>&lt;b&gt;&amp;</td>" in report_page(_advice(instance), instance)


def test_the_same_advice_gives_the_same_bytes() -> None:
    first, second = (report_page(_advice(_instance()), _instance()) for _ in range(2))
    assert first == second


def test_advice_about_targets_has_a_table() -> None:
    placement = advise_targets(_instance(), 2).document()
    page = report_page(_advice(_instance(), placement=placement), _instance())
    assert placement["sentence"] in page
