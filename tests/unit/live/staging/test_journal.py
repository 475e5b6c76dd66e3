# SPDX-License-Identifier: MIT
"""Journals as files: their layout, their records, and drains that are interrupted."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.live.staging import journal as layout
from penstock.live.staging.drain import JournalState, drain_folder, identity_of, look
from penstock.live.staging.drainers import _started
from penstock.live.staging.journal import (
    LAYOUT,
    VERSION,
    Flag,
    Identity,
    Journal,
    Lock,
    boot_number,
)
from support.layouts import assert_layout
from support.waiting import LIMIT_S

CAPACITY = 4096


# --- The layout -----------------------------------------------------------------------


def test_the_layout_is_that_of_the_header(tmp_path: Path) -> None:
    constants = {
        "JOURNAL_MAGIC": layout.MAGIC,
        "RECORD_MAGIC": layout.RECORD_MAGIC,
        "JOURNAL_VERSION": VERSION,
        "JOURNAL_HEADER": layout.HEADER_BYTES,
        "JOURNAL_PATH": layout.PATH_BYTES,
        "RECORD_ALIGN": layout.RECORD_ALIGN,
        "RECORD_MAX": layout.RECORD_MAX_BYTES,
        **{f"LOCK_{lock.name}": lock.value for lock in Lock},
        **{f"JOURNAL_{flag.name}": flag.value for flag in Flag},
    }
    assert_layout("journal.h", LAYOUT, constants, tmp_path)


@pytest.mark.parametrize("kind", LAYOUT.values(), ids=list(LAYOUT))
def test_no_structure_has_a_hole(kind: type[ctypes.Structure]) -> None:
    sizes = sum(getattr(kind, field).size for field, *_ in kind._fields_)
    assert sizes == ctypes.sizeof(kind)


# --- A journal made by hand -----------------------------------------------------------


class Made:
    """A journal of a file, as the library would leave it when it is killed."""

    def __init__(self, folder: Path, *, checked: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        self.file = folder / "file"
        self.file.write_bytes(b"")
        self.folder = folder / "journals"
        self.folder.mkdir(exist_ok=True)
        self.path = self.folder / "1-2.journal"
        with self.file.open("rb") as opened:
            found = identity_of(opened.fileno())
        boot = boot_number()
        self.header = LAYOUT["struct journal_header"](
            magic=layout.MAGIC,
            version=VERSION,
            checked=checked,
            capacity=CAPACITY,
            device=found.device,
            inode=found.inode,
            birth_ns=found.birth_ns,
            boot=(boot >> 64, boot & 2**64 - 1),
            process=4242,
            path=os.fsencode(self.file),
        )
        self.ring = bytearray(CAPACITY)
        self.save()

    def append(self, offset: int, data: bytes) -> None:
        """Commit a record, as the library does."""
        position = self.header.appended
        place = position % CAPACITY
        head = struct.pack(
            "5Q",
            layout.RECORD_MAGIC ^ position,
            1,
            offset,
            len(data),
            zlib.crc32(data),
        )
        self.ring[place : place + 40 + len(data)] = head + data
        self.header.appended = -(-(position + 40 + len(data)) // 64) * 64
        self.save()

    def reload(self) -> None:
        """Read again what is written in its header."""
        self.header = type(self.header).from_buffer_copy(self.path.read_bytes())

    def save(self) -> None:
        """Write it to its file, which may be mapped."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(bytes(self.header) + bytes(self.ring))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


@pytest.fixture
def opened(made: Made) -> Iterator[Journal]:
    made.append(0, b"first")
    made.append(5, b"second")
    made.append(100, b"third")
    with Journal.open(made.path) as journal:
        yield journal


def test_a_journal_says_what_it_is(made: Made, opened: Journal) -> None:
    assert opened.file == made.file
    assert opened.process == 4242
    assert opened.pending_bytes == 5 + 6 + 5
    assert not opened.is_empty
    assert not opened.is_alive
    assert opened.is_of_this_boot
    assert opened.flags == Flag(0)
    assert opened.error == 0


def test_a_step_gathers_what_follows(made: Made, opened: Journal) -> None:
    with made.file.open("r+b") as file:
        assert opened.step(file.fileno()) == 11
        assert opened.step(file.fileno()) == 5
        assert opened.step(file.fileno()) == 0
    assert opened.is_empty
    assert opened.drained_bytes == 16
    assert made.file.read_bytes() == b"firstsecond".ljust(100, b"\0") + b"third"


def test_a_step_that_fails_is_tried_again(made: Made, opened: Journal) -> None:
    with made.file.open("rb") as file, pytest.raises(OSError, match="descriptor"):
        opened.step(file.fileno())
    assert opened.error != 0
    assert opened.pending_bytes == 16
    with made.file.open("r+b") as file:
        assert opened.step(file.fileno()) == 11
    assert opened.error == 0


def test_one_drains_at_a_time(made: Made, opened: Journal) -> None:
    with Journal.open(made.path) as other, opened.locked() as held:
        assert held
        with other.locked() as second:
            assert not second
    with Journal.open(made.path) as other, other.locked() as second:
        assert second


def test_the_writer_is_alive_while_it_holds_its_lock(
    made: Made, opened: Journal
) -> None:
    with Journal.open(made.path) as writer:
        assert writer.try_lock(Lock.LIFE)
        assert opened.is_alive
        with opened.locked():
            assert not opened.retire()
    assert not opened.is_alive


def test_only_an_empty_journal_with_its_name_goes(made: Made, opened: Journal) -> None:
    with opened.locked():
        assert not opened.retire()
    with made.file.open("r+b") as file:
        while opened.step(file.fileno()):
            pass
    made.path.rename(made.path.with_name("3-4.journal"))
    made.path.write_bytes(b"another journal")
    with opened.locked():
        assert not opened.retire()
    assert made.path.read_bytes() == b"another journal"


def test_what_a_writer_appends_before_it_dies_is_not_removed(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lives when a drainer begins to look, and is dead when it has looked."""
    with Journal.open(made.path) as journal, journal.locked():

        def dies(_: Journal) -> bool:
            monkeypatch.undo()
            made.append(0, b"last words")
            return False

        monkeypatch.setattr(Journal, "is_alive", property(dies))
        assert not journal.retire()
    assert made.path.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"magic": 1}, "not a journal"),
        ({"version": VERSION + 1}, "not a journal of version"),
        ({"capacity": 2 * CAPACITY}, "cut"),
        ({"capacity": 0}, "cut"),
        ({"capacity": 100}, "cut"),
    ],
)
def test_what_is_no_journal_is_refused(
    made: Made, change: dict[str, int], message: str
) -> None:
    for name, value in change.items():
        setattr(made.header, name, value)
    made.save()
    with pytest.raises(InputError, match=message):
        Journal.open(made.path)
    (found,) = drain_folder(made.folder)
    assert found.state is JournalState.KEPT
    assert made.path.exists()


def test_a_short_file_is_refused(made: Made) -> None:
    made.path.write_bytes(b"x")
    assert [found.state for found in look(made.folder)] == [JournalState.KEPT]


def test_without_a_folder_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder of journals"):
        look(tmp_path / "none")


def test_a_read_only_file_of_the_user_is_drained(made: Made) -> None:
    made.append(0, b"data")
    made.file.chmod(0o444)
    assert [found.state for found in drain_folder(made.folder)] == [
        JournalState.DRAINED
    ]
    assert made.file.read_bytes() == b"data"
    assert made.file.stat().st_mode & 0o777 == 0o444


def test_leftovers_of_a_process_that_died_are_swept(made: Made) -> None:
    dead, alive = (made.folder / f".new-{pid:x}-0" for pid in (2**22 + 1, os.getpid()))
    others = [made.folder / f".new-{name}" for name in ("backup", "1", f"{'f' * 99}-0")]
    for path in (dead, alive, *others):
        path.touch()
    drain_folder(made.folder)
    assert not dead.exists()
    assert alive.exists()
    assert all(path.exists() for path in others)


@pytest.mark.parametrize("name", ["retire", "settle", "try_lock", "is_alive"])
def test_an_error_of_the_folder_is_a_reason(
    made: Made, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: object) -> bool:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    made.append(0, b"data")
    value = property(fail) if name == "is_alive" else fail
    monkeypatch.setattr(Journal, name, value)
    (found,) = drain_folder(made.folder)
    assert (found.state, found.reason) == (JournalState.KEPT, os.strerror(errno.EROFS))


@pytest.mark.parametrize(("stuck", "state"), [(False, "drained"), (True, "kept")])
def test_who_holds_a_journal_is_waited_for_as_long_as_it_drains(
    made: Made, monkeypatch: pytest.MonkeyPatch, stuck: bool, state: str
) -> None:
    """Another process makes ten steps of 20 s each, or none."""
    now, turns = [0.0], iter(range(10))
    made.append(0, b"data")
    with Journal.open(made.path) as other:

        def pass_time(_: float) -> None:
            now[0] += 20.0
            if stuck:
                return
            other._header.drained_bytes += 1
            if next(turns, None) is None:
                other.unlock(Lock.DRAIN)

        monkeypatch.setattr(time, "sleep", pass_time)
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        assert other.try_lock(Lock.DRAIN)
        (found,) = drain_folder(made.folder)
    assert found.state == state
    assert found.reason == ("another process holds it" if stuck else "")


# --- Properties -----------------------------------------------------------------------

records = st.lists(
    st.tuples(st.integers(0, 300), st.binary(min_size=1, max_size=200)), max_size=12
)


def _applied(writes: list[tuple[int, bytes]]) -> bytes:
    content = bytearray()
    for offset, data in writes:
        content += bytes(max(0, offset + len(data) - len(content)))
        content[offset : offset + len(data)] = data
    return bytes(content)


@given(writes=records, checked=st.booleans(), steps=st.integers(0, 5))
def test_an_interrupted_drain_is_done_again_without_harm(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[int, bytes]],
    checked: bool,
    steps: int,
) -> None:
    made = Made(tmp_path_factory.mktemp("journal"), checked=checked)
    for offset, data in writes:
        made.append(offset, data)
    with Journal.open(made.path) as journal, made.file.open("r+b") as file:
        for _ in range(steps):
            before = journal._header.drained
            journal.step(file.fileno())
            # The drainer dies after it has written and before it has said so.
            journal._header.drained = before
            journal._header.settled = before
            if steps % 2:
                journal.step(file.fileno())
    drain_folder(made.folder)
    assert made.file.read_bytes() == _applied(writes)
    assert drain_folder(made.folder) == []


@given(writes=records, torn=st.integers(0, 11), byte=st.integers(0, 199))
def test_what_the_machine_has_torn_ends_a_drain(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[int, bytes]],
    torn: int,
    byte: int,
) -> None:
    made = Made(tmp_path_factory.mktemp("journal"), checked=True)
    places = []
    for offset, data in writes:
        places.append(made.header.appended + 40)
        made.append(offset, data)
    torn = min(torn, len(writes))
    if torn < len(writes):
        made.ring[places[torn] + byte % len(writes[torn][1])] ^= 0xFF
        made.save()
    states = [found.state for found in drain_folder(made.folder)]
    assert states == [JournalState.KEPT if torn < len(writes) else JournalState.DRAINED]
    assert made.file.read_bytes() == _applied(writes[:torn])


#: What may be the matter with a journal whose writer has died, and with its file.
matters = st.sampled_from(
    [
        {},
        {"boot": (7, 7)},
        {"boot": (7, 7), "device": 12345},
        {"boot": (7, 7), "device": 12345, "birth_ns": 12345},
        {"device": 12345},
        {"inode": 12345},
        {"birth_ns": 0},
        {"birth_ns": 12345},
        {"flags": Flag.ASIDE},
        {"flags": Flag.ASKS},
        {"flags": Flag.THROUGH},
        {"path": b"/none/file"},
        {"version": VERSION + 1},
        {"capacity": CAPACITY + 64},
    ]
)


def _drained_by_the_library(folder: Path) -> None:
    assert _started(folder, os.geteuid(), None, {}).wait(LIMIT_S) == 0


@given(
    writes=records,
    checked=st.booleans(),
    done=st.integers(0, 3),
    # Not where a record goes: that is not checked, and may be far.
    torn=st.none() | st.integers(0, CAPACITY - 1).filter(lambda it: it % 64 // 8 != 2),
    matter=matters,
)
def test_the_command_and_the_library_drain_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[tuple[int, bytes]],
    checked: bool,
    done: int,
    torn: int | None,
    matter: dict[str, object],
) -> None:
    """They are two programs: both write as much, and both remove what is done with."""
    left = []
    for drain in (drain_folder, _drained_by_the_library):
        made = Made(tmp_path_factory.mktemp("journal"), checked=checked)
        for offset, data in writes:
            made.append(offset, data)
        with Journal.open(made.path) as journal, made.file.open("r+b") as file:
            for _ in range(done):
                journal.step(file.fileno())
        made.reload()
        if torn is not None:
            made.ring[torn] ^= 0xFF
        for name, value in matter.items():
            setattr(made.header, name, value)
        made.save()
        drain(made.folder)
        names = [path.name for path in made.folder.iterdir()]
        left.append((made.file.read_bytes(), [n for n in names if n != "shim.log"]))
    (mine, kept), (theirs, put_aside) = left
    assert mine == theirs
    assert len(kept) == len(put_aside)


@given(
    mine=st.builds(Identity, st.integers(1, 2), st.integers(1, 2), st.integers(0, 2)),
    other=st.builds(Identity, st.integers(1, 2), st.integers(1, 2), st.integers(0, 2)),
)
def test_files_are_compared_by_all_that_is_known(
    mine: Identity, other: Identity
) -> None:
    births = mine.birth_ns == other.birth_ns or 0 in (mine.birth_ns, other.birth_ns)
    same = mine.inode == other.inode and births
    assert mine.is_that_of(other, same_boot=False) == same
    assert mine.is_that_of(other, same_boot=True) == (
        same and mine.device == other.device
    )


def test_who_drains_goes_no_further_when_it_is_put_aside(tmp_path: Path) -> None:
    """The program was told of an error, and may have written to the file since."""
    made = Made(tmp_path)
    made.append(0, b"old")
    made.header.flags = Flag.ASIDE
    made.save()
    (found,) = drain_folder(made.folder)
    assert found.state is JournalState.KEPT
    assert "put aside after an error" in found.reason
    assert made.file.read_bytes() == b""
    made.path.rename(made.path.with_suffix(".failed"))
    assert drain_folder(made.folder) == []
    (found,) = drain_folder(made.folder, failed=True)
    assert found.state is JournalState.DRAINED
    assert made.file.read_bytes() == b"old"
