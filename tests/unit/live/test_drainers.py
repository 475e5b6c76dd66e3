# SPDX-License-Identifier: MIT
"""Drainers that are started for what programs have left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.live import drainers
from penstock.live.drain import default_folder


class Started:
    """Notes what would be started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands: list[list[str]] = []
        self.options: list[dict[str, Any]] = []
        monkeypatch.setattr(subprocess, "Popen", self)

    def __call__(self, command: list[str], **options: Any) -> Started:
        self.commands.append(command)
        self.options.append(options)
        return self

    def wait(self) -> int:
        """End at once."""
        return 0


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(drainers, "MEMORY", f"{tmp_path}/penstock-")
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


def test_a_drainer_is_started_where_something_is_left(
    memory: Path, started: Started
) -> None:
    for name in ("penstock-1", "penstock-2", "other"):
        (memory / name).mkdir()
    (memory / "penstock-2" / "1-2.journal").touch()
    (memory / "other" / "1-2.journal").touch()
    (memory / "penstock-3").touch()
    drainers.drain_left_behind([])
    folder = str(memory / "penstock-2")
    words = ["-P", "-m", "penstock", "drain", "--orphans", folder]
    assert started.commands == [[sys.executable, *words]]
    assert started.options[0]["env"]["PENSTOCK_DISABLE"] == "1"
    assert "user" not in started.options[0]


def test_a_folder_of_another_user_is_drained_as_that_user_or_not_at_all(
    memory: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = memory / "penstock-1"
    folder.mkdir()
    (folder / "1-2.journal").touch()
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    drainers.drain_left_behind([])
    assert started.commands == []
    if owner != 0:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        drainers.drain_left_behind([])
        assert started.options[0]["user"] == owner
        assert started.options[0]["extra_groups"] == []


def test_a_link_is_not_followed(memory: Path, started: Started) -> None:
    (memory / "there").mkdir()
    (memory / "there" / "1-2.journal").touch()
    (memory / "penstock-1").symlink_to(memory / "there")
    drainers.drain_left_behind([])
    assert started.commands == []


def test_folders_that_match_a_pattern_are_drained_too(
    memory: Path, started: Started
) -> None:
    for name in ("ssd1", "ssd2", "empty"):
        (memory / name / "journals").mkdir(parents=True)
    for name in ("ssd1", "ssd2"):
        (memory / name / "journals" / "1-2.journal").touch()
    drainers.drain_left_behind([f"{memory}/*/journals", f"{memory}/not-there"])
    folders = {command[-1] for command in started.commands}
    assert folders == {f"{memory}/ssd1/journals", f"{memory}/ssd2/journals"}


def test_nothing_of_the_agents_own_control_is_passed_on(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_PRELOAD", "library.so")
    monkeypatch.setenv("PENSTOCK_PAGE", "page")
    monkeypatch.setenv("TERM", "vt100")
    drainers.drain_after(Path("/j"), os.geteuid(), os.getegid())
    given = started.options[0]["env"]
    assert given["TERM"] == "vt100"
    assert "LD_PRELOAD" not in given
    assert {key for key in given if key.startswith("PENSTOCK")} == {"PENSTOCK_DISABLE"}


def test_the_folder_is_that_of_the_environment_or_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_STAGING", "/a/b")
    assert default_folder() == Path("/a/b")
    monkeypatch.delenv("PENSTOCK_STAGING")
    assert default_folder().name == f"penstock-{os.geteuid()}"
