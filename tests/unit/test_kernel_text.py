# SPDX-License-Identifier: MIT
"""Text of the kernel: names in it that users choose add no lines and no fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.kernel_text import MountEntry, kernel_lines, mount_table

#: What ends a line, or separates words, for Python but not for the kernel.
SEPARATORS = ["\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


def test_a_line_feed_ends_a_line_and_nothing_else_does() -> None:
    for separator in SEPARATORS:
        text = f"a{separator}b\n\nc{separator}\n".encode()
        assert kernel_lines(text) == [f"a{separator}b", "", f"c{separator}"]
    assert kernel_lines(b"") == []
    assert kernel_lines(b"a") == ["a"]
    assert kernel_lines(b"\xff\n") == ["\udcff"]


@pytest.mark.parametrize("separator", [*SEPARATORS, "\u2003", "\xa0"])
def test_the_name_of_a_mount_adds_no_mount(tmp_path: Path, separator: str) -> None:
    forged = separator.join(["x", "9", "1", "0:9", "/", "/scratch", "rw", "-", "nfs4"])
    path = tmp_path / "mountinfo"
    path.write_bytes(f"1 2 0:7 / /home/{forged} rw - fuse.x y rw\n".encode())
    (mount,) = mount_table(path)
    assert mount == MountEntry("0:7", "/", f"/home/{forged}", "fuse.x", "y", "rw")


def test_names_may_be_any_bytes_and_have_escapes(tmp_path: Path) -> None:
    path = tmp_path / "mountinfo"
    path.write_bytes(
        b"\n"
        b"1 2 0:7 /a\\040b /\xff\\012\\134 rw shared:1 master:2 - t mfs\\043m rw,u=1\n"
        b"this is no mount\n"
        b"1 2 0:8 / / rw - tmpfs\n"
    )
    (mount,) = mount_table(path)
    assert mount == MountEntry("0:7", "/a b", "/\udcff\n\\", "t", "mfs#m", "rw,u=1")


def test_the_table_of_this_machine() -> None:
    assert any(mount.point == "/" for mount in mount_table())
