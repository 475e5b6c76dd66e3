# SPDX-License-Identifier: MIT
"""The log of a mount says when its folder is not at its path any more."""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest

from penstock.mount import backing_watch
from penstock.mount.backing_watch import BackingWatch
from penstock.mount.points import folder_id
from support.waiting import until


@pytest.fixture
def backing(tmp_path: Path) -> Path:
    (tmp_path / "backing").mkdir()
    return tmp_path / "backing"


def test_a_folder_that_vanishes_is_logged_once_and_its_return_too(
    backing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch = BackingWatch(str(backing), folder_id(backing.stat()))
    caplog.set_level(logging.INFO)
    watch._look()
    assert caplog.text == ""
    moved = backing.rename(backing.with_name("moved"))
    for _ in range(3):
        watch._look()
    backing.mkdir()
    watch._look()
    backing.rmdir()
    moved.rename(backing)
    watch._look()
    advice = "the mount serves the folder that was there before (unmount, and mount"
    assert [record.getMessage() for record in caplog.records] == [
        f"{backing} was removed or renamed; {advice} again)",
        f"{backing} was replaced by another folder; {advice} again)",
        f"{backing} is the mounted folder again",
    ]


def test_a_storage_that_fails_is_logged(
    backing: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch = BackingWatch(str(backing), folder_id(backing.stat()))

    def fail(_: Path) -> None:
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    monkeypatch.setattr(Path, "stat", fail)
    watch._look()
    monkeypatch.undo()
    assert "cannot be reached: Transport endpoint is not connected" in caplog.text


def test_it_looks_while_the_mount_is_served(
    backing: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(backing_watch, "_PERIOD_S", 0.01)
    with BackingWatch(str(backing), folder_id(backing.stat())):
        backing.rmdir()
        until(lambda: "was removed or renamed" in caplog.text)
