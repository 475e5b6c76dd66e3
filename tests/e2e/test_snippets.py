# SPDX-License-Identifier: MIT
"""Python in the documentation: it parses, and what it imports from penstock exists.

Snippets of the pages in `COMPLETE` need nothing else, and are run.
"""

import ast
import importlib
import re
from pathlib import Path

import pytest

from support.sessions import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPETS = [
    (page, code)
    for page in PAGES
    if "_build" not in page.parts
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M)
]


IDS = [f"{page.stem}-{number}" for number, (page, _) in enumerate(SNIPPETS, 1)]


@pytest.mark.parametrize(("page", "code"), SNIPPETS, ids=IDS)
def test_imports_of_a_snippet_exist(page: Path, code: str) -> None:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            assert node.module
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{page.name}: {alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)


#: Pages whose snippets can be run as they are.
COMPLETE = ("throughput-and-latency",)


@pytest.mark.parametrize("name", COMPLETE)
def test_complete_snippets_run(name: str) -> None:
    codes = [code for page, code in SNIPPETS if page.stem == name]
    assert codes
    for code in codes:
        exec(compile(code, f"{name}.md", "exec"), {})  # noqa: S102 - our own pages


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 5
