# SPDX-License-Identifier: MIT
"""Calls to the backing file system, on a real folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.mount.filesystem import backing
from penstock.mount.filesystem.backing import AttributeChanges, DirectoryEntry, Owner

ME = Owner(os.geteuid(), os.getegid())
RENAME_NOREPLACE = 1


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    fd = backing.open_path(bytes(tmp_path))
    yield fd
    os.close(fd)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def close(entry: DirectoryEntry) -> os.stat_result:
    os.close(entry.fd)
    return entry.status


def test_a_descriptor_is_closed_only_after_an_error(tmp_path: Path) -> None:
    kept, dropped = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))
    with backing.closed_on_error(kept):
        pass
    os.close(kept)
    with pytest.raises(KeyboardInterrupt), backing.closed_on_error(dropped):
        raise KeyboardInterrupt
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(dropped)


def test_a_return_inside_the_block_keeps_the_descriptor(tmp_path: Path) -> None:
    def kept() -> int:
        fd = os.open(tmp_path, os.O_RDONLY)
        with backing.closed_on_error(fd):
            return fd

    os.close(kept())


def test_new_files_of_every_kind(root: int, tmp_path: Path) -> None:
    node = close(backing.make_node(root, b"pipe", stat.S_IFIFO | 0o640, 0, ME))
    assert stat.S_ISFIFO(node.st_mode)
    folder = close(backing.make_folder(root, b"folder", 0o750, ME))
    assert stat.S_ISDIR(folder.st_mode)
    link = backing.make_symlink(root, b"link", b"folder", ME)
    assert backing.read_symlink(link.fd) == b"folder"
    assert stat.S_ISLNK(close(link).st_mode)
    assert sorted(os.listdir(tmp_path)) == ["folder", "link", "pipe"]  # noqa: PTH208


def test_create_opens_a_new_file_and_refuses_an_existing_one(root: int) -> None:
    flags = os.O_RDWR | os.O_EXCL
    handle, entry = backing.create(root, b"new", flags, 0o600, ME)
    assert os.fstat(handle).st_ino == close(entry).st_ino
    os.close(handle)
    before = open_descriptors()
    with pytest.raises(FileExistsError):
        backing.create(root, b"new", flags, 0o600, ME)
    assert open_descriptors() == before


def test_create_without_exclusive_opens_an_existing_file(
    root: int, tmp_path: Path
) -> None:
    (tmp_path / "old").write_bytes(b"data")
    handle, entry = backing.create(root, b"old", os.O_RDWR, 0o600, Owner(0, 0))
    assert backing.read(handle, 10, 0) == b"data"
    assert close(entry).st_uid == ME.uid
    os.close(handle)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change owners")
@pytest.mark.parametrize("set_group", [False, True])
def test_a_new_file_belongs_to_its_owner_and_keeps_its_mode(
    root: int, tmp_path: Path, set_group: bool
) -> None:
    tmp_path.chmod(0o2755 if set_group else 0o755)
    mode = stat.S_IFREG | 0o4755
    status = close(backing.make_node(root, b"x", mode, 0, Owner(77, 88)))
    assert (status.st_uid, status.st_mode & 0o7777) == (77, mode & 0o7777)
    assert status.st_gid == (tmp_path.stat().st_gid if set_group else 88)


def test_a_hard_link_is_the_same_file(root: int, tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    first = backing.look_up(root, b"a")
    second = backing.link(first.fd, root, b"b")
    assert close(first).st_ino == close(second).st_ino


def test_rename_with_flags_reports_the_error_of_the_system_call(
    root: int, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    with pytest.raises(FileExistsError) as caught:
        backing.rename(root, b"a", root, b"b", RENAME_NOREPLACE)
    assert caught.value.errno == errno.EEXIST
    backing.rename(root, b"a", root, b"b", 0)
    assert (tmp_path / "b").read_text() == "a"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(max_size=300), position=st.integers(0, 300), size=st.integers(0, 400)
)
def test_reads_return_what_was_written_up_to_the_end_of_the_file(
    tmp_path: Path, data: bytes, position: int, size: int
) -> None:
    handle = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        assert backing.write(handle, data, 0) == len(data)
        assert backing.read(handle, size, position) == data[position : position + size]
    finally:
        os.close(handle)


def test_short_reads_are_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(100))

    def pread(_handle: int, size: int, position: int) -> bytes:
        return content[position : position + min(size, 7)]

    monkeypatch.setattr(os, "pread", pread)
    assert backing.read(3, 60, 10) == content[10:70]
    assert backing.read(3, 60, 80) == content[80:]


def test_a_write_that_fails_later_returns_what_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def pwrite(_handle: int, data: bytes, position: int) -> int:
        calls.append((len(data), position))
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "full")
        return 4

    monkeypatch.setattr(os, "pwrite", pwrite)
    assert backing.write(3, bytes(10), 100) == 8
    assert calls == [(10, 100), (6, 104), (2, 108)]


def test_a_write_that_fails_at_once_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def pwrite(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OSError, match="full"):
        backing.write(3, b"data", 0)


def test_attributes_that_are_none_do_not_change(root: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(100))
    entry = backing.look_up(root, b"f")
    before = entry.status
    status = backing.set_attributes(entry.fd, None, AttributeChanges())
    assert status.st_mode == before.st_mode
    assert (status.st_size, status.st_mtime_ns) == (100, before.st_mtime_ns)
    changes = AttributeChanges(mode=0o600, size=7, mtime_ns=5 * 10**9)
    status = backing.set_attributes(entry.fd, None, changes)
    assert (stat.S_IMODE(status.st_mode), status.st_size) == (0o600, 7)
    assert (status.st_mtime_ns, status.st_atime_ns) == (5 * 10**9, before.st_atime_ns)
    os.close(entry.fd)


def test_appending_and_direct_flags_are_not_passed(root: int, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    entry = backing.look_up(root, b"f")
    handle = backing.open_file(entry.fd, os.O_RDWR | os.O_APPEND | os.O_DIRECT)
    backing.write(handle, b"ab", 0)
    backing.sync(handle, data_only=True)
    backing.flush(handle)
    assert (tmp_path / "f").read_bytes() == b"ab23456789"
    os.close(handle)
    os.close(entry.fd)
