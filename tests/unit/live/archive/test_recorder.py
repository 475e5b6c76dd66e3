# SPDX-License-Identifier: MIT
"""What is recorded can be read; what is old goes; a fault stops nobody."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from penstock.live.archive import recorder as recorder_module
from penstock.live.archive.reader import ArchiveReader
from penstock.live.archive.recorder import _LARGEST_NUMBER, ArchiveRecorder
from penstock.live.archive.tables import DATABASE, open_database
from support.archives import WALL_S, operation, record, recorder, run
from support.waiting import LIMIT_S, until


def test_a_run_grows_until_it_has_left(tmp_path: Path) -> None:
    archive = recorder(tmp_path)
    first = run(left_s=None, lost_s=1.0, moved_bytes=1e9)
    archive.add([(first, operation(1.0, 3.0))], [])
    (seen,) = ArchiveReader(tmp_path).runs()
    assert (seen.left_s, seen.lost_s, seen.moved_bytes) == (None, 1.0, 1e9)
    archive.add([(run(left_s=None), operation(4.0, 6.0))], [run()])
    (seen,) = ArchiveReader(tmp_path).runs()
    assert (seen.left_s, seen.lost_s) == (WALL_S + 100.0, 20.0)
    assert len(ArchiveReader(tmp_path).operations([seen])[seen]) == 2
    archive.close()


def test_a_job_that_comes_back_has_two_runs(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    record(tmp_path, (run(joined_s=110.0, left_s=120.0), [operation(111.0, 112.0)]))
    runs = ArchiveReader(tmp_path).runs()
    assert [r.joined_s - WALL_S for r in runs] == [0.0, 110.0]
    assert len({r.number for r in runs}) == 2


def test_runs_of_a_killed_controller_end_with_their_last_operation(
    tmp_path: Path,
) -> None:
    killed = recorder(tmp_path)
    open_run = run(left_s=None)
    killed.add([(open_run, operation(1.0, 3.5))], [])
    killed.close()
    record(tmp_path, (run("7:b"), []))
    by_name = {r.name: r for r in ArchiveReader(tmp_path).runs()}
    assert by_name["a"].left_s == WALL_S + 3.5
    assert [by_name[name].missing for name in "ab"] == ["end", ""]


def test_a_run_whose_begin_and_end_no_daemon_saw_says_so(tmp_path: Path) -> None:
    killed = recorder(tmp_path)
    open_run = run(left_s=None, missing="begin")
    killed.add([(open_run, operation(1.0, 3.5))], [])
    killed.close()
    record(tmp_path, (run("7:b", missing="begin"), []))
    by_name = {r.name: r for r in ArchiveReader(tmp_path).runs()}
    assert [by_name[name].missing for name in "ab"] == ["both", "begin"]


def test_a_false_number_of_one_job_keeps_no_other_job_out(tmp_path: Path) -> None:
    archive = recorder(tmp_path)
    false = run("7:b", moved_bytes=1e30, lost_s=1e30)
    honest = run(moved_bytes=1e9)
    archive.add([(false, operation(1.0, 3.0)), (honest, operation(1.0, 3.0))], [])
    archive.close()
    by_name = {r.name: r for r in ArchiveReader(tmp_path).runs()}
    assert by_name["a"].moved_bytes == 1e9
    assert by_name["b"].moved_bytes == 1e18


def test_an_operation_takes_at_most_100_bytes(tmp_path: Path) -> None:
    archive = recorder(tmp_path)
    grants = ((0.0, 1e9), (1.0, 2e8), (3.0, 5e8))
    runs = [run(f"1000:job{n}", left_s=None) for n in range(200)]
    for turn in range(20):
        done = operation(10.0 * turn, 10.0 * turn + 5.0, grants=grants)
        archive.add([(each, done) for each in runs], [])
    archive.close()
    assert (tmp_path / DATABASE).stat().st_size < 100 * 200 * 20


def test_a_fault_is_logged_once_and_forgotten_when_it_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "archive"
    place.write_text("in the way")
    archive = ArchiveRecorder(place)
    with caplog.at_level(logging.WARNING):
        archive.add([], [run()])
        archive.add([], [run()])
    assert len(caplog.records) == 1
    assert "control goes on" in caplog.text
    place.unlink()
    archive.add([], [run()])
    archive.close()
    assert len(ArchiveReader(place).runs()) == 1


def test_a_damaged_file_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / DATABASE).write_bytes(b"no database" * 1000)
    archive = recorder(tmp_path)
    archive.add([], [run()])
    archive.close()
    assert "not archived" in caplog.text


def test_closing_days_moves_yesterday(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    later = recorder(tmp_path, now_s=200_000.0)
    later.close_days()
    until(lambda: ArchiveReader(tmp_path).runs()[0].file != "")
    later.close()


def test_recording_goes_on_while_days_are_moved(tmp_path: Path) -> None:
    """Another writer has the database for a moment: the recorder waits for it."""
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    archive = recorder(tmp_path)
    archive.add([], [run("7:b")])
    with closing(open_database(tmp_path)) as mover:
        mover.execute("BEGIN IMMEDIATE")
        writer = Thread(target=archive.add, args=([], [run("7:c")]))
        writer.start()
        writer.join(1.5)
        assert writer.is_alive()
        mover.rollback()
        writer.join(30.0)
    archive.close()
    assert [r.name for r in ArchiveReader(tmp_path).runs()] == ["a", "b", "c"]


def test_a_mover_that_fails_is_logged_and_does_not_stop_the_recorder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    (tmp_path / "operations-2023-11-14.new").mkdir()
    archive = recorder(tmp_path, now_s=200_000.0)
    archive.close_days()

    def is_logged() -> bool:
        archive.close_days()
        return "past days stay in SQLite" in caplog.text

    until(is_logged)
    archive.add([], [run("7:b")])
    archive.close()
    assert [r.name for r in ArchiveReader(tmp_path).runs()] == ["a", "b"]


def test_closing_the_archive_stops_the_mover(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    archive = recorder(tmp_path, now_s=200_000.0)
    archive.close_days()
    archive.close()
    assert [r.name for r in ArchiveReader(tmp_path).runs()] == ["a"]


def test_a_mover_that_cannot_be_killed_is_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process in state D ends long after it was killed."""
    record(tmp_path / "archive", (run(), [operation(1.0, 2.0)]))
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    archive = recorder(tmp_path / "archive", now_s=200_000.0)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(program))
        archive.close_days()
    mover = archive._mover
    assert mover is not None
    monkeypatch.setattr(recorder_module, "_STOP_S", 0.01)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess.Popen, "terminate", lambda _: None)
        patched.setattr(subprocess.Popen, "kill", lambda _: None)
        # Another thread, because it must not take for ever.
        closing_thread = Thread(target=archive.close, daemon=True)
        closing_thread.start()
        closing_thread.join(LIMIT_S)
    mover.kill()
    mover.wait(LIMIT_S)
    assert not closing_thread.is_alive()
    assert f"process {mover.pid} cannot be killed" in caplog.text


def test_a_folder_has_one_recorder_at_a_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = recorder(tmp_path), recorder(tmp_path)
    present = run("7:a", left_s=None)
    first.add([(present, operation(1.0, 2.0))], [])
    second.add([(run("7:b", left_s=None), operation(1.0, 2.0))], [])
    assert "another controller archives in this folder" in caplog.text
    # The run of the first one has not been ended by the second one.
    (only,) = ArchiveReader(tmp_path).runs()
    assert (only.name, only.left_s) == ("a", None)
    first.close()
    second.add([], [run("7:b")])
    assert [r.name for r in ArchiveReader(tmp_path).runs()] == ["a", "b"]
    second.close()


def test_a_new_number_does_not_cost_a_reading_of_all_runs(tmp_path: Path) -> None:
    with closing(open_database(tmp_path)) as database:
        plan = database.execute(f"EXPLAIN QUERY PLAN {_LARGEST_NUMBER}").fetchall()
    steps = [row[-1] for row in plan]
    assert "SEARCH runs" in steps
    assert "SCAN runs" not in steps


def test_a_run_whose_end_could_not_be_written_ends_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    archive = recorder(tmp_path)
    archive.add([(run(left_s=None), operation(1.0, 3.5))], [])
    with closing(open_database(tmp_path)) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON runs "
            "BEGIN SELECT raise(ABORT, 'disk full'); END"
        )
        archive.add([], [run()])
        assert "disk full; control goes on" in caplog.text
        database.execute("DROP TRIGGER full")
    archive.add([], [run("7:b")])
    archive.close()
    by_name = {r.name: r for r in ArchiveReader(tmp_path).runs()}
    assert by_name["a"].left_s == WALL_S + 3.5
    assert by_name["b"].left_s == WALL_S + 100.0
