# SPDX-License-Identifier: MIT
"""A job under live control for tests: its page, its folder and its programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.bell import Bell
from penstock.live.node.pages.bells import Bells
from penstock.live.node.pages.page import IoClass, Page
from support.waiting import LIMIT_S

PROGRAMS = Path(__file__).parents[1] / "e2e" / "live"


@dataclass
class Job:
    """A page and a controlled folder; `close` kills the programs that it started."""

    root: Path
    page: Page
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """The controlled folder."""
        return self.root / "controlled"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a controlled program."""
        return shim_environment(self.page.path, [self.folder])

    def run(
        self,
        *command: object,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program in the folder, by default under control."""
        return subprocess.run(
            [str(word) for word in command],
            cwd=folder or self.folder,
            env=self.environment if environment is None else environment,
            capture_output=True,
            check=False,
            timeout=LIMIT_S,
        )

    def start(self, *command: object, **options: Any) -> subprocess.Popen[bytes]:
        """Start a program in the folder, under control."""
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=self.folder,
            env=self.environment,
            **options,
        )
        self.started.append(process)
        return process

    @contextmanager
    def bell(
        self, slot: int, on_ring: Callable[[Bell, list[int]], None] = lambda *_: None
    ) -> Iterator[Bell]:
        """Give the page a bell during the block, as the agent does."""
        bells = Bells(self.page.path.parent, on_ring)
        self.page.set_bell(os.geteuid(), slot)
        try:
            yield bells.get(os.geteuid(), os.getegid())
        finally:
            bells.close()

    def volume(self, kind: IoClass) -> int:
        """Return the bytes counted for a class."""
        return self.page.counters(kind).moved_bytes

    def close(self) -> None:
        """Kill the programs that still run; close their pipes and the page."""
        for process in self.started:
            process.kill()
            process.wait(timeout=LIMIT_S)
            for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
                pipe.close()
        self.page.close()


def compiled(target: Path, source: str, options: Sequence[str] = ()) -> Path:
    """Compile one of the C programs of the live tests."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    warnings = ("-Wall", "-Wextra", "-Wno-unused-result", "-Wno-nonnull", "-Werror")
    subprocess.run(
        ["gcc", "-O1", "-g", *warnings, *options, "-o", target, PROGRAMS / source],
        check=True,
        timeout=LIMIT_S,
    )
    return target
