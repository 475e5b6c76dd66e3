# SPDX-License-Identifier: MIT
"""Requests that fail: the mount goes on, answers what it can, leaks no descriptor."""

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

from penstock.mount.filesystem import backing  # noqa: E402
from penstock.mount.filesystem.backing import DirectoryEntry  # noqa: E402
from penstock.mount.filesystem.inodes import ROOT  # noqa: E402
from penstock.mount.filesystem.passthrough import PassThrough, _look_up_all  # noqa: E402

ME: Any = SimpleNamespace(pid=os.getpid(), uid=os.geteuid(), gid=os.getegid())
NO_GATE: Any = None
#: More than are looked up in one call.
NAMES = [b"f%02d" % number for number in range(40)]


async def one_application(_: object) -> str:
    """Assign every file to one application."""
    return "some"


async def no_application(_: object) -> str:
    """Fail to assign a file."""
    raise OSError(errno.EIO, "broken")


def open_files() -> int:
    """Return the number of open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counted as they are


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """Return a descriptor of a folder with files."""
    for name in NAMES:
        (tmp_path / os.fsdecode(name)).touch()
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, int], None]:
    """Return a function that makes the look-up of a name fail."""

    def let_fail(victim: bytes, code: int) -> None:
        real = backing.look_up

        def look_up(parent: int, name: bytes) -> DirectoryEntry:
            if name == victim:
                raise OSError(code, os.strerror(code))
            return real(parent, name)

        monkeypatch.setattr(backing, "look_up", look_up)

    return let_fail


@pytest.mark.parametrize("code", [errno.ENOENT, errno.ESTALE, errno.EACCES, errno.EIO])
def test_a_name_that_fails_does_not_hide_others(
    folder: int, broken: Any, code: int
) -> None:
    broken(b"f09", code)
    entries = _look_up_all(folder, NAMES)
    assert [NAMES[n] for n, e in enumerate(entries) if e is None] == [b"f09"]
    for entry in entries:
        if entry is not None:
            os.close(entry.fd)


def test_without_descriptors_the_list_fails_and_is_not_cut_short(
    folder: int, broken: Any
) -> None:
    broken(b"f09", errno.EMFILE)
    before = open_files()
    with pytest.raises(OSError, match="Too many open files"):
        _look_up_all(folder, NAMES)
    assert open_files() == before


def listed(
    files: PassThrough, start: int, monkeypatch: pytest.MonkeyPatch
) -> list[bytes]:
    """Return the names that readdir passes to the kernel from `start` on."""
    names: list[bytes] = []
    token: Any = None

    def reply(_token: object, name: bytes, _entry: object, _next: int) -> bool:
        names.append(name)
        return True

    monkeypatch.setattr(backing, "list_names", lambda _: NAMES)
    monkeypatch.setattr(pyfuse3, "readdir_reply", reply)

    async def main() -> None:
        fh = await files.opendir(ROOT, ME)
        try:
            if start:
                files._folders[fh].names = [b".", b"..", *NAMES]
            await files.readdir(fh, start, token)
        finally:
            await files.releasedir(fh)

    trio.run(main)
    return names


def test_entries_before_an_error_are_passed_to_the_kernel(
    folder: int, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(b"f39", errno.EMFILE)
    files = PassThrough(os.dup(folder), NO_GATE, one_application)
    names = listed(files, 0, monkeypatch)
    assert names == [b".", b"..", *NAMES[:30]]
    # The kernel asks for the rest, and gets the error.
    with pytest.raises(pyfuse3.FUSEError) as caught:
        listed(files, len(names), monkeypatch)
    assert caught.value.errno == errno.EMFILE
    files.close()


def test_a_file_that_cannot_be_assigned_is_closed(folder: int) -> None:
    before = open_files()
    files = PassThrough(os.dup(folder), NO_GATE, no_application)

    async def main() -> None:
        known = (await files.lookup(ROOT, b"f00", ME)).st_ino
        with pytest.raises(pyfuse3.FUSEError):
            await files.open(known, os.O_RDONLY, ME)
        with pytest.raises(pyfuse3.FUSEError):
            await files.create(ROOT, b"new", 0o600, os.O_WRONLY, ME)

    trio.run(main)
    files.close()
    assert open_files() == before


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError(), KeyError(3), MemoryError(), RuntimeError("no new thread")],
)
def test_a_bug_in_one_request_is_logged_and_does_not_end_the_mount(
    folder: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    """pyfuse3 ends the mount for any exception but FUSEError."""
    files = PassThrough(os.dup(folder), NO_GATE, one_application)
    real = backing.look_up

    def look_up(parent: int, name: bytes) -> DirectoryEntry:
        if name == b"f01":
            raise error
        return real(parent, name)

    monkeypatch.setattr(backing, "look_up", look_up)

    async def main() -> None:
        with pytest.raises(pyfuse3.FUSEError) as caught:
            await files.lookup(ROOT, b"f01", ME)
        assert caught.value.errno == errno.EIO
        assert (await files.lookup(ROOT, b"f02", ME)).st_ino > ROOT

    trio.run(main)
    files.close()
    assert "request lookup failed" in caplog.text
    assert type(error).__name__ in caplog.text
    assert files.counts["lookup"] == 2


def test_an_error_of_the_backing_file_system_keeps_its_number(folder: int) -> None:
    files = PassThrough(os.dup(folder), NO_GATE, one_application)

    async def main() -> None:
        with pytest.raises(pyfuse3.FUSEError) as caught:
            await files.lookup(ROOT, b"no such name", ME)
        assert caught.value.errno == errno.ENOENT

    trio.run(main)
    files.close()


def test_cancellation_is_not_turned_into_an_answer(folder: int) -> None:
    """At the end of a mount its tasks are cancelled; the event loop must see that."""
    started = trio.Event()

    async def never(_: object) -> str:
        started.set()
        await trio.sleep_forever()
        raise AssertionError

    files = PassThrough(os.dup(folder), NO_GATE, never)
    answered = []

    async def open_file() -> None:
        number = (await files.lookup(ROOT, b"f00", ME)).st_ino
        await files.open(number, os.O_RDONLY, ME)
        answered.append(number)

    async def main() -> None:
        before = open_files()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(open_file)
            await started.wait()
            nursery.cancel_scope.cancel()
        assert nursery.cancel_scope.cancelled_caught
        # The look-up keeps a descriptor, the cancelled open none.
        assert open_files() == before + 1

    trio.run(main)
    files.close()
    assert answered == []
