# SPDX-License-Identifier: MIT
"""Client tools of file systems that record how they are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["RecordedTools", "install_tools"]


@dataclass(frozen=True)
class RecordedTools:
    """Shell scripts in a folder that is first in PATH."""

    folder: Path

    @property
    def calls(self) -> list[str]:
        """The command lines so far."""
        log = self.folder / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def fail(self, message: str) -> None:
        """Let every tool from now on print `message` on standard error and fail."""
        (self.folder / "fail").write_text(message)

    def answer(self, text: str) -> None:
        """Let every tool from now on print `text` on standard output."""
        (self.folder / "answer").write_text(text)


def install_tools(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str
) -> RecordedTools:
    """Put recording scripts with these names into `folder` and into PATH."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >>"{folder}/calls"\n'
            f'[ ! -e "{folder}/fail" ] || {{ cat "{folder}/fail" >&2; exit 1; }}\n'
            f'[ ! -e "{folder}/answer" ] || cat "{folder}/answer"\n'
        )
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return RecordedTools(folder)
