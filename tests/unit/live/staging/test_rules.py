# SPDX-License-Identifier: MIT
"""Settings of staging: how the preload library gets them, and which are refused."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.staging import rules
from penstock.live.staging.rules import Staging


def test_the_library_gets_all_settings() -> None:
    staging = Staging(Path("/a"), 1 << 20, False, "journal", ("-*.log", "*.dat"))
    assert Staging.of(staging.environment()) == staging
    assert Staging.of(Staging(Path("/a")).environment()) == Staging(Path("/a"))
    assert Staging.of({}) is None


@pytest.mark.parametrize(
    ("when", "always"), [("always", True), ("granted", False), ("", False)]
)
def test_a_variable_says_when_writes_are_staged(when: str, always: bool) -> None:
    staging = Staging.of({"PENSTOCK_STAGING": "/a", "PENSTOCK_STAGING_WHEN": when})
    assert staging is not None
    assert staging.always is always


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"durable": "never"}, "durability"),
        ({"capacity_bytes": 1000}, "a journal of 1000 bytes"),
        ({"folder": Path("here")}, "not an absolute path"),
        ({"folder": Path("/a:b")}, "not an absolute path"),
        ({"folder": Path("/" + "x" * 1024)}, "more than 1024 bytes"),
        ({"rules": ("a:b",)}, "is not a rule"),
        ({"rules": ("-",)}, "is not a rule"),
        ({"rules": ("x" * 600, "y" * 600)}, "more than 1024 bytes"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Staging(**{"folder": Path("/a"), **options})


def test_a_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    Staging(tmp_path / "a").prepare()
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_the_folders_above_are_not_made(tmp_path: Path) -> None:
    """As root, a mistake in the path would otherwise create folders in ``/``."""
    with pytest.raises(InputError, match="of the journals cannot be created: No such"):
        Staging(tmp_path / "a" / "b").prepare()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match="journals can be written by other users"):
        Staging(tmp_path).prepare()


def test_a_link_to_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(InputError, match="is not a folder that belongs to you"):
        Staging(tmp_path / "link").prepare()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(InputError, match="is not a folder that belongs to you"):
        Staging(tmp_path / "a").prepare()


def test_mounts_of_users_hide_no_file_system(tmp_path: Path) -> None:
    """A mount point may have any bytes, and the kernel escapes blanks in it."""
    (folder := tmp_path / "a b").mkdir()
    table = tmp_path / "mountinfo"
    place = os.fsencode(tmp_path)
    table.write_bytes(
        b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        b"2 1 0:8 / /home/\xff\rx rw - fuse.x y rw\n"
        b"3 1 0:9 / " + place + b"/a\\040b rw - tmpfs none rw\n"
    )
    assert rules._file_system(folder, table) == "tmpfs"
    assert rules._file_system(tmp_path, table) == "ext4"


def test_memory_cannot_promise_to_survive_the_machine(tmp_path: Path) -> None:
    folder = Path("/dev/shm")  # noqa: S108 - where memory is
    if not folder.is_dir():
        pytest.skip("needs /dev/shm")
    made = Path(mkdtemp(dir=folder))
    try:
        with pytest.raises(InputError, match="does not survive"):
            Staging(made, durable="journal").prepare()
        Staging(made).prepare()
    finally:
        made.rmdir()
