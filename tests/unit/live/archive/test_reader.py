# SPDX-License-Identifier: MIT
"""Runs are found by user, name and time; operations come in their order."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from math import inf
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.archive.parquet import move_closed_days
from penstock.live.archive.reader import ArchiveReader
from penstock.live.archive.recorder import ArchiveRecorder
from penstock.live.archive.retention import Retention
from penstock.live.archive.tables import DATABASE
from support.archives import WALL_S, operation, record, recorder, run


@pytest.mark.parametrize("moved", [False, True])
def test_runs_are_found_by_user_name_key_and_time(
    tmp_path: Path, *, moved: bool
) -> None:
    record(
        tmp_path,
        (run("7:a"), []),
        (run("7:b", joined_s=50.0), []),
        (run("8:a", joined_s=150.0, left_s=160.0), []),
    )
    if moved:
        move_closed_days(tmp_path, WALL_S + 1e6)
    reader = ArchiveReader(tmp_path)

    def keys(**choice: object) -> list[str]:
        return [r.job_key for r in reader.runs(**choice)]  # type: ignore[arg-type]

    assert keys() == ["7:a", "7:b", "8:a"]
    assert keys(user=7) == ["7:a", "7:b"]
    assert keys(job="a") == ["7:a", "8:a"]
    assert keys(job="8:a") == ["8:a"]
    assert keys(since_s=WALL_S + 120.0) == ["8:a"]
    assert keys(until_s=WALL_S + 20.0) == ["7:a"]


def test_operations_come_in_order_with_all_their_facts(tmp_path: Path) -> None:
    late = operation(5.0, 9.0, lost_s=1.5, held_up_s=2.5, capacity=inf, policy="x")
    record(tmp_path, (run(), [late, operation(1.0, 2.0)]))
    reader = ArchiveReader(tmp_path)
    (only,) = reader.runs()
    first, second = reader.operations([only])[only]
    assert first.begin_s == WALL_S + 1.0
    assert (second.lost_s, second.held_up_s, second.capacity) == (1.5, 2.5, inf)
    assert (second.policy, second.moved_bytes) == ("x", 1e9)
    assert second.grants == ((second.begin_s, 5e8),)


@pytest.mark.parametrize("moved", [False, True])
def test_only_the_newest_are_read(tmp_path: Path, *, moved: bool) -> None:
    record(
        tmp_path,
        (run("7:a", joined_s=0.0), [operation(1.0, 2.0), operation(7.0, 8.0)]),
        (run("7:b", joined_s=1.0), [operation(3.0, 4.0)]),
        (run("7:c", joined_s=2.0), [operation(5.0, 6.0)]),
    )
    if moved:
        move_closed_days(tmp_path, WALL_S + 1e6)
    reader = ArchiveReader(tmp_path)
    assert [r.name for r in reader.runs(newest=2)] == ["b", "c"]
    assert reader.runs(newest=0) == []
    runs = a, b, c = reader.runs(newest=9)
    newest = reader.operations(runs, newest=2)
    begins_s = [[o.begin_s - WALL_S for o in newest[each]] for each in (a, b, c)]
    assert begins_s == [[7.0], [], [5.0]]
    assert reader.operation_count(runs) == 4
    assert reader.operation_count([a], since_s=WALL_S + 6.0) == 1
    assert reader.operation_count([]) == 0


def test_the_newest_of_several_files(tmp_path: Path) -> None:
    """Yesterday's operations are in a Parquet file, today's in SQLite."""
    record(tmp_path, (run("7:a"), [operation(t, t + 1.0) for t in (1.0, 3.0)]))
    move_closed_days(tmp_path, WALL_S + 1e6)
    record(tmp_path, (run("7:b"), [operation(t, t + 1.0) for t in (0.0, 2.0)]))
    reader = ArchiveReader(tmp_path)
    a, b = reader.runs()
    assert reader.operation_count([a, b]) == 4
    newest = reader.operations([a, b], newest=3)
    assert [o.begin_s - WALL_S for o in newest[a]] == [1.0, 3.0]
    assert [o.begin_s - WALL_S for o in newest[b]] == [2.0]


def test_too_many_jobs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.archive.reader.MOST_RUNS", 1)
    record(tmp_path, (run("7:a"), []), (run("7:b"), []))
    reader = ArchiveReader(tmp_path)
    with pytest.raises(InputError, match="more than 1 jobs in this time"):
        reader.operations_at_most(9, WALL_S, WALL_S + 1.0)


def test_operations_of_some_runs_only(tmp_path: Path) -> None:
    record(tmp_path, (run("7:a"), [operation(1.0, 2.0)]), (run("7:b"), []))
    reader = ArchiveReader(tmp_path)
    (b,) = reader.runs(job="b")
    assert reader.operations([b]) == {b: []}


def test_the_yield_is_that_of_the_end(tmp_path: Path) -> None:
    record(tmp_path, (run(), []), (run("7:b", left_s=None), []))
    by_name = {r.name: r for r in ArchiveReader(tmp_path).runs()}
    assert by_name["a"].progress_yield(WALL_S + 1e6) == pytest.approx(0.8)
    assert by_name["b"].progress_yield(WALL_S + 200.0) == pytest.approx(0.9)


def test_a_limit_is_kept(tmp_path: Path) -> None:
    record(tmp_path, (run(limit=2e6), []), (run("7:b"), []))
    assert [each.limit for each in ArchiveReader(tmp_path).runs()] == [2e6, inf]


def test_an_archive_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert ArchiveReader(tmp_path / "nowhere").runs() == []


def test_a_damaged_archive_is_an_error_with_its_file(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"no database" * 1000)
    with pytest.raises(InputError, match=DATABASE):
        ArchiveReader(tmp_path).runs()


@pytest.mark.parametrize("moved", [False, True])
def test_names_with_signs_of_sql_are_only_names(tmp_path: Path, *, moved: bool) -> None:
    names = ["it's", "a%", "a_b", "back\\", 'double"', "x:y", "' OR '1'='1"]
    record(tmp_path, *((run(f"7:{name}"), []) for name in names))
    if moved:
        move_closed_days(tmp_path, WALL_S + 1e6)
    reader = ArchiveReader(tmp_path)
    for name in names:
        assert [r.name for r in reader.runs(job=name)] == [name]
    assert reader.runs(job="y") == []


@pytest.mark.parametrize("moved", [False, True])
def test_operations_are_found_by_time(tmp_path: Path, *, moved: bool) -> None:
    record(tmp_path, (run(), [operation(t, t + 1.0) for t in (1.0, 5.0, 9.0)]))
    if moved:
        move_closed_days(tmp_path, WALL_S + 1e6)
    reader = ArchiveReader(tmp_path)
    (only,) = reader.runs()
    found = reader.operations([only], since_s=WALL_S + 3.0, until_s=WALL_S + 8.0)
    assert [o.begin_s - WALL_S for o in found[only]] == [5.0]


def test_a_run_that_moves_while_it_is_read_keeps_its_operations(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    reader = ArchiveReader(tmp_path)
    (only,) = reader.runs()
    assert only.file == ""
    move_closed_days(tmp_path, WALL_S + 1e6)
    assert len(reader.operations([only])[only]) == 1


def test_a_damaged_parquet_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    record(tmp_path, (run(), []))
    move_closed_days(tmp_path, WALL_S + 1e6)
    (path,) = tmp_path.glob("runs-*.parquet")
    path.write_bytes(b"damaged")
    with pytest.raises(InputError, match=path.name):
        ArchiveReader(tmp_path).runs()


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "50% of #1? yes"
    record(folder, (run(), []))
    assert [r.name for r in ArchiveReader(folder).runs()] == ["a"]


def _daemon(folder: Path, begin_s: float, end_s: float) -> None:
    """Let a daemon record in a folder from one instant to another."""
    now_s = [begin_s]
    archive = ArchiveRecorder(
        folder, Retention(), lambda: now_s[0], lambda: WALL_S + now_s[0]
    )
    archive.note_alive()
    now_s[0] = end_s
    archive.note_alive()
    archive.close()


def _unrecorded(
    folder: Path, begin_s: float, end_s: float
) -> list[tuple[float, float]]:
    found = ArchiveReader(folder).unrecorded(WALL_S + begin_s, WALL_S + end_s)
    return [(begin - WALL_S, end - WALL_S) for begin, end in found]


def test_times_without_a_daemon_are_known(tmp_path: Path) -> None:
    assert _unrecorded(tmp_path, 0.0, 10.0) == [(0.0, 10.0)]
    _daemon(tmp_path, 100.0, 200.0)
    _daemon(tmp_path, 250.0, 300.0)
    # The last one was seen a moment ago.
    assert _unrecorded(tmp_path, 0.0, 320.0) == [(0.0, 100.0), (200.0, 250.0)]
    assert _unrecorded(tmp_path, 120.0, 180.0) == []
    assert _unrecorded(tmp_path, 210.0, 220.0) == [(210.0, 220.0)]
    assert _unrecorded(tmp_path, 260.0, 500.0) == [(330.0, 500.0)]


def test_runs_of_an_older_version_were_recorded_by_a_daemon(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database, database:
        database.execute("DROP TABLE daemons")
    assert _unrecorded(tmp_path, -50.0, 500.0) == [(-50.0, 0.0)]
    _daemon(tmp_path, 300.0, 400.0)
    assert _unrecorded(tmp_path, -50.0, 420.0) == [(-50.0, 0.0)]


def test_a_daemon_without_an_archive_makes_none(tmp_path: Path) -> None:
    archive = recorder(tmp_path / "none")
    archive.note_alive()
    archive.close()
    assert not (tmp_path / "none").exists()
