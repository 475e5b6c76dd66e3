# SPDX-License-Identifier: MIT
"""Writing files: completely or not at all, with the mode of any new file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.files import replacing


def test_the_advice_for_a_file_that_cannot_be_written_fits_the_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").touch()
    cases = {
        tmp_path / "file" / "below" / "file": "name a file in a folder that exists",
        tmp_path / "file" / "file": "name a file in a folder that exists",
        tmp_path: "name a file, not a folder",
    }
    for path, advice in cases.items():
        with pytest.raises(InputError, match=advice), replacing(path):
            pass


def test_the_folder_of_a_file_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file"
    with replacing(path) as stream:
        stream.write(b"x")
    assert path.read_bytes() == b"x"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_a_file_is_replaced_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, InputError])
def test_on_an_error_the_old_file_stays_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def fill() -> None:
        with replacing(path) as stream:
            stream.write(b"new")
            raise error("stop")

    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(error):
        fill()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_on_an_error_no_file_is_made(tmp_path: Path) -> None:
    def fill() -> None:
        with replacing(tmp_path / "a.txt") as stream:
            stream.write(b"new")
            raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="cannot write the file: No space left"):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    def fill() -> None:
        with replacing(tmp_path / "folder") as stream:
            stream.write(b"new")

    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot write the file"):
        fill()
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_permissions_are_those_of_any_new_file(
    tmp_path: Path, mask: int, mode: int
) -> None:
    path = tmp_path / "a.txt"
    before = os.umask(mask)
    try:
        with replacing(path) as stream:
            stream.write(b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_the_umask_of_other_threads_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The umask is one of the process: a file made meanwhile would be for everybody."""
    monkeypatch.setattr(os, "umask", None)
    with replacing(tmp_path / "a.txt") as stream:
        stream.write(b"new")


def test_a_device_or_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    # As /dev/null or /dev/stdout: replacing those would ruin the machine.
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(path) as stream:
            stream.write(b"new")
        assert stat.S_ISFIFO(path.stat().st_mode)
        assert os.read(reader, 16) == b"new"
    finally:
        os.close(reader)


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("there/file")
    with replacing(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["file"]
