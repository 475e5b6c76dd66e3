# SPDX-License-Identifier: MIT
"""Mount points: the mount table, folders, unmounting; nothing is mounted."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.mount import points
from penstock.mount.points import (
    check_folders,
    folder_id,
    has_ended,
    mounted_at,
    penstock_mount_at,
    unmount,
    why_replaced,
)

LINES = (
    "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    r"40 22 0:57 / /mnt/with\040space rw - fuse.penstock /data rw"
    "\n"
    "41 22 0:58 / /mnt/twice rw shared:1 master:2 - tmpfs none rw\n"
    "42 22 0:59 / /mnt/twice rw - fuse.penstock /data rw\n"
    "43 22 0:60 / /mnt/user rw - fuse.penstock /data rw,user_id=1234,group_id=5\n"
)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the mount table of the machine."""
    path = tmp_path / "mountinfo"
    path.write_text(LINES)
    monkeypatch.setattr(points, "_MOUNTS", path)


@pytest.mark.usefixtures("table")
def test_the_mount_table_is_read() -> None:
    entry = mounted_at("/mnt/with space")
    assert entry is not None
    assert (entry.device, entry.kind) == ("0:57", "fuse.penstock")
    assert mounted_at("/mnt") is None


@pytest.mark.usefixtures("table")
def test_the_table_says_who_has_mounted() -> None:
    assert penstock_mount_at("/mnt/user").user_id == 1234
    assert penstock_mount_at("/mnt/twice").user_id is None


@pytest.mark.usefixtures("table")
def test_the_topmost_of_two_mounts_counts() -> None:
    assert penstock_mount_at("/mnt/twice").device == "0:59"


@pytest.mark.usefixtures("table")
def test_a_mount_of_another_type_is_refused() -> None:
    with pytest.raises(InputError, match="not a penstock mount"):
        penstock_mount_at("/")


def test_a_mount_that_hangs_has_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(points, "_ANSWER_S", 0.01)
    monkeypatch.setattr(Path, "stat", lambda _: answered.wait())
    assert not has_ended("/mnt")
    answered.set()


@pytest.mark.parametrize(
    ("code", "expected"), [(errno.ENOTCONN, True), (errno.EACCES, False)]
)
def test_only_a_lost_connection_means_that_a_mount_has_ended(
    monkeypatch: pytest.MonkeyPatch, code: int, expected: bool
) -> None:
    def fail(_: Path) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "stat", fail)
    assert has_ended("/mnt") == expected


def test_the_root_is_mounted() -> None:
    assert mounted_at("/") is not None


@pytest.mark.parametrize("pair", [("a", "a/b"), ("a/b", "a"), ("a", "a"), ("a", "l")])
def test_neither_folder_may_lie_in_the_other(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "l").symlink_to("a/b")
    with pytest.raises(InputError, match="or contains it"):
        check_folders(str(tmp_path / pair[0]), str(tmp_path / pair[1]))


def test_two_separate_folders_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "ab").mkdir()
    a, ab = str(tmp_path / "a"), str(tmp_path / "ab")
    assert check_folders(a, ab) == (a, ab)


def test_an_unmount_that_hangs_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "fusermount3"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr(points, "_TIMEOUT_S", 0.1)
    with pytest.raises(OSError, match="timed out") as caught:
        unmount("/mnt/hangs", lazy=True)
    assert caught.value.errno == errno.ETIMEDOUT


def test_a_folder_that_is_not_the_mounted_one_any_more_is_noticed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    mounted = folder_id(folder.stat())
    assert why_replaced(str(folder), mounted) == ""
    folder.rename(tmp_path / "old")
    assert why_replaced(str(folder), mounted) == "was removed or renamed"
    folder.mkdir()
    assert why_replaced(str(folder), mounted) == "was replaced by another folder"
