# SPDX-License-Identifier: MIT
"""Every relative link of the documentation leads to a file and a heading."""

import re
from pathlib import Path

import pytest

from support.sessions import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
    *sorted((ROOT / "examples").rglob("*.md")),
]
_FENCE = re.compile(r"^ *```.*?^ *```$", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")
#: A page of the documentation that code or a message names.
_MENTION = re.compile(r"\bdocs/[\w/-]+\.md\b")


def _prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", _prose(page), flags=re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path = page.parent / target if target else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor and path.suffix == ".md":
            assert anchor in _anchors(path), f"{page.name}: {target}#{anchor}"


def test_pages_that_code_names_exist() -> None:
    folders = ("src", "scripts", "benchmarks", "tests")
    files = [path for name in folders for path in (ROOT / name).rglob("*.[pch]*")]
    mentions = {
        (path, name)
        for path in files
        if path.suffix in {".py", ".c", ".h", ".cpp"}
        for name in _MENTION.findall(path.read_text())
    }
    assert mentions
    for path, name in mentions:
        assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


def test_every_page_is_reached_from_the_index() -> None:
    docs = ROOT / "docs"
    reached = set()
    waiting = [docs / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.S):
            names = [line for line in block.splitlines() if re.match(r"[\w/]", line)]
            waiting += [(page.parent / f"{name.strip()}.md") for name in names]
    pages = {p for p in docs.rglob("*.md") if "_build" not in p.parts}
    assert pages == reached
