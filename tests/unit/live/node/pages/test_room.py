# SPDX-License-Identifier: MIT
"""Users who make pages longer: the files are cut back, and others still get pages."""

from __future__ import annotations

import ctypes
import errno
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.node.budgets import Budgets, Holding
from penstock.live.node.pages import bell, page_layout
from penstock.live.node.pages.room import SPARE_BYTES, PageRoom
from penstock.live.node.pages.shared_file import SharedFile

USER = 65_030
_KEEP_SIZE = 1

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def page_of(user: int, folder: Path) -> SharedFile:
    """Return a page of a user."""
    file = SharedFile.create(folder / "page", SPARE_BYTES, "page")
    os.chown(file.path, user, -1)
    return file


def test_spare_files_have_the_size_of_pages_and_bells() -> None:
    assert page_layout.SIZE == bell.SIZE == SPARE_BYTES


@pytest.mark.parametrize("how", ["written", "truncated", "allocated"])
def test_a_file_that_was_made_longer_is_cut_back(tmp_path: Path, how: str) -> None:
    file = SharedFile.create(tmp_path / "page", 4096, "page")
    assert not file.cut()
    with (tmp_path / "page").open("r+b") as user:
        if how == "written":
            os.pwrite(user.fileno(), b"x", 1 << 20)
        elif how == "truncated":
            user.truncate(1 << 30)
        else:
            long = ctypes.c_long
            ctypes.CDLL(None).fallocate(
                user.fileno(), _KEEP_SIZE, long(0), long(1 << 20)
            )
    assert file.cut()
    assert file.status.st_size == 4096
    assert file.status.st_blocks <= 8
    assert not file.cut()
    file.close()


def test_blocks_behind_the_end_are_gone_when_a_file_is_opened_again(
    tmp_path: Path,
) -> None:
    SharedFile.create(tmp_path / "page", 4096, "page").close()
    with (tmp_path / "page").open("r+b") as user:
        long = ctypes.c_long
        ctypes.CDLL(None).fallocate(user.fileno(), _KEEP_SIZE, long(0), long(1 << 20))
    file = SharedFile.open(tmp_path / "page", 4096, "page")
    assert file.status.st_blocks <= 8
    file.close()


@needs_root
def test_a_removed_file_is_cut_until_its_user_closes_it(tmp_path: Path) -> None:
    budgets = Budgets(4096)
    room = PageRoom(budgets, None)
    file = page_of(USER, tmp_path)
    with file.path.open("r+b") as user:
        file.path.unlink()
        room.keep_removed(USER, file)
        file.close()
        assert budgets.held(USER, Holding.JOBS) == 1
        room.cut([], 1.0)
        assert not budgets.was_refused(USER, Holding.BYTES, 1.0)
        user.truncate(1 << 20)
        room.cut([], 1.0)
        assert os.fstat(user.fileno()).st_size == SPARE_BYTES
        assert budgets.was_refused(USER, Holding.BYTES, 30.0)
        assert not budgets.was_refused(USER, Holding.BYTES, 90.0)
    room.cut([], 2.0)
    assert budgets.held(USER, Holding.JOBS) == 0


@needs_root
def test_a_removed_file_that_nobody_has_open_costs_nothing(tmp_path: Path) -> None:
    budgets = Budgets(4096)
    room = PageRoom(budgets, None)
    file = page_of(USER, tmp_path)
    file.path.unlink()
    before = len(list(Path("/proc/self/fd").iterdir()))
    room.keep_removed(USER, file)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert budgets.held(USER, Holding.JOBS) == 0
    file.close()


@needs_root
@pytest.mark.parametrize("way", ["descriptor without access", "link"])
def test_a_removed_file_cannot_be_opened_again(tmp_path: Path, way: str) -> None:
    """Its user allows all to write first; the kernel then asks only for that."""
    budgets = Budgets(4096)
    room = PageRoom(budgets, None)
    file = page_of(USER, tmp_path)
    file.path.chmod(0o666)
    kept = tmp_path / "link"
    if way == "link":
        kept.hardlink_to(file.path)
    descriptor = os.open(file.path, os.O_PATH)
    file.path.unlink()
    room.keep_removed(USER, file)
    again = kept if way == "link" else Path(f"/proc/self/fd/{descriptor}")
    mode = again.stat().st_mode & 0o777
    assert (again.stat().st_uid, mode) == (0, 0)
    # A link keeps the space of the file.
    assert budgets.held(USER, Holding.JOBS) == (way == "link")
    kept.unlink(missing_ok=True)
    os.close(descriptor)
    room.cut([], 1.0)
    assert budgets.held(USER, Holding.JOBS) == 0
    file.close()


@needs_root
@pytest.mark.parametrize("size", [0, 100, 1 << 20])
def test_a_file_of_any_length_is_watched_when_it_is_removed(
    tmp_path: Path, size: int
) -> None:
    budgets = Budgets(4096)
    room = PageRoom(budgets, None)
    page_of(USER, tmp_path).close()
    with (tmp_path / "page").open("r+b") as user:
        user.truncate(size)
        room.remove(tmp_path / "page")
        assert not (tmp_path / "page").exists()
        assert budgets.held(USER, Holding.JOBS) == 1
        user.truncate(1 << 20)
        room.cut([], 1.0)
        assert os.fstat(user.fileno()).st_size == SPARE_BYTES
    room.cut([], 2.0)
    assert budgets.held(USER, Holding.JOBS) == 0


def test_blocks_that_a_file_system_adds_are_not_those_of_its_user(
    tmp_path: Path,
) -> None:
    file = SharedFile.create(tmp_path / "page", 4096, "page")
    file._blocks -= 1
    assert not file.cut()
    file.close()


class _Looks:
    """Stands for a file; counts the looks at it."""

    def __init__(self) -> None:
        self.number = 0

    def cut(self) -> bool:
        self.number += 1
        return self.is_longer

    is_longer = False


def _files(number: int) -> tuple[list[_Looks], Any]:
    looks = [_Looks() for _ in range(number)]
    return looks, [(USER, each) for each in looks]


def test_many_files_are_looked_at_in_turn(tmp_path: Path) -> None:
    room = PageRoom(Budgets(4096), None)
    few, files = _files(100)
    room.cut(files, 1.0)
    assert [each.number for each in few] == [1] * 100
    many, files = _files(2_000)
    room.cut(files, 1.0)
    assert sum(each.number for each in many) == 200
    for _ in range(9):
        room.cut(files, 1.0)
    assert [each.number for each in many] == [1] * 2_000


@needs_root
def test_all_files_are_looked_at_if_room_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = PageRoom(Budgets(4096), tmp_path / "spares")
    many, files = _files(2_000)

    def looked_at(free_mib: int) -> int:
        """Return how many files are looked at if so much of the disk is free."""
        status = SimpleNamespace(f_bfree=256 * free_mib, f_frsize=4096)
        monkeypatch.setattr(os, "statvfs", lambda _: status)
        before = sum(each.number for each in many)
        room.cut(files, 1.0)
        return sum(each.number for each in many) - before

    # Small losses add up: 49 is 1 MiB less than 50, and 47 is 3 MiB less.
    expected = {50: 200, 49: 200, 47: 2_000, 46: 200, 60: 200, 58: 2_000}
    assert {free: looked_at(free) for free in expected} == expected
    room.close()


@needs_root
def test_files_that_are_refilled_before_each_look_are_cut_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is as little room at each look: nothing seems to be lost."""
    room = PageRoom(Budgets(4096), tmp_path / "spares")
    many, files = _files(120)
    free = SimpleNamespace(f_bfree=256 * 50, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: free)
    room.cut(files, 1.0)
    free.f_bfree = 256 * 40
    many[-1].is_longer = True
    before = [each.number for each in many]
    for _ in range(5):
        room.cut(files, 1.0)
    assert [each.number for each in many] == [number + 5 for number in before]
    room.close()


@needs_root
def test_one_user_takes_few_spare_files(tmp_path: Path) -> None:
    budgets = Budgets(4096, lambda user: min(user, USER))
    room = PageRoom(budgets, tmp_path / "spares")
    room.prepare()

    def taken(user: int) -> int:
        return sum(
            room.take_spare(user, tmp_path / f"{user}-{number}", SPARE_BYTES)
            for number in range(10)
        )

    # User ids of containers are those of their owner.
    assert (taken(USER), taken(USER + 1), taken(USER - 1)) == (4, 0, 4)
    room.prepare()
    assert taken(USER) == 4
    room.prepare()
    budgets.refuse(USER, Holding.BYTES, 0.0)
    assert (taken(USER), taken(USER - 1)) == (0, 4)
    room.close()


@needs_root
def test_a_page_is_created_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    room = PageRoom(Budgets(4096), tmp_path / "spares")
    room.prepare()

    def is_full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "posix_fallocate", is_full)
        take_spare = partial(room.take_spare, USER)
        file = SharedFile.create(pages / "a", SPARE_BYTES, "page", take_spare)
        with pytest.raises(InputError, match="free some space"):
            SharedFile.create(pages / "b", 2 * SPARE_BYTES, "page", take_spare)
    assert file.read(SPARE_BYTES) == bytes(SPARE_BYTES)
    assert [path.name for path in pages.iterdir()] == ["a"]
    spares = len(list((tmp_path / "spares").iterdir()))
    room.cut([], 1.0)
    assert len(list((tmp_path / "spares").iterdir())) == spares + 1
    room.close()
    assert list((tmp_path / "spares").iterdir()) == []
    file.close()
