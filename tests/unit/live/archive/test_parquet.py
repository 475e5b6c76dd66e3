# SPDX-License-Identifier: MIT
"""Days that are over move to Parquet files, and read the same from there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from penstock.live.archive import parquet
from penstock.live.archive.parquet import (
    move_closed_days,
    parquet_files,
    read_parquet,
)
from penstock.live.archive.reader import ArchiveReader
from penstock.live.archive.tables import DATABASE, RUN_COLUMNS
from support.archives import WALL_S, operation, record, run

DAY_S = 86400.0


def _facts(folder: Path) -> list[tuple[object, ...]]:
    reader = ArchiveReader(folder)
    operations = reader.operations(reader.runs())
    # Where a run is found is not a fact about it.
    return [
        (replace(r, file="", number=0), list(done)) for r, done in operations.items()
    ]


def test_a_moved_day_reads_the_same(tmp_path: Path) -> None:
    done = [operation(1.0, 2.0), operation(5.0, 9.0, lost_s=1.5)]
    record(tmp_path, (run(), done), (run("8:b"), []))
    before = _facts(tmp_path)
    assert move_closed_days(tmp_path, WALL_S + DAY_S) == 2
    assert _facts(tmp_path) == before
    ((day, path),) = parquet_files(tmp_path, "runs")
    assert day == "2023-11-14"
    assert len(read_parquet(path, RUN_COLUMNS)) == 2


def test_today_and_jobs_that_have_not_left_stay(tmp_path: Path) -> None:
    record(tmp_path, (run(), []))
    record(tmp_path, (run("7:b", left_s=None), [operation(1.0, 2.0)]))
    assert move_closed_days(tmp_path, WALL_S + 100.0) == 0
    assert move_closed_days(tmp_path, WALL_S + DAY_S) == 1
    assert {r.file for r in ArchiveReader(tmp_path).runs()} == {"", "2023-11-14"}


def test_a_crash_between_writing_and_deleting_doubles_nothing(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    shutil.copy(tmp_path / DATABASE, tmp_path / "copy")
    move_closed_days(tmp_path, WALL_S + DAY_S)
    before = _facts(tmp_path)
    # The files are there, and the rows have not been deleted.
    shutil.move(tmp_path / "copy", tmp_path / DATABASE)
    move_closed_days(tmp_path, WALL_S + DAY_S)
    assert _facts(tmp_path) == before


def test_old_days_are_deleted(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    move_closed_days(tmp_path, WALL_S + DAY_S)
    move_closed_days(tmp_path, WALL_S + 30 * DAY_S, oldest_s=WALL_S + 10 * DAY_S)
    assert ArchiveReader(tmp_path).runs() == []
    assert list(tmp_path.glob("*.parquet")) == []


def test_a_folder_without_an_archive_has_no_days(tmp_path: Path) -> None:
    assert move_closed_days(tmp_path, WALL_S) == 0


def test_the_oldest_days_are_deleted_if_there_is_too_much(tmp_path: Path) -> None:
    for day in range(3):
        times = {"joined_s": day * DAY_S, "left_s": day * DAY_S + 9.0}
        record(tmp_path, (run(f"7:{day}", **times), [operation(1.0, 2.0)]))
    move_closed_days(tmp_path, WALL_S + 9 * DAY_S)
    paths = sorted(tmp_path.glob("*.parquet"))
    size_bytes = sum(path.stat().st_size for path in paths)
    assert len(paths) == 6
    move_closed_days(tmp_path, WALL_S + 9 * DAY_S, size_bytes=size_bytes - 1)
    assert sorted(tmp_path.glob("*.parquet")) == [*paths[1:3], *paths[4:]]
    move_closed_days(tmp_path, WALL_S + 9 * DAY_S, size_bytes=0.0)
    assert list(tmp_path.glob("*.parquet")) == []


def test_a_user_with_many_rows_does_not_push_out_those_of_others(
    tmp_path: Path,
) -> None:
    for day in range(3):
        times = {"joined_s": day * DAY_S, "left_s": day * DAY_S + 9.0}
        done = [operation(day * DAY_S + n, day * DAY_S + n + 0.5) for n in range(4)]
        flood: list[Any] = [(run(f"8:{day}-{n}", **times), []) for n in range(300)]
        record(tmp_path, (run(f"7:{day}", **times), done), *flood)
    move_closed_days(tmp_path, WALL_S + 9 * DAY_S)
    size_bytes = sum(path.stat().st_size for path in tmp_path.glob("*.parquet"))
    move_closed_days(tmp_path, WALL_S + 9 * DAY_S, size_bytes=size_bytes - 1)
    reader = ArchiveReader(tmp_path)
    runs = reader.runs()
    assert {each.name for each in runs if each.user == 7} == {"0", "1", "2"}
    kept = reader.operations([each for each in runs if each.user == 7])
    assert [len(done) for done in kept.values()] == [4, 4, 4]
    # The oldest day of the flood is gone.
    assert {each.name[0] for each in runs if each.user == 8} == {"1", "2"}


def test_the_number_of_a_moved_run_is_not_used_again(tmp_path: Path) -> None:
    """A run that ends on the same day, but is archived later, keeps its operations."""
    record(tmp_path, (run("7:a"), [operation(1.0, 2.0)]))
    move_closed_days(tmp_path, WALL_S + DAY_S)
    record(tmp_path, (run("7:b"), [operation(3.0, 5.0), operation(6.0, 7.0)]))
    move_closed_days(tmp_path, WALL_S + DAY_S)
    reader = ArchiveReader(tmp_path)
    operations = reader.operations(reader.runs())
    assert {r.name: len(done) for r, done in operations.items()} == {"a": 1, "b": 2}


def test_files_are_on_disk_before_rows_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    delete = parquet._delete

    def synced(handle: int) -> None:
        steps.append(Path(f"/proc/self/fd/{handle}").readlink().name)

    def deleted(*arguments: Any) -> None:
        steps.append("delete")
        delete(*arguments)

    monkeypatch.setattr("os.fsync", synced)
    monkeypatch.setattr(parquet, "_delete", deleted)
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    move_closed_days(tmp_path, WALL_S + DAY_S)
    day = "2023-11-14"
    assert steps == [
        *(f"operations-{day}.new", tmp_path.name),
        *(f"runs-{day}.new", tmp_path.name),
        "delete",
    ]
