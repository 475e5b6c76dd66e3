# SPDX-License-Identifier: MIT
"""Modules, files and commands that the documentation names exist."""

import importlib
import re
from pathlib import Path

import pytest

from penstock.cli import COMMANDS
from support.sessions import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
]
#: Where the path of a file may begin.
TOPS = (
    *(ROOT, ROOT / "tests", ROOT / "src", ROOT / "src" / "penstock"),
    ROOT / "src/penstock/live",
)
#: Paths that a reader of the documentation creates.
OF_THE_READER = {"mounts/mounts.log", "FOLDER/slurm.log", "mypackage/mypolicy.py"}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _exists(dotted: str) -> bool:
    """Return True if a dotted name is a module or an attribute of one."""
    words = dotted.split(".")
    for length in range(len(words), 0, -1):
        try:
            owner = importlib.import_module(".".join(words[:length]))
        except ModuleNotFoundError:
            continue
        for word in words[length:]:
            if not hasattr(owner, word):
                return False
            owner = getattr(owner, word)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_modules_exist(page: Path) -> None:
    groups = r"penstock\.(?:policies|allocations|placements|strategies|schedulers)$"
    for name in set(re.findall(r"`(penstock(?:\.\w+)+)`", page.read_text())):
        if name in {"penstock.h", "penstock.service"} or re.match(groups, name):
            continue
        assert _exists(name), name


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_files_exist(page: Path) -> None:
    paths = r"`((?:[\w-]+/)+[\w-]+\.(?:py|c|h|sh|toml|json|service|log|cpp))`"
    for name in set(re.findall(paths, page.read_text())) - OF_THE_READER:
        assert any((top / name).exists() for top in TOPS), name


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_commands_exist(page: Path) -> None:
    for name in set(re.findall(r"`penstock ([a-z-]+)", page.read_text())):
        assert name in COMMANDS, name


def test_every_command_is_in_the_reference() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    named = set(re.findall(r"^\| `([a-z-]+)` \|", page, flags=re.MULTILINE))
    assert named == set(COMMANDS)
