# SPDX-License-Identifier: MIT
"""The bell of a user: layout, slots, lease, and what has moved."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live.node.pages.bell import (
    MAGIC,
    SIZE,
    SLOTS,
    VERSION,
    Bell,
    BellWords,
)
from penstock.live.node.pages.shared_file import SharedFile, SharedFileError
from support.layouts import assert_layout

ME, GROUP = os.geteuid(), os.getegid()


@pytest.fixture
def bell(tmp_path: Path) -> Iterator[Bell]:
    """Return a bell of this user."""
    created = Bell.get(tmp_path, ME, GROUP)
    yield created
    created.close()


@pytest.fixture
def words(bell: Bell) -> Iterator[BellWords]:
    """Return the bell as processes map it."""
    file = SharedFile.open(bell.path, SIZE, "bell")
    yield BellWords.from_address(file.address)
    file.close()


def test_the_layout_is_that_of_the_header(tmp_path: Path) -> None:
    constants = {
        "BELL_MAGIC": MAGIC,
        "BELL_VERSION": VERSION,
        "BELL_SIZE": SIZE,
        "BELL_SLOTS": SLOTS,
    }
    assert_layout("bell.h", {"struct penstock_bell": BellWords}, constants, tmp_path)


def test_only_its_user_can_open_it(bell: Bell) -> None:
    assert bell.path.name == f"{ME}.bell"
    assert bell.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(ME != 0, reason="only root may give files away")
def test_the_bell_of_another_user_belongs_to_that_user(tmp_path: Path) -> None:
    Bell.get(tmp_path, 54321, 54322).close()
    status = (tmp_path / "54321.bell").stat()
    assert (status.st_uid, status.st_gid) == (54321, 54322)
    assert status.st_mode & 0o777 == 0o600
    Bell.open(tmp_path / "54321.bell", 54321, 54322).close()


def test_a_look_finds_the_slots_that_have_moved(bell: Bell, words: BellWords) -> None:
    (_, before), moved = bell.look()
    assert moved is None
    slots = sorted({1, 2, 900, SLOTS, *random.Random(1).sample(range(1, SLOTS), 50)})
    for slot in slots:
        words.posts[slot - 1] += slot % 3 + 1
        words.rings += 1
    (_, after), moved = bell.look()
    assert (after - before, moved) == (len(slots), slots)
    assert bell.look()[1] is None
    words.rings += 1
    assert bell.look()[1] == []


def test_counters_may_wrap_around(bell: Bell, words: BellWords) -> None:
    words.posts[4], words.rings = 2**16 - 1, 2**32 - 1
    assert bell.look()[1] == [5]
    words.posts[4], words.rings = 0, 0
    assert bell.look()[1] == [5]


def test_a_slot_belongs_to_one_job(bell: Bell) -> None:
    taken = [bell.take_slot(f"0:{number}") for number in range(5)]
    assert len(set(taken)) == 5
    assert 0 not in taken
    del bell.jobs[taken[2]]
    assert bell.take_slot("0:new") == taken[2]
    for number in range(SLOTS - 5):
        bell.take_slot(f"0:more{number}")
    with pytest.raises(UnavailableError, match=f"has {SLOTS} jobs"):
        bell.take_slot("0:one too many")


def test_the_lease_ends_in_time(bell: Bell, words: BellWords) -> None:
    assert words.lease_ns == 0
    begin_ns = time.monotonic_ns()
    bell.renew(2.5)
    assert begin_ns <= words.lease_ns - 2_500_000_000 <= time.monotonic_ns()
    with pytest.raises(InputError, match="lease"):
        bell.renew(61.0)


def test_a_later_agent_finds_the_same_file(bell: Bell, words: BellWords) -> None:
    inode = bell.path.stat().st_ino
    words.posts[6], words.rings = 3, 3
    again = Bell.get(bell.path.parent, ME, GROUP)
    assert again.path.stat().st_ino == inode
    # What was posted before is old; what follows is news.
    assert again.look()[1] is None
    words.posts[6], words.rings = 4, 4
    assert again.look()[1] == [7]
    again.close()


@pytest.mark.parametrize("damage", ["truncated", "emptied", "other version"])
def test_a_file_that_is_no_bell_is_replaced(bell: Bell, damage: str) -> None:
    inode = bell.path.stat().st_ino
    if damage == "truncated":
        os.truncate(bell.path, 10)
    elif damage == "emptied":
        bell.path.write_bytes(bytes(SIZE))
    else:
        words = BellWords(magic=MAGIC, version=VERSION + 1, size=SIZE)
        bell.path.write_bytes(bytes(words))
    fresh = Bell.get(bell.path.parent, ME, GROUP)
    assert fresh.path.stat().st_ino != inode
    assert fresh.path.stat().st_size == SIZE
    fresh.close()


@pytest.mark.parametrize("size", [0, 60, 70, 4000])
def test_a_truncated_bell_raises_an_error(
    bell: Bell, words: BellWords, size: int
) -> None:
    words.rings += 1
    os.truncate(bell.path, size)
    with pytest.raises(SharedFileError, match="truncated"):
        bell.look()
