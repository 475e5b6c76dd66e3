# SPDX-License-Identifier: MIT
"""Requests that fail half-way: what is sound is answered, and no file stays open."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pyfuse3 = pytest.importorskip("pyfuse3")
trio = pytest.importorskip("trio")

from penstock.mount.filesystem import backing, passthrough  # noqa: E402
from penstock.mount.filesystem.backing import DirectoryEntry  # noqa: E402
from penstock.mount.filesystem.inodes import ROOT  # noqa: E402
from penstock.mount.filesystem.passthrough import PassThrough, _find_all  # noqa: E402

ME = SimpleNamespace(pid=os.getpid(), uid=os.geteuid(), gid=os.getegid())
#: More than are looked up in one go.
NAMES = [b"f%02d" % number for number in range(40)]


async def bound(_: object) -> str:
    """Give every file to one application."""
    return "some"


async def unbound(_: object) -> str:
    """Fail to say whose a file is."""
    raise OSError(errno.EIO, "broken")


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted as they are


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """Return a folder with files, opened."""
    for name in NAMES:
        (tmp_path / os.fsdecode(name)).touch()
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, int], None]:
    """Return a function that lets a name give an error."""

    def let_fail(victim: bytes, code: int) -> None:
        real = backing.find

        def find(parent: int, name: bytes) -> DirectoryEntry:
            if name == victim:
                raise OSError(code, os.strerror(code))
            return real(parent, name)

        monkeypatch.setattr(backing, "find", find)

    return let_fail


@pytest.mark.parametrize("code", [errno.ENOENT, errno.ESTALE, errno.EACCES, errno.EIO])
def test_a_broken_name_hides_no_other(folder: int, broken: Any, code: int) -> None:
    broken(b"f09", code)
    found = _find_all(folder, NAMES)
    assert [NAMES[n] for n, each in enumerate(found) if each is None] == [b"f09"]
    for each in found:
        if each is not None:
            os.close(each.fd)


def test_without_descriptors_there_is_an_error_and_no_short_list(
    folder: int, broken: Any
) -> None:
    broken(b"f09", errno.EMFILE)
    before = open_files()
    with pytest.raises(OSError, match="Too many open files"):
        _find_all(folder, NAMES)
    assert open_files() == before


def listed(files: PassThrough, start: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the names that a folder tells from a place on."""
    told: list[bytes] = []
    monkeypatch.setattr(backing, "list_names", lambda _: NAMES)
    monkeypatch.setattr(
        passthrough.pyfuse3,
        "readdir_reply",
        lambda _token, name, _entry, _next: told.append(name) or True,
    )

    async def main() -> None:
        fh = await files.opendir(ROOT, ME)
        try:
            if start:
                files._folders[fh].names = [b".", b"..", *NAMES]
            await files.readdir(fh, start, None)
        finally:
            await files.releasedir(fh)

    trio.run(main)
    return told


def test_what_was_told_before_an_error_is_answered(
    folder: int, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(b"f39", errno.EMFILE)
    files = PassThrough(os.dup(folder), None, bound)
    told = listed(files, 0, monkeypatch)
    assert told == [b".", b"..", *NAMES[:30]]
    # The kernel asks for the rest, and hears of it.
    with pytest.raises(pyfuse3.FUSEError) as caught:
        listed(files, len(told), monkeypatch)
    assert caught.value.errno == errno.EMFILE
    files.close()


def test_a_file_that_nobody_can_have_is_closed(folder: int) -> None:
    before = open_files()
    files = PassThrough(os.dup(folder), None, unbound)

    async def main() -> None:
        known = (await files.lookup(ROOT, b"f00", ME)).st_ino
        with pytest.raises(pyfuse3.FUSEError):
            await files.open(known, os.O_RDONLY, ME)
        with pytest.raises(pyfuse3.FUSEError):
            await files.create(ROOT, b"new", 0o600, os.O_WRONLY, ME)

    trio.run(main)
    files.close()
    assert open_files() == before
