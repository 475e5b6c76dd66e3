# SPDX-License-Identifier: MIT
"""Drainers that are started for what programs have left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.live import drainers
from penstock.live.drain import default_folder


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(drainers, "MEMORY", f"{tmp_path}/penstock-")
    return tmp_path


@pytest.fixture
def drained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int, int]]:
    """Return where it is noted which folder would be drained, by whom."""
    noted: list[tuple[Path, int, int]] = []
    monkeypatch.setattr(drainers, "drain_after", lambda *who: noted.append(who))
    return noted


Drained = list[tuple[Path, int, int]]


def test_what_is_left_behind_is_drained(memory: Path, drained: Drained) -> None:
    for name in ("penstock-1", "penstock-2", "other"):
        (memory / name).mkdir()
    (memory / "penstock-2" / "1-2.journal").touch()
    (memory / "other" / "1-2.journal").touch()
    (memory / "penstock-3").touch()
    drainers.drain_left_behind([])
    assert drained == [(memory / "penstock-2", os.geteuid(), os.getegid())]


def test_a_folder_of_another_user_is_drained_by_root_only(
    memory: Path, drained: Drained, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = memory / "penstock-1"
    folder.mkdir()
    (folder / "1-2.journal").touch()
    status = folder.stat()
    monkeypatch.setattr(os, "geteuid", lambda: status.st_uid + 1)
    drainers.drain_left_behind([])
    assert drained == []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    drainers.drain_left_behind([])
    assert drained == [(folder, status.st_uid, status.st_gid)]


def test_a_link_is_not_followed(memory: Path, drained: Drained) -> None:
    (memory / "there").mkdir()
    (memory / "there" / "1-2.journal").touch()
    (memory / "penstock-1").symlink_to(memory / "there")
    drainers.drain_left_behind([])
    assert drained == []


def test_folders_that_match_a_pattern_are_drained_too(
    memory: Path, drained: Drained
) -> None:
    for name in ("ssd1", "ssd2", "empty"):
        (memory / name / "journals").mkdir(parents=True)
    for name in ("ssd1", "ssd2"):
        (memory / name / "journals" / "1-2.journal").touch()
    drainers.drain_left_behind([f"{memory}/*/journals", f"{memory}/not-there"])
    folders = {folder for folder, *_ in drained}
    assert folders == {memory / "ssd1" / "journals", memory / "ssd2" / "journals"}


def test_a_drainer_has_nothing_of_the_agents_own_control_nor_rights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[dict[str, Any]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda _, **rest: started.append(rest))
    monkeypatch.setenv("PENSTOCK_DISABLE", "1")
    monkeypatch.setenv("PENSTOCK_PREFIXES", "/mine")
    monkeypatch.setenv("TERM", "vt100")
    drainers.drain_beside(Path("/page"), Path("/j"), os.geteuid() + 1, 7)
    (options,) = started
    given = options["env"]
    assert given["TERM"] == "vt100"
    ours = {key: given[key] for key in given if key.startswith("PENSTOCK_")}
    assert ours == {
        "PENSTOCK_PAGE": "/page",
        "PENSTOCK_STAGING": "/j",
        "PENSTOCK_DRAIN": "5000",
    }
    assert (options["user"], options["group"]) == (os.geteuid() + 1, 7)
    assert options["extra_groups"] == []


def test_the_folder_is_that_of_the_environment_or_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_STAGING", "/a/b")
    assert default_folder() == Path("/a/b")
    monkeypatch.delenv("PENSTOCK_STAGING")
    assert default_folder().name == f"penstock-{os.geteuid()}"
