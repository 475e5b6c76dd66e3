# SPDX-License-Identifier: MIT
"""Journals that are read: their layout, their header and their records."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.live.staging import journal as layout
from penstock.live.staging.journal import (
    LAYOUT,
    VERSION,
    Flag,
    Journal,
    Lock,
    drained_so_far,
    named_writers,
)
from support.journals import CAPACITY_BYTES, HandMadeJournal, Write
from support.layouts import assert_layout

# --- The layout -----------------------------------------------------------------------


def test_the_layout_is_that_of_the_header(tmp_path: Path) -> None:
    constants = {
        "JOURNAL_MAGIC": layout.MAGIC,
        "RECORD_MAGIC": layout.RECORD_MAGIC,
        "JOURNAL_VERSION": VERSION,
        "JOURNAL_HEADER_BYTES": layout.HEADER_BYTES,
        "JOURNAL_PATH_BYTES": layout.PATH_BYTES,
        "PART_PATH_BYTES": layout.PART_PATH_BYTES,
        "RECORD_ALIGN_BYTES": layout.RECORD_ALIGN,
        "RECORD_MAX_BYTES": layout.RECORD_MAX_BYTES,
        "sizeof JOURNAL_FAILED - 1": len(layout.FAILED),
        **{f"LOCK_{lock.name}": lock.value for lock in Lock},
        **{f"JOURNAL_{flag.name}": flag.value for flag in Flag},
    }
    assert_layout("journal.h", LAYOUT, constants, tmp_path)


@pytest.mark.parametrize("kind", LAYOUT.values(), ids=list(LAYOUT))
def test_no_structure_has_a_hole(kind: type[ctypes.Structure]) -> None:
    sizes = sum(getattr(kind, field).size for field, *_ in kind._fields_)
    assert sizes == ctypes.sizeof(kind)


# --- The header -----------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path) -> HandMadeJournal:
    journal = HandMadeJournal(tmp_path)
    journal.append(0, b"first")
    journal.append(5, b"second")
    journal.append(100, b"third")
    return journal


@pytest.fixture
def opened(made: HandMadeJournal) -> Iterator[Journal]:
    with Journal.open(made.path) as journal:
        yield journal


def test_the_header_is_read(made: HandMadeJournal, opened: Journal) -> None:
    assert opened.file == made.file
    assert opened.process == 4242
    assert opened.pending_bytes == 5 + 6 + 5
    assert not opened.is_empty
    assert not opened.is_alive
    assert opened.flags == Flag(0)
    assert opened.error == 0
    assert opened.drained_bytes == 0


def test_every_look_shows_the_present_state(
    made: HandMadeJournal, opened: Journal
) -> None:
    made.drain_by_hand(2)
    made.change(flags=Flag.CALLS_BACK | Flag.PUT_ASIDE, error=28)
    assert opened.pending_bytes == 5
    assert opened.drained_bytes == drained_so_far(made.path) == 11
    assert opened.flags == Flag.CALLS_BACK | Flag.PUT_ASIDE
    assert opened.error == 28
    made.drain_by_hand(3)
    assert opened.pending_bytes == 0
    made.change(drained=made.header.appended)
    assert opened.is_empty


def test_a_number_that_is_no_error_is_damage(
    made: HandMadeJournal, opened: Journal
) -> None:
    made.change(error=2**32 - 1)
    assert opened.error == errno.EUCLEAN


def test_a_journal_that_was_removed_can_still_be_read(
    made: HandMadeJournal, opened: Journal
) -> None:
    made.path.unlink()
    assert opened.pending_bytes == 16
    with pytest.raises(FileNotFoundError):
        Journal.open(made.path)


def test_a_journal_that_is_cut_while_it_is_open_has_no_records(
    made: HandMadeJournal, opened: Journal
) -> None:
    os.truncate(made.path, layout.HEADER_BYTES)
    assert opened.pending_bytes == 0
    os.truncate(made.path, 0)
    assert opened.pending_bytes == 0


def test_the_writer_is_alive_while_it_holds_its_lock(
    made: HandMadeJournal, opened: Journal
) -> None:
    with made.locked(Lock.LIFE):
        assert opened.is_alive
    with made.locked(Lock.DRAIN):
        assert not opened.is_alive


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"magic": 1}, "not a journal"),
        ({"version": VERSION + 1}, "not a journal of version"),
        ({"capacity": 2 * CAPACITY_BYTES}, "cut"),
        ({"capacity": 0}, "cut"),
        ({"capacity": 100}, "cut"),
    ],
)
def test_other_files_are_refused(
    made: HandMadeJournal, change: dict[str, int], message: str
) -> None:
    made.change(**change)
    with pytest.raises(InputError, match=message):
        Journal.open(made.path)


def test_a_file_that_is_shorter_than_a_header_is_refused(made: HandMadeJournal) -> None:
    made.path.write_bytes(bytes(made.header)[:-1])
    with pytest.raises(InputError, match="not a journal"):
        Journal.open(made.path)
    assert drained_so_far(made.path) == 0


def test_links_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(HandMadeJournal(tmp_path / "made").path)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises((InputError, OSError)):
            Journal.open(tmp_path / name)
        assert drained_so_far(tmp_path / name) == 0


def test_the_journals_of_a_job_name_their_writers(made: HandMadeJournal) -> None:
    made.change(process=17, started=1234, page=(5, 6))
    (made.folder / "3-4.journal").write_bytes(bytes(made.header)[:-1])
    (made.folder / "5-6.journal").symlink_to(made.path)
    os.mkfifo(made.folder / "7-8.journal")
    assert named_writers(made.folder, (5, 6)) == {17: 1234}
    assert named_writers(made.folder, (5, 7)) == {}
    assert named_writers(made.folder / "absent", (5, 6)) == {}


def test_a_journal_of_another_user_is_refused(
    made: HandMadeJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(InputError, match=f"a journal of user {owner}"):
        Journal.open(made.path)


def _descriptor_count() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_journal_that_is_refused_leaves_no_descriptor_open(
    made: HandMadeJournal,
) -> None:
    made.change(version=99)
    before = _descriptor_count()
    for _ in range(3):
        with pytest.raises(InputError):
            Journal.open(made.path)
    assert _descriptor_count() == before


# --- Records --------------------------------------------------------------------------

records = st.lists(
    st.tuples(st.integers(0, 300), st.binary(min_size=1, max_size=200)), max_size=12
)


@given(writes=records, checked=st.booleans(), done=st.integers(0, 12))
def test_the_records_that_are_not_drained_are_pending(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[Write],
    checked: bool,
    done: int,
) -> None:
    made = HandMadeJournal(tmp_path_factory.mktemp("journal"), checked=checked)
    for offset, data in writes:
        made.append(offset, data)
    made.drain_by_hand(done)
    with Journal.open(made.path) as journal:
        assert journal.pending_bytes == sum(len(data) for _, data in writes[done:])
        assert journal.is_empty == (done >= len(writes))


@given(writes=records, torn=st.integers(0, 11), byte=st.integers(0, 199))
def test_records_behind_a_damaged_one_are_not_counted(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[Write],
    torn: int,
    byte: int,
) -> None:
    made = HandMadeJournal(tmp_path_factory.mktemp("journal"), checked=True)
    places = [made.append(offset, data) for offset, data in writes]
    if torn < len(writes):
        made.ring[places[torn] + 40 + byte % len(writes[torn][1])] ^= 0xFF
        made.save()
    with Journal.open(made.path) as journal:
        assert journal.pending_bytes == sum(len(data) for _, data in writes[:torn])
