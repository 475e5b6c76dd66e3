# SPDX-License-Identifier: MIT
"""A virtual environment with penstock and what its base installs, and nothing else.

The packages are those that ``dependencies`` of pyproject.toml names and all that they
need. They are links to those of the environment in which the tests run: making the
environment takes a second and no network.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
import venv
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

import penstock

__all__ = ["BaseInstall", "size_bytes"]

_PACKAGE = Path(penstock.__file__).parent
_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


class BaseInstall:
    """The environment, in a folder that must not exist yet."""

    def __init__(self, folder: Path) -> None:
        project = tomllib.loads(_PROJECT.read_text())["project"]
        self.distributions = _needed(project["dependencies"])
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin" / "python"
        site = next(folder.glob("lib/python*/site-packages"))
        for each in self.distributions:
            for top in _top_level(each):
                (site / top).symlink_to(Path(str(each.locate_file(top))))
        (site / "penstock").symlink_to(_PACKAGE)
        about = site / f"penstock-{project['version']}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: penstock\nVersion: {project['version']}\n"
        )

    def names(self) -> set[str]:
        """Return the names of the packages, without penstock."""
        return {each.name for each in self.distributions}

    def size_bytes(self) -> int:
        """Return the size of the packages, without penstock."""
        return size_bytes(
            [
                Path(str(each.locate_file(top)))
                for each in self.distributions
                for top in _top_level(each)
            ]
        )

    def run(
        self, *arguments: str, cwd: Path, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments, without variables that change its path."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        return subprocess.run(
            [self.python, *arguments],
            cwd=cwd,
            env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", **more},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def _needed(requirements: list[str]) -> list[Distribution]:
    """Return the distributions that these requirements install, with all they need."""
    found: dict[str, Distribution] = {}
    waiting = list(requirements)
    while waiting:
        requirement = Requirement(waiting.pop())
        marker = requirement.marker
        if requirement.name in found or (marker and not marker.evaluate({"extra": ""})):
            continue
        found[requirement.name] = distribution(requirement.name)
        waiting += found[requirement.name].requires or []
    return list(found.values())


def _top_level(each: Distribution) -> set[str]:
    """Return the files and folders in site-packages that belong to a distribution."""
    tops = {file.parts[0] for file in each.files or ()}
    return tops - {"..", "__pycache__"}


def size_bytes(folders: list[Path]) -> int:
    """Return the size of all files in these folders."""
    return sum(
        file.stat().st_size
        for folder in folders
        for file in ([folder] if folder.is_file() else folder.rglob("*"))
        if file.is_file()
    )
