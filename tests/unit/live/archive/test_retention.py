# SPDX-License-Identifier: MIT
"""What is too old or too much goes; a clock that jumps does not delete the archive."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.live.archive.reader import ArchiveReader
from penstock.live.archive.retention import (
    Retention,
    clean,
    count_by_owner,
    surplus,
)
from penstock.live.archive.tables import open_database
from support.archives import WALL_S, operation, record, recorder, run

DAY_S = 86400.0


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


def test_a_large_archive_loses_what_the_largest_user_has(tmp_path: Path) -> None:
    """Also if that are jobs without operations, as those of a flood of jobs."""
    done = [operation(0.1 * n, 0.1 * n + 0.05) for n in range(50)]
    flood: list[Any] = [(run(f"8:{n}"), []) for n in range(2000)]
    record(tmp_path, (run("7:a"), done), *flood)
    small = recorder(tmp_path, retention=Retention(size_bytes=1.0))
    small.add([], [run("9:b")])
    small.close()
    reader = ArchiveReader(tmp_path)
    runs = reader.runs()
    names = [each.name for each in runs if each.user != 8]
    assert sorted(names) == ["a", "b"]
    (kept,) = reader.runs(job="a")
    assert len(reader.operations([kept])[kept]) == 50
    assert len(runs) < 2000


@pytest.mark.parametrize(
    ("rows", "deleted", "expected"),
    [
        ({1: 100, 2: 10}, 20, {1: 20}),
        ({1: 100, 2: 90, 3: 10}, 30, {1: 20, 2: 10}),
        ({1: 50, 2: 50}, 10, {1: 5, 2: 5}),
        ({1: 3}, 9, {1: 3}),
        ({}, 5, {}),
    ],
)
def test_those_with_most_rows_lose_some(
    rows: dict[int, int], deleted: int, expected: dict[int, int]
) -> None:
    assert surplus(rows, deleted) == expected


def test_ids_of_containers_count_as_their_owner() -> None:
    counted = count_by_owner([(7, 3), (100_001, 2), (100_002, 4)], lambda u: min(u, 9))
    assert counted == {7: 3, 9: 6}


def _names(folder: Path) -> list[str]:
    return [each.name for each in ArchiveReader(folder).runs()]


def test_a_wall_clock_that_is_wrong_for_an_hour_deletes_nothing(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    kept = Retention(age_s=30 * DAY_S)
    with closing(open_database(tmp_path)) as database:
        for wrong_s in (3650 * DAY_S, 3650 * DAY_S + 3600.0, -3650 * DAY_S, 100.0):
            clean(database, kept, WALL_S + wrong_s)
    (seen,) = ArchiveReader(tmp_path).runs()
    assert len(ArchiveReader(tmp_path).operations([seen])[seen]) == 1


def test_a_daemon_that_starts_with_a_wrong_clock_deletes_nothing(
    tmp_path: Path,
) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    for start in range(3):
        wrong = recorder(tmp_path, now_s=(3650 + start) * DAY_S)
        wrong.add([], [run(f"7:{start}", left_s=None)])
        wrong.close()
    assert "a" in _names(tmp_path)


def test_a_clock_that_stays_where_it_is_deletes_in_the_end(tmp_path: Path) -> None:
    record(tmp_path, (run(), [operation(1.0, 2.0)]))
    with closing(open_database(tmp_path)) as database:
        for _ in range(40):
            clean(database, Retention(age_s=30 * DAY_S), WALL_S + 3650 * DAY_S)
    assert _names(tmp_path) == []


def test_the_oldest_instant_follows_a_right_clock(tmp_path: Path) -> None:
    record(tmp_path, (run(), []))
    with closing(open_database(tmp_path)) as database:
        for hours in (1, 20, 40):
            now_s = WALL_S + 3600.0 * hours
            oldest_s = clean(database, Retention(age_s=DAY_S), now_s)
            assert oldest_s == pytest.approx(now_s - DAY_S)
