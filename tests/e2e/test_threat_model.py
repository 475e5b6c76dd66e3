# SPDX-License-Identifier: MIT
"""The threat model names the packages that the daemon and its page depend on."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/background/threat-model.md"
#: The table of packages.
_TABLE = re.compile(r"^\| package \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
#: A requirement begins with a name.
_NAME = re.compile(r"[\w-]+")
#: Extras of the processes that other users can reach.
_EXTRAS = ("controller", "web")


def _named() -> set[str]:
    """Return the packages in the table; brackets hold libraries of a package."""
    found = _TABLE.search(PAGE.read_text())
    assert found is not None
    cells = [row.split("|")[1] for row in found[1].splitlines()]
    return {
        name.strip().lower()
        for cell in cells
        for name in re.sub(r"\(.*\)", "", cell).split(",")
    }


def _names(requirements: list[str]) -> set[str]:
    found = [_NAME.match(each) for each in requirements if "extra ==" not in each]
    return {match[0].lower() for match in found if match}


def test_the_table_names_the_packages_of_the_daemon() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    own = _names(project["dependencies"])
    for extra in _EXTRAS:
        own |= _names(extras[extra])
    named = _named()
    assert own <= named
    # Packages that the web server needs itself may be named beside it.
    assert named - own <= _names(requires("uvicorn") or [])
