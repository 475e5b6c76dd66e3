# SPDX-License-Identifier: MIT
"""The table of inodes: paths, which rules of applications look at, and descriptors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from ctypes import create_string_buffer
from itertools import accumulate
from pathlib import Path

import pytest

from support.native_mount import driver

#: As in classify.c.
PATH_MAX = 4096


def path_of(folders: list[str], name: str | None, size: int = PATH_MAX) -> str:
    """Return the path of a name in nested folders, as rules see it."""
    table = driver().driver_inodes_new()
    inode = None
    for number, folder in enumerate(folders):
        inode = driver().driver_inodes_add(table, inode, folder.encode(), number + 1)
    path = create_string_buffer(b"?" * (size + 8), size + 8)
    part = None if name is None else name.encode()
    driver().driver_inodes_path(table, inode, part, path, size)
    assert path.raw[size:] == b"?" * 8
    return path.value.decode()


@pytest.mark.parametrize("name", [None, "file"])
def test_a_path_begins_at_the_mount_point(name: str | None) -> None:
    assert path_of(["a", "bc"], name) == "/a/bc" + (f"/{name}" if name else "")


def test_a_path_that_is_too_long_is_cut_at_its_end() -> None:
    """If it began in the middle, it could begin with the folder of another rule."""
    folders = ["o" * 255, "favoured", *["x" * 255] * 15]
    path = path_of(folders, "file")
    assert path == "".join(f"/{folder}" for folder in folders[:-1])


@pytest.mark.parametrize("size", range(2, 16))
def test_as_many_names_are_kept_as_fit(size: int) -> None:
    names = ["a", "bc", "def", "gh"]
    lengths = list(accumulate(1 + len(name) for name in names))
    kept = sum(length < size for length in lengths)
    expected = "".join(f"/{name}" for name in names[:kept])
    assert path_of(names[:3], "gh", size) == expected


#: Descriptors that a table keeps at most, unless open files need more.
MAX_FDS = 8


class Table:
    """A table of the files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pointer = driver().driver_inodes_of(bytes(folder), MAX_FDS)

    @property
    def fds(self) -> int:
        count: int = driver().driver_inodes_fds(self.pointer)
        return count

    def look_up(self, name: str) -> int:
        (self.folder / name).touch()
        inode: int = driver().driver_inodes_look_up(self.pointer, name.encode())
        return inode

    def open(self, inode: int, name: str, before: int) -> None:
        """Open a file, and leave its name to the test."""
        file = os.open(self.folder / name, os.O_RDONLY)
        driver().inodes_opened(self.pointer, inode, file, before)
        os.close(file)

    def change(self) -> None:
        """Change another name."""
        driver().inodes_begin_change(self.pointer)
        driver().inodes_end_change(self.pointer)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    made = Table(tmp_path)
    yield made
    driver().driver_inodes_free(made.pointer)


def test_files_that_are_opened_while_a_name_changes_leave_no_descriptors(
    table: Table,
) -> None:
    driver().inodes_begin_change(table.pointer)
    for number in range(10 * MAX_FDS):
        inode = table.look_up(f"{number}")
        before = driver().inodes_before_open(table.pointer)
        table.open(inode, f"{number}", before)
        driver().inodes_closed(table.pointer, inode)
    driver().inodes_end_change(table.pointer)
    assert table.fds <= MAX_FDS


def test_a_file_whose_own_name_has_not_changed_costs_no_descriptor(
    table: Table,
) -> None:
    before = driver().inodes_before_open(table.pointer)
    table.change()
    for number in range(3):
        table.open(table.look_up(f"{number}"), f"{number}", before)
    assert table.fds == 1  # of the folder


def test_a_file_that_has_lost_its_name_while_it_was_opened_stays_open(
    table: Table,
) -> None:
    inode = table.look_up("file")
    (table.folder / "other").hardlink_to(table.folder / "file")
    before = driver().inodes_before_open(table.pointer)
    (table.folder / "file").unlink()
    table.change()
    table.open(inode, "other", before)
    assert driver().driver_inodes_use(table.pointer, inode)


def test_a_process_without_descriptors_closes_unused_ones(table: Table) -> None:
    """Otherwise no file could be used any more."""
    inodes = [table.look_up(f"{number}") for number in range(MAX_FDS)]
    for inode in inodes[:-1]:
        assert driver().driver_inodes_use(table.pointer, inode)
    assert table.fds == MAX_FDS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = os.dup(0)
    os.close(highest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
    try:
        is_used = driver().driver_inodes_use(table.pointer, inodes[-1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert is_used
