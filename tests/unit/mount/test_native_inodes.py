# SPDX-License-Identifier: MIT
"""The table of inodes: paths of files, which rules of applications look at."""

from __future__ import annotations

from ctypes import create_string_buffer
from itertools import accumulate

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
