# SPDX-License-Identifier: MIT
"""A folder whose files are staged, and the folder of the journals."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import Page
from penstock.live.staging.drain import JournalReport, drain_folder
from penstock.live.staging.drainers import Leftover, Sweeper
from penstock.live.staging.rules import Staging
from support.jobs import PROGRAMS
from support.waiting import LIMIT_S, until


@dataclass
class Stage:
    """A controlled folder and a folder of journals."""

    folder: Path
    journals: Path

    def environment(
        self,
        capacity: int = 64 << 20,
        *,
        page: Path | None = None,
        always: bool = True,
        durable: str = "file",
        rules: tuple[str, ...] = (),
    ) -> dict[str, str]:
        """Return the environment of a program whose writes are staged."""
        staging = Staging(self.journals, capacity, always, durable, rules)
        return shim_environment(page, [self.folder], staging=staging)

    def run(
        self, *command: object, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program in the folder, by default staged."""
        return subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env=self.environment() if environment is None else environment,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )

    def start(
        self, *command: object, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a program in the folder, by default staged, with pipes."""
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=self.folder,
            env=self.environment() if environment is None else environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def drain(self) -> list[JournalReport]:
        """Drain the journals that programs have left."""
        return drain_folder(self.journals)

    def sweep(self, page: Page | None = None) -> None:
        """Let the library drain journals of dead processes, of one job or of all."""
        place = page.file_id if page else None
        sweeper = Sweeper()
        sweeper.sweep([Leftover(self.journals, os.geteuid(), page=place)])
        until(lambda: not sweeper._waiting)
        sweeper.close()

    def empty(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()

    def left_over(self) -> list[str]:
        """Return the names in the folder of journals, except the log."""
        return sorted(
            path.name for path in self.journals.iterdir() if path.name != "shim.log"
        )

    def log(self) -> str:
        """Return the log of the library."""
        path = self.journals / "shim.log"
        return path.read_text() if path.exists() else ""


def files(folder: Path) -> dict[str, bytes]:
    """Return the names and contents of all files."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def scenes_of(source: str) -> set[str]:
    """Return the names of the scenes of a C program."""
    return set(re.findall(r"SCENE\((\w+)\),", (PROGRAMS / source).read_text()))
