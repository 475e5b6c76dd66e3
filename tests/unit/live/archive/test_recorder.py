# SPDX-License-Identifier: MIT
"""What is recorded can be read; what is old goes; a fault stops nobody."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path

import pytest

from penstock.live.archive.reader import ArchiveReader
from penstock.live.archive.recorder import (
    _LARGEST_NUMBER,
    ArchiveRecorder,
    Retention,
)
from penstock.live.archive.tables import DATABASE, open_database
from support.archives import WALL_S, operation, record, recorder, run


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


def test_an_operation_takes_at_most_100_bytes(tmp_path: Path) -> None:
    archive = recorder(tmp_path)
    grants = ((0.0, 1e9), (1.0, 2e8), (3.0, 5e8))
    runs = [run(f"1000:job{n}", left_s=None) for n in range(200)]
    for turn in range(20):
        done = operation(10.0 * turn, 10.0 * turn + 5.0, grants=grants)
        archive.add([(each, done) for each in runs], [])
    archive.close()
    assert (tmp_path / DATABASE).stat().st_size < 100 * 200 * 20


def test_what_is_too_old_is_deleted(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    later = recorder(tmp_path, now_s=10_000.0, retention=Retention(age_s=5000.0))
    later.add([], [run("7:b", joined_s=9000.0, left_s=9999.0)])
    later.close()
    assert [r.name for r in ArchiveReader(tmp_path).runs()] == ["b"]


def test_a_large_archive_loses_its_oldest_operations(tmp_path: Path) -> None:
    open_run = run(left_s=None)
    done = [operation(0.1 * n, 0.1 * n + 0.05) for n in range(2000)]
    record(tmp_path, (open_run, done))
    small = recorder(tmp_path, retention=Retention(size_bytes=1.0))
    small.add([], [run("7:b")])
    small.close()
    reader = ArchiveReader(tmp_path)
    (kept,) = reader.runs(job="a")
    left = reader.operations([kept])[kept]
    assert len(left) == 1800
    assert left[0].begin_s > WALL_S + 15.0


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


def test_closing_days_leaves_today_alone_and_moves_yesterday(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    recorder(tmp_path).close_days()
    assert list(tmp_path.glob("*.parquet")) == []
    recorder(tmp_path, now_s=200_000.0).close_days()
    (seen,) = ArchiveReader(tmp_path).runs()
    assert seen.file


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
