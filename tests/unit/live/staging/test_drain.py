# SPDX-License-Identifier: MIT
"""Journals that are drained by name: what is written, what is kept, and why."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.live.staging import drain_process
from penstock.live.staging.drain import (
    JournalReport,
    JournalState,
    count_failed,
    default_folder,
    drain_folder,
    list_journals,
)
from penstock.live.staging.drain_process import NamedDrain, start_drainer
from penstock.live.staging.journal import VERSION, Flag, Journal, Lock
from support.journals import CAPACITY_BYTES, HandMadeJournal, Write, applied
from support.waiting import LIMIT_S


@pytest.fixture
def made(tmp_path: Path) -> HandMadeJournal:
    return HandMadeJournal(tmp_path)


def _drained(made: HandMadeJournal, *, failed: bool = False) -> JournalReport:
    (report,) = drain_folder(made.folder, failed=failed)
    return report


# --- Folders --------------------------------------------------------------------------


def test_the_folder_is_that_of_the_environment_or_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_STAGING", "/a/b")
    assert default_folder() == Path("/a/b")
    monkeypatch.delenv("PENSTOCK_STAGING")
    assert default_folder().name == f"penstock-{os.geteuid()}"


def test_without_a_folder_there_is_one_message(tmp_path: Path) -> None:
    for call in (list_journals, drain_folder):
        with pytest.raises(InputError, match="no folder of journals"):
            call(tmp_path / "none")


def test_journals_are_drained_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = HandMadeJournal(tmp_path / "a").folder
    for name in ("c", "b", "line\nbreak", "d"):
        other = HandMadeJournal(tmp_path / name)
        other.append(0, name.encode())
        other.path.rename(folder / f"{name}.journal")
    reports = drain_folder(folder)
    names = [report.journal.stem for report in reports]
    assert names == ["1-2", "b", "c", "d", "line\nbreak"]
    assert {report.state for report in reports} == {JournalState.DRAINED}
    for name in names[1:]:
        assert (tmp_path / name / "file").read_bytes() == name.encode()
    assert drain_folder(folder) == []


def test_leftovers_of_a_process_that_died_are_removed(made: HandMadeJournal) -> None:
    dead, alive = (made.folder / f".new-{pid:x}-0" for pid in (2**22 + 1, os.getpid()))
    others = [made.folder / f".new-{name}" for name in ("backup", "1", f"{'f' * 99}-0")]
    for path in (dead, alive, *others):
        path.touch()
    drain_folder(made.folder)
    assert not dead.exists()
    assert alive.exists()
    assert all(path.exists() for path in others)


def test_the_part_of_a_process_that_died_is_removed(made: HandMadeJournal) -> None:
    part, other = (made.folder / name for name in (".penstock-1-2.part", "file"))
    other.touch()
    for number, path in enumerate((part, other)):
        made.move_to_part(path)
        made.path.rename(made.folder / f".new-{2**22 + 1:x}-{number}")
    assert drain_folder(made.folder) == []
    assert made.left_over() == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act for another user")
def test_an_unfinished_journal_of_another_user_removes_no_part(
    made: HandMadeJournal,
) -> None:
    """Root drains a folder of a user, whose journal names a part of somebody else."""
    part = made.folder / ".penstock-1-2.part"
    made.move_to_part(part)
    unfinished = made.folder / f".new-{2**22 + 1:x}-0"
    made.path.rename(unfinished)
    os.chown(unfinished, 65_000, 65_000)
    assert drain_folder(made.folder) == []
    assert part.exists()


# --- Parts ----------------------------------------------------------------------------


def test_data_in_a_part_is_merged(made: HandMadeJournal, tmp_path: Path) -> None:
    made.append(0, b"data")
    made.append(6, b"more")
    made.move_to_part(part := tmp_path / "part")
    (shown,) = list_journals(made.folder)
    assert shown.pending_bytes == 8
    (report,) = drain_folder(made.folder)
    assert (report.state, report.drained_bytes) == (JournalState.DRAINED, 8)
    assert made.file.read_bytes() == applied(made.writes)
    assert made.left_over() == []
    assert not part.exists()


def test_an_empty_journal_needs_no_part(made: HandMadeJournal, tmp_path: Path) -> None:
    """The process that removed the part was killed before it removed the journal."""
    made.move_to_part(part := tmp_path / "part")
    part.unlink()
    (report,) = drain_folder(made.folder)
    assert report.state is JournalState.DRAINED
    assert made.left_over() == []


@pytest.mark.parametrize("fault", ["gone", "cut", "replaced", "folder", "long"])
def test_data_whose_part_is_not_whole_is_kept(
    made: HandMadeJournal, tmp_path: Path, fault: str
) -> None:
    made.append(0, b"data")
    made.move_to_part(part := tmp_path / "part")
    whole = part.rename(tmp_path / "whole")
    if fault == "cut":
        whole.rename(part)
        os.truncate(part, 4096)
    elif fault == "replaced":
        part.write_bytes(whole.read_bytes())
    elif fault == "folder":
        part.mkdir()
    elif fault == "long":
        made.header.part = b"/" + b"x" * 639
        with made.path.open("r+b") as file:
            file.write(bytes(made.header))
    (report,) = drain_folder(made.folder)
    assert report.state is JournalState.KEPT
    assert made.file.read_bytes() == b""
    assert made.left_over() == ["1-2.journal"]


def test_a_journal_that_another_process_removes_is_left_out(
    made: HandMadeJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: Path) -> Journal:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    monkeypatch.setattr(Journal, "open", gone)
    assert list_journals(made.folder) == drain_folder(made.folder) == []


# --- Reports --------------------------------------------------------------------------


def test_a_list_shows_the_state_and_changes_nothing(made: HandMadeJournal) -> None:
    made.append(0, b"data")
    content = made.path.read_bytes()
    (report,) = list_journals(made.folder)
    expected = JournalReport(
        made.path, str(made.file), JournalState.ORPHAN, pending_bytes=4, process=4242
    )
    assert report == expected
    with made.locked(Lock.LIFE):
        assert list_journals(made.folder)[0].state is JournalState.LIVE
    assert made.path.read_bytes() == content
    made.path.rename(made.path.with_suffix(".failed"))
    assert list_journals(made.folder)[0].state is JournalState.FAILED
    assert count_failed(made.folder) == 1


def test_the_report_of_a_drain_has_the_written_bytes(made: HandMadeJournal) -> None:
    made.append(0, b"one")
    made.append(3, b"three")
    made.drain_by_hand(1)
    report = _drained(made)
    assert (report.state, report.drained_bytes) == (JournalState.DRAINED, 5)
    assert (report.pending_bytes, report.reason) == (0, "")
    assert made.file.read_bytes() == b"onethree"
    assert made.left_over() == []


def test_the_journal_of_a_living_writer_stays(made: HandMadeJournal) -> None:
    made.append(0, b"data")
    with made.locked(Lock.LIFE):
        report = _drained(made)
    assert (report.state, report.drained_bytes) == (JournalState.LIVE, 4)
    assert made.file.read_bytes() == b"data"
    assert made.left_over() == [made.path.name]


def test_a_program_that_asks_drains_by_itself_while_it_lives(
    made: HandMadeJournal,
) -> None:
    made.append(0, b"data")
    made.change(flags=Flag.CALLS_BACK)
    with made.locked(Lock.LIFE):
        report = _drained(made)
    assert (report.state, report.drained_bytes) == (JournalState.LIVE, 0)
    assert "on_flush" in report.reason
    assert made.file.read_bytes() == b""
    assert _drained(made).state is JournalState.DRAINED
    assert made.file.read_bytes() == b"data"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": VERSION + 1}, "not a journal of version"),
        ({"capacity": CAPACITY_BYTES + 64}, "was cut"),
        ({"path": b"/none/file"}, "not there any more"),
        ({"inode": 12345}, "another file has its name"),
        ({"birth_ns": 12345}, "another file has its name"),
        ({"flags": Flag.PUT_ASIDE}, "put aside after an error"),
    ],
)
def test_a_journal_that_cannot_be_drained_is_kept_as_it_is(
    made: HandMadeJournal, change: dict[str, object], reason: str
) -> None:
    made.append(0, b"data")
    made.change(**change)
    content = made.path.read_bytes()
    for _ in range(2):
        report = _drained(made)
        assert (report.state, report.drained_bytes) == (JournalState.KEPT, 0)
        assert reason in report.reason
    assert made.path.read_bytes() == content
    assert made.file.read_bytes() == b""


def test_a_path_without_the_right_to_write_is_a_reason(made: HandMadeJournal) -> None:
    """A folder has the name: it cannot be opened to be written, not even by root."""
    made.append(0, b"data")
    made.file.unlink()
    made.file.mkdir()
    report = _drained(made)
    assert report.state is JournalState.KEPT
    text = os.strerror(errno.EISDIR)
    assert report.reason == f"the file cannot be written: {text}"


def test_a_log_that_is_a_pipe_holds_up_no_drain(made: HandMadeJournal) -> None:
    """Nobody reads it. The log would say that the journal is put aside."""
    made.append(0, b"data")
    made.file.unlink()
    made.file.write_bytes(b"another file")
    made.save()
    os.mkfifo(made.folder / "shim.log")
    process = start_drainer(made.folder, os.geteuid(), os.getegid(), {})
    try:
        process.wait(LIMIT_S)
    finally:
        process.kill()
        process.wait()
    assert len(list(made.folder.glob("*.failed"))) == 1


def test_a_read_only_file_of_the_user_is_drained(made: HandMadeJournal) -> None:
    made.append(0, b"data")
    made.file.chmod(0o444)
    assert _drained(made).state is JournalState.DRAINED
    assert made.file.read_bytes() == b"data"
    assert made.file.stat().st_mode & 0o777 == 0o444


def test_a_journal_that_was_put_aside_is_drained_if_that_is_asked_for(
    made: HandMadeJournal,
) -> None:
    """The program was told of an error, and may have written to the file since."""
    made.append(0, b"old")
    made.change(flags=Flag.PUT_ASIDE)
    made.path.rename(made.path.with_suffix(".failed"))
    assert drain_folder(made.folder) == []
    report = _drained(made, failed=True)
    assert (report.state, report.drained_bytes) == (JournalState.DRAINED, 3)
    assert made.file.read_bytes() == b"old"
    assert made.left_over() == []


def test_a_journal_that_was_put_aside_keeps_its_name_if_it_fails_again(
    made: HandMadeJournal,
) -> None:
    made.append(0, b"old")
    made.change(flags=Flag.PUT_ASIDE, birth_ns=12345)
    made.path.rename(made.path.with_suffix(".failed"))
    assert _drained(made, failed=True).state is JournalState.KEPT
    assert made.left_over() == ["1-2.failed"]


# --- Locks ----------------------------------------------------------------------------


def test_a_journal_that_another_process_holds_is_given_up(
    made: HandMadeJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain_process, "PATIENCE_S", 0.05)
    made.append(0, b"data")
    with made.locked(Lock.DRAIN):
        report = _drained(made)
    assert (report.state, report.drained_bytes) == (JournalState.KEPT, 0)
    assert report.reason == "another process holds it"
    assert made.file.read_bytes() == b""


def test_another_process_is_waited_for_as_long_as_it_drains(
    made: HandMadeJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the lock for longer than the patience, but drains all the time."""
    monkeypatch.setattr(drain_process, "PATIENCE_S", 1.0)
    made.append(0, b"data")
    reports: list[JournalReport] = []
    waiting = threading.Thread(target=lambda: reports.append(_drained(made)))
    place = type(made.header).drained_bytes.offset
    with made.locked(Lock.DRAIN), made.path.open("r+b") as file:
        waiting.start()
        until = time.monotonic() + 2.0
        for count in range(1, 100000):
            os.pwrite(file.fileno(), count.to_bytes(8, "little"), place)
            time.sleep(0.001)
            if time.monotonic() > until:
                break
        assert reports == []
    waiting.join(LIMIT_S)
    assert [report.state for report in reports] == [JournalState.DRAINED]
    assert made.file.read_bytes() == b"data"


# --- Interrupted drains, damaged records ----------------------------------------------

records = st.lists(
    st.tuples(st.integers(0, 300), st.binary(min_size=1, max_size=200)), max_size=12
)


@given(
    writes=records,
    checked=st.booleans(),
    done=st.integers(0, 12),
    more=st.integers(0, 12),
)
def test_an_interrupted_drain_is_done_again_without_harm(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[Write],
    checked: bool,
    done: int,
    more: int,
) -> None:
    """The drainer dies after it has written and before it has stored that."""
    made = HandMadeJournal(tmp_path_factory.mktemp("journal"), checked=checked)
    for offset, data in writes:
        made.append(offset, data)
    made.drain_by_hand(done)
    made.drain_by_hand(done + more, killed=True)
    drain_folder(made.folder)
    assert made.file.read_bytes() == applied(writes)
    assert drain_folder(made.folder) == []


@given(writes=records, torn=st.integers(0, 11), byte=st.integers(0, 199))
def test_a_damaged_record_ends_a_drain(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[Write],
    torn: int,
    byte: int,
) -> None:
    made = HandMadeJournal(tmp_path_factory.mktemp("journal"), checked=True)
    places = [made.append(offset, data) for offset, data in writes]
    torn = min(torn, len(writes))
    if torn < len(writes):
        made.ring[places[torn] + 40 + byte % len(writes[torn][1])] ^= 0xFF
        made.save()
    report = _drained(made)
    damaged = torn < len(writes)
    assert report.state == (JournalState.KEPT if damaged else JournalState.DRAINED)
    assert report.reason == ("a record is damaged" if damaged else "")
    assert made.file.read_bytes() == applied(writes[:torn])


#: Changes of the header of a journal whose writer has died.
changes = st.sampled_from(
    [
        {},
        {"boot": (7, 7)},
        {"boot": (7, 7), "device": 12345},
        {"boot": (7, 7), "device": 12345, "birth_ns": 12345},
        {"device": 12345},
        {"inode": 12345},
        {"birth_ns": 0},
        {"birth_ns": 12345},
        {"flags": Flag.PUT_ASIDE},
        {"flags": Flag.CALLS_BACK},
        {"flags": Flag.WRITE_THROUGH},
        {"path": b"/none/file"},
        {"version": VERSION + 1},
        {"capacity": CAPACITY_BYTES + 64},
    ]
)


def _drain_what_was_left(folder: Path) -> None:
    assert start_drainer(folder, os.geteuid()).wait(LIMIT_S) == 0


def _drain_by_name(folder: Path) -> None:
    drain_folder(folder)


@given(
    writes=records,
    checked=st.booleans(),
    done=st.integers(0, 3),
    # Not the offset of a record: nothing checks it.
    torn=st.none()
    | st.integers(0, CAPACITY_BYTES - 1).filter(lambda place: place % 64 // 8 != 2),
    change=changes,
)
def test_the_command_and_the_agent_drain_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    writes: list[Write],
    checked: bool,
    done: int,
    torn: int | None,
    change: dict[str, object],
) -> None:
    """Both write the same; what cannot be drained the agent puts aside."""
    results = []
    for drain in (_drain_by_name, _drain_what_was_left):
        made = HandMadeJournal(tmp_path_factory.mktemp("journal"), checked=checked)
        for offset, data in writes:
            made.append(offset, data)
        made.drain_by_hand(done)
        if torn is not None:
            made.ring[torn] ^= 0xFF
        made.change(**change)
        drain(made.folder)
        results.append((made.file.read_bytes(), len(made.left_over())))
    assert results[0] == results[1]


# --- The process that drains ----------------------------------------------------------


def test_a_process_that_dies_keeps_the_journal_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = HandMadeJournal(tmp_path / "a")
    made.append(0, b"data")
    made.path.rename(made.folder / "a.journal")
    other = HandMadeJournal(tmp_path / "b")
    other.append(0, b"more")
    other.path.rename(made.folder / "b.journal")
    drain = NamedDrain.drain

    def dies_at_first(process: NamedDrain, name: str) -> int:
        return errno.EINTR if name == "a.journal" else drain(process, name)

    monkeypatch.setattr(NamedDrain, "drain", dies_at_first)
    first, second = drain_folder(made.folder)
    assert (first.state, second.state) == (JournalState.KEPT, JournalState.DRAINED)
    assert first.reason == "the process that drained it was killed"
    assert made.left_over() == ["a.journal"]
    assert other.file.read_bytes() == b"more"
