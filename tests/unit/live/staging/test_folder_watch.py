# SPDX-License-Identifier: MIT
"""Folders of jobs appear once, and are in use while files are made in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.live.staging.folder_watch import (
    _MOST_NEW,
    IDLE_S,
    FolderChanges,
    FolderWatch,
)
from support.users import NEEDS_ROOT, NOBODY

NOTHING = FolderChanges()


def _make(path: Path) -> None:
    """Make a folder; the time of its parent changes even on a coarse clock."""
    before_ns = path.parent.stat().st_mtime_ns
    path.mkdir()
    os.utime(path.parent, ns=(before_ns, before_ns + 1))


def test_only_folders_that_appear_after_the_first_look_count(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    assert watch.look(0.0) == NOTHING
    _make(tmp_path / "new")
    (tmp_path / "file").write_text("not a folder")
    assert watch.look(1.0) == FolderChanges(["new"], [])
    assert watch.look(2.0) == NOTHING


def test_of_many_folders_few_are_returned_at_once(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    names = [f"{number:03}" for number in range(2 * _MOST_NEW + 5)]
    for name in names:
        _make(tmp_path / name)
    looks = [watch.look(100.0 * count).appeared for count in range(1, 5)]
    assert [len(look) for look in looks] == [_MOST_NEW, _MOST_NEW, 5, 0]
    assert [name for look in looks for name in look] == names


def test_names_of_folders_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    for count in range(3):
        _make(tmp_path / "a")
        assert watch.look(2.0 * count) == FolderChanges(["a"], [])
        (tmp_path / "a").rmdir()
        assert watch.look(2.0 * count + 1.0) == FolderChanges([], ["a"])
    assert watch._seen == set()


@NEEDS_ROOT
def test_folders_of_other_users_are_not_noticed(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    _make(tmp_path / "of-another")
    os.chown(tmp_path / "of-another", NOBODY, NOBODY)
    _make(tmp_path / "own")
    assert watch.look(1.0).appeared == ["own"]


def test_times_of_modification_may_be_coarse(tmp_path: Path) -> None:
    """Two folders appear in one second, as the file system counts them."""
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    _make(tmp_path / "a")
    changed_ns = tmp_path.stat().st_mtime_ns
    assert watch.look(10.0).appeared == ["a"]
    (tmp_path / "b").mkdir()
    os.utime(tmp_path, ns=(changed_ns, changed_ns))
    assert watch.look(12.0).appeared == ["b"]
    assert watch.look(14.0) == NOTHING


def test_a_folder_that_is_removed_or_idle_is_no_longer_in_use(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    _make(tmp_path / "a")
    _make(tmp_path / "b")
    assert watch.look(0.0).appeared == ["a", "b"]
    (tmp_path / "a").rmdir()
    assert watch.look(1.0) == FolderChanges([], ["a"])
    os.utime(tmp_path / "b", ns=(1, 1))
    assert watch.look(2.0) == NOTHING
    assert watch.look(1.0 + IDLE_S) == NOTHING
    assert watch.look(2.0 + IDLE_S) == FolderChanges([], ["b"])
    assert watch.look(3.0 + IDLE_S) == NOTHING


@pytest.mark.parametrize(
    ("pattern", "folder", "name"),
    [
        ("run-{job}.d", "run-x.d", "x"),
        ("run-{job}.d", "x.d", None),
        ("{job}/output", "x", "x"),
        ("{job}", ".hidden", None),
    ],
)
def test_the_name_is_where_the_pattern_says(
    tmp_path: Path, pattern: str, folder: str, name: str | None
) -> None:
    watch = FolderWatch(f"{tmp_path}/{pattern}")
    watch.look(0.0)
    _make(tmp_path / folder)
    assert watch.look(1.0).appeared == ([name] if name else [])


def test_folders_of_a_file_system_that_is_mounted_later_are_old(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/missing/{{job}}")
    assert watch.look(0.0) == NOTHING
    (tmp_path / "missing" / "old").mkdir(parents=True)
    assert watch.look(1.0) == NOTHING
    _make(tmp_path / "missing" / "new")
    assert watch.look(2.0).appeared == ["new"]
