# SPDX-License-Identifier: MIT
"""Folders of jobs appear once, and are in use while files are made in them."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable
from pathlib import Path

import pytest

from penstock.live.staging import folder_watch
from penstock.live.staging.folder_watch import (
    _MOST_NEW,
    _MOST_NEW_OF_USER,
    IDLE_S,
    FolderChanges,
    FolderWatch,
    UserFolderWatch,
)
from penstock.live.staging.job_folder import JobFolder
from support.users import NEEDS_ROOT, NOBODY, two_known_users

NOTHING = FolderChanges()
OWN = os.geteuid()


def _changes(appeared: list[str], ended: list[str], user: int = OWN) -> FolderChanges:
    """Return changes of jobs of these names."""
    return FolderChanges(_keys(appeared, user), _keys(ended, user))


def _keys(names: Iterable[str], user: int = OWN) -> list[str]:
    return [f"{user}:{name}" for name in names]


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
    assert watch.look(1.0) == _changes(["new"], [])
    assert watch.look(2.0) == NOTHING


def test_of_many_folders_few_are_returned_at_once(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    names = [f"{number:03}" for number in range(2 * _MOST_NEW + 5)]
    for name in names:
        _make(tmp_path / name)
    looks = [watch.look(100.0 * count).appeared for count in range(1, 5)]
    assert [len(look) for look in looks] == [_MOST_NEW, _MOST_NEW, 5, 0]
    assert [name for look in looks for name in look] == _keys(names)


def test_names_of_folders_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    for count in range(3):
        _make(tmp_path / "a")
        assert watch.look(2.0 * count) == _changes(["a"], [])
        (tmp_path / "a").rmdir()
        assert watch.look(2.0 * count + 1.0) == _changes([], ["a"])
    assert watch._seen == set()


@NEEDS_ROOT
def test_folders_of_other_users_are_not_noticed(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    _make(tmp_path / "of-another")
    os.chown(tmp_path / "of-another", NOBODY, NOBODY)
    _make(tmp_path / "own")
    assert watch.look(1.0).appeared == _keys(["own"])


def test_times_of_modification_may_be_coarse(tmp_path: Path) -> None:
    """Two folders appear in one second, as the file system counts them."""
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    _make(tmp_path / "a")
    changed_ns = tmp_path.stat().st_mtime_ns
    assert watch.look(10.0).appeared == _keys(["a"])
    (tmp_path / "b").mkdir()
    os.utime(tmp_path, ns=(changed_ns, changed_ns))
    assert watch.look(12.0).appeared == _keys(["b"])
    assert watch.look(14.0) == NOTHING


def test_a_folder_that_is_removed_or_idle_is_no_longer_in_use(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    _make(tmp_path / "a")
    _make(tmp_path / "b")
    assert watch.look(0.0).appeared == _keys(["a", "b"])
    (tmp_path / "a").rmdir()
    assert watch.look(1.0) == _changes([], ["a"])
    os.utime(tmp_path / "b", ns=(1, 1))
    assert watch.look(2.0) == NOTHING
    assert watch.look(1.0 + IDLE_S) == NOTHING
    assert watch.look(2.0 + IDLE_S) == _changes([], ["b"])
    assert watch.look(3.0 + IDLE_S) == NOTHING


def test_a_folder_is_in_use_while_files_are_made_in_its_sub_folders(
    tmp_path: Path,
) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    deep = tmp_path / "a" / "sub" / "deep"
    deep.mkdir(parents=True)
    assert watch.look(0.0).appeared == _keys(["a"])
    state = (tmp_path / "a").stat()
    # The last change is 1,000 s after the last one in the folder itself.
    os.utime(deep, ns=(1, state.st_mtime_ns + 10**12))
    assert watch.look(IDLE_S) == NOTHING
    assert watch.look(IDLE_S + 999.0) == NOTHING
    os.utime(deep, ns=(1, state.st_mtime_ns + 2 * 10**12))
    assert watch.look(IDLE_S + 1001.0) == NOTHING
    assert watch.look(IDLE_S + 1999.0) == NOTHING
    assert watch.look(IDLE_S + 2001.0) == _changes([], ["a"])


def test_sub_folders_without_changes_do_not_keep_a_folder_in_use(
    tmp_path: Path,
) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    (tmp_path / "a" / "sub").mkdir(parents=True)
    os.utime(tmp_path / "a" / "sub", ns=(1, 1))
    assert watch.look(0.0).appeared == _keys(["a"])
    assert watch.look(IDLE_S) == _changes([], ["a"])


def test_a_time_in_the_future_does_not_keep_a_folder_in_use_for_ever(
    tmp_path: Path,
) -> None:
    watch = FolderWatch(f"{tmp_path}/{{job}}")
    watch.look(0.0)
    (tmp_path / "a" / "sub").mkdir(parents=True)
    os.utime(tmp_path / "a" / "sub", ns=(1, 2**62))
    assert watch.look(0.0).appeared == _keys(["a"])
    assert watch.look(IDLE_S) == NOTHING
    assert watch.look(2.0 * IDLE_S) == _changes([], ["a"])


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
    assert watch.look(1.0).appeared == _keys([name] if name else [])


def test_folders_of_a_file_system_that_is_mounted_later_are_old(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/missing/{{job}}")
    assert watch.look(0.0) == NOTHING
    (tmp_path / "missing" / "old").mkdir(parents=True)
    assert watch.look(1.0) == NOTHING
    _make(tmp_path / "missing" / "new")
    assert watch.look(2.0).appeared == _keys(["new"])


def test_a_folder_that_becomes_a_link_is_no_longer_in_use(tmp_path: Path) -> None:
    """A link may lead to where no call returns."""
    watch = FolderWatch(f"{tmp_path}/jobs/{{job}}")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    watch.look(0.0)
    _make(tmp_path / "jobs" / "a")
    assert watch.look(1.0) == _changes(["a"], [])
    (tmp_path / "jobs" / "a").rmdir()
    (tmp_path / "jobs" / "a").symlink_to(tmp_path / "elsewhere")
    assert watch.look(2.0) == _changes([], ["a"])


def test_the_operator_may_have_put_a_link_above(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    watch = FolderWatch(f"{tmp_path}/link/{{job}}")
    watch.look(0.0)
    _make(tmp_path / "real" / "a")
    assert watch.look(1.0) == _changes(["a"], [])


def test_looks_leave_no_descriptor_open(tmp_path: Path) -> None:
    watch = FolderWatch(f"{tmp_path}/jobs/{{job}}", OWN, tmp_path)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    watch.look(0.0)
    (tmp_path / "jobs").mkdir()
    watch.look(1.0)
    (tmp_path / "jobs").rmdir()
    (tmp_path / "jobs").write_text("a file")
    watch.look(2.0)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


# --- All users ------------------------------------------------------------------------


def _make_for(user: pwd.struct_passwd, *paths: Path) -> None:
    for path in paths:
        _make(path)
        os.chown(path, user.pw_uid, user.pw_gid)


@NEEDS_ROOT
def test_folders_of_all_users_are_noticed_in_folders_of_their_own(
    tmp_path: Path,
) -> None:
    first, second = two_known_users()
    watch = UserFolderWatch(JobFolder(f"{tmp_path}/{{user}}/{{job}}", all_users=True))
    own = tmp_path / first.pw_name
    _make_for(first, own, own / "old")
    assert watch.look(0.0) == NOTHING
    _make_for(first, own / "new")
    # A folder in that of another user, and one under the name of another user.
    _make_for(second, own / "intruder", tmp_path / "stranger", tmp_path / "stranger/x")
    assert watch.look(1.0) == _changes(["new"], [], first.pw_uid)
    # The folder of a user who comes later may already have those of jobs.
    later = tmp_path / second.pw_name
    _make_for(second, later, later / "first")
    assert watch.look(2.0) == _changes(["first"], [], second.pw_uid)
    (own / "new").rmdir()
    (later / "first").rmdir()
    later.rmdir()
    changes = watch.look(3.0)
    assert sorted(changes.ended) == [f"{first.pw_uid}:new", f"{second.pw_uid}:first"]
    _make(tmp_path / "any")
    assert watch.look(4.0) == NOTHING
    assert list(watch._watches) == [first.pw_uid]


@NEEDS_ROOT
def test_a_link_to_the_folder_of_another_user_shows_nothing(tmp_path: Path) -> None:
    first, second = two_known_users()
    watch = UserFolderWatch(JobFolder(f"{tmp_path}/{{user}}/{{job}}", all_users=True))
    _make_for(first, tmp_path / first.pw_name)
    _make_for(second, tmp_path / second.pw_name)
    watch.look(0.0)
    (tmp_path / first.pw_name).rmdir()
    (tmp_path / first.pw_name).symlink_to(tmp_path / second.pw_name)
    _make_for(second, tmp_path / second.pw_name / "sim")
    assert watch.look(1.0) == _changes(["sim"], [], second.pw_uid)


@NEEDS_ROOT
@pytest.mark.parametrize("link", ["{user}", "{user}/jobs"])
def test_a_link_above_the_folders_of_a_user_is_not_followed(
    tmp_path: Path, link: str
) -> None:
    """Also while a folder of this user is in use."""
    user, _ = two_known_users()
    (tmp_path / "users").mkdir()
    pattern = f"{tmp_path}/users/{{user}}/jobs/{{job}}"
    watch = UserFolderWatch(JobFolder(pattern, all_users=True))
    place = tmp_path / "users" / user.pw_name
    _make_for(user, place, place / "jobs")
    watch.look(0.0)
    _make_for(user, place / "jobs" / "sim")
    assert watch.look(1.0) == _changes(["sim"], [], user.pw_uid)
    replaced = tmp_path / "users" / link.replace("{user}", user.pw_name)
    replaced.rename(tmp_path / "elsewhere")
    replaced.symlink_to(tmp_path / "elsewhere")
    assert watch.look(2.0) == _changes([], ["sim"], user.pw_uid)
    assert watch.look(3.0) == NOTHING


@NEEDS_ROOT
def test_one_user_with_many_folders_does_not_hide_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_watch, "_MOST_IN_USE", 8)
    first, second = two_known_users()
    watch = UserFolderWatch(JobFolder(f"{tmp_path}/{{user}}/{{job}}", all_users=True))
    own, other = (tmp_path / user.pw_name for user in (first, second))
    _make_for(first, own)
    _make_for(second, other)
    watch.look(0.0)
    _make_for(first, *(own / str(number) for number in range(30)))
    _make_for(second, other / "sim")
    seen = [watch.look(1.0 + count).appeared for count in range(6)]
    assert f"{second.pw_uid}:sim" in seen[0]
    assert len(seen[0]) == _MOST_NEW_OF_USER + 1
    assert sum(map(len, seen)) == 8 + 1


@NEEDS_ROOT
def test_all_users_have_turns_while_others_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_watch, "_MOST_USERS", 1)
    users = two_known_users()
    watch = UserFolderWatch(JobFolder(f"{tmp_path}/{{user}}/{{job}}", all_users=True))
    for user in users:
        _make_for(user, tmp_path / user.pw_name)
    for count in range(2):
        watch.look(float(count))
        _make(tmp_path / f"any{count}")
    for user in users:
        _make_for(user, tmp_path / user.pw_name / "sim")
    appeared = []
    for count in range(2):
        appeared += watch.look(2.0 + count).appeared
        _make(tmp_path / f"other{count}")
    assert sorted(appeared) == sorted(f"{user.pw_uid}:sim" for user in users)


@NEEDS_ROOT
def test_many_entries_of_one_user_cost_little_and_hide_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are read in parts, and each owner is looked up once."""
    monkeypatch.setattr(folder_watch, "_MOST_ENTRIES", 5)
    read, asked = 0, []

    def owner(entry: os.DirEntry[str]) -> int | None:
        nonlocal read
        read += 1
        return entry.stat(follow_symlinks=False).st_uid

    def top_of_user(folders: JobFolder, user: int) -> Path:
        asked.append(user)
        return folders.above / pwd.getpwuid(user).pw_name

    first, second = two_known_users()
    watch = UserFolderWatch(JobFolder(f"{tmp_path}/{{user}}/{{job}}", all_users=True))
    watch.look(0.0)
    _make_for(first, *(tmp_path / f"junk{number}" for number in range(28)))
    _make_for(second, tmp_path / second.pw_name, tmp_path / second.pw_name / "sim")
    monkeypatch.setattr(folder_watch, "_owner", owner)
    monkeypatch.setattr(JobFolder, "top_of_user", top_of_user)
    appeared, reads = [], []
    # Six looks for a listing of 29 entries, and the folder of the user at one of them.
    for count in range(6):
        read = 0
        appeared += watch.look(1.0 + count).appeared
        reads.append(read)
    assert appeared == [f"{second.pw_uid}:sim"]
    assert max(reads) <= 5 + 1
    assert sorted(asked) == sorted([first.pw_uid, second.pw_uid])
    assert list(watch._watches) == [second.pw_uid]


@NEEDS_ROOT
def test_a_change_while_entries_are_read_is_seen_with_coarse_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing took long; the time of modification is the same as at its begin."""
    monkeypatch.setattr(folder_watch, "_MOST_ENTRIES", 1)
    first, second = two_known_users()
    _make_for(first, tmp_path / first.pw_name)
    watch = UserFolderWatch(JobFolder(f"{tmp_path}/{{user}}/{{job}}", all_users=True))
    changed_ns = tmp_path.stat().st_mtime_ns
    for look_s in (0.0, 10.0):
        watch.look(look_s)
    _make_for(second, tmp_path / second.pw_name)
    os.utime(tmp_path, ns=(changed_ns, changed_ns))
    for look_s in (20.0, 30.0, 40.0):
        watch.look(look_s)
    assert sorted(watch._watches) == sorted([first.pw_uid, second.pw_uid])
