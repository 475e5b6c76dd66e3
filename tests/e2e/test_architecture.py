# SPDX-License-Identifier: MIT
"""What the page on the architecture names is in the code."""

import ast
import re

import pytest

from support.sessions import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
SOURCE = ROOT / "src" / "penstock"
LOOPS = re.findall(r"^\| [\w ]+ \| `([\w/]+\.py)` \| `([\w.]+)` \|", PAGE, flags=re.M)
#: Files that the page names with their folder.
FILES = sorted(set(re.findall(r"`((?:[a-z]+/)+\w+\.(?:py|c|h))`", PAGE)))


@pytest.mark.parametrize(("file", "name"), LOOPS)
def test_main_loop_is_where_the_page_says(file: str, name: str) -> None:
    body = ast.parse((SOURCE / file).read_text()).body
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for word in name.split("."):
        found = [node for node in body if isinstance(node, kinds) and node.name == word]
        assert found, f"{file} has no {name}"
        body = found[0].body


def test_all_main_loops_are_named() -> None:
    assert len(LOOPS) >= 5


@pytest.mark.parametrize("name", FILES)
def test_file_exists(name: str) -> None:
    assert any((ROOT / top / name).is_file() for top in ("src/penstock", "."))


def test_every_room_is_named() -> None:
    tree = PAGE.split("```text\n")[1].split("```")[0]
    rooms = [path for path in SOURCE.iterdir() if (path / "__init__.py").is_file()]
    for room in rooms:
        assert f"{room.name}/" in tree
    for room in (SOURCE / "live").iterdir():
        if (room / "__init__.py").is_file():
            assert f"  {room.name}/" in tree
