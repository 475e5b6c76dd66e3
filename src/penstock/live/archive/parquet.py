# SPDX-License-Identifier: MIT
"""Moves days that are over from SQLite to Parquet files, which are smaller.

``python -m penstock.live.archive.parquet FOLDER NOW OLDEST SIZE`` does it, in a process
of its own: the library needs memory that the daemon should not keep. A day is the UTC
day on which a run left. ``runs-DAY.parquet`` and ``operations-DAY.parquet`` are on disk
before the rows are deleted from SQLite. A crash leaves the rows, or the files, or both;
then the files are written again.

The recorder goes on meanwhile. Runs that have left do not change any more. Their rows
are read without a lock and deleted a few at a time, so that the recorder never waits
long.
"""

from __future__ import annotations

import calendar
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.live.archive.retention import count_by_owner, surplus
from penstock.live.archive.tables import (
    DATABASE,
    OLD_VALUES,
    OPERATION_COLUMNS,
    RUN_COLUMNS,
    give_back_space,
    open_database,
)
from penstock.live.wire.subordinates import owner_of

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "count_in_parquet",
    "day_begin_s",
    "day_name",
    "move_closed_days",
    "parquet_files",
    "read_parquet",
]

_DAY_MS: Final = 86_400_000
_TABLES: Final = ("operations", "runs")
#: Number of runs that are deleted at once, and the pause after that (s).
_RUNS_AT_ONCE: Final = 50
_PAUSE_S: Final = 0.01


def parquet_files(folder: Path, table: str) -> Iterator[tuple[str, Path]]:
    """Yield the days and files of a table, oldest first."""
    for path in sorted(folder.glob(f"{table}-*.parquet")):
        yield path.stem.removeprefix(f"{table}-"), path


def day_name(instant_s: float) -> str:
    """Return the UTC day of an instant, as in the names of files."""
    return time.strftime("%Y-%m-%d", time.gmtime(max(instant_s, 0.0)))


def day_begin_s(day: str) -> float:
    """Return the instant at which a UTC day begins, named as in `day_name`."""
    return float(calendar.timegm(time.strptime(day, "%Y-%m-%d")))


def read_parquet(
    path: Path,
    columns: Sequence[str],
    where: str = "",
    latest: tuple[str, int] | None = None,
) -> list[tuple[Any, ...]]:
    """Return the rows of a Parquet file.

    Parameters
    ----------
    where
        A condition in SQL.
    latest
        A column, and how many rows with the largest values there; None: all rows.
    """
    import polars as pl  # noqa: PLC0415 - slow to import, rarely needed

    frame = pl.scan_parquet(path)
    if where:
        frame = frame.filter(pl.sql_expr(where))
    if latest is not None:
        frame = frame.top_k(latest[1], by=latest[0])
    known = frame.collect_schema().names()
    selected = [
        pl.col(c) if c in known else pl.lit(OLD_VALUES[c]).alias(c) for c in columns
    ]
    return frame.select(selected).collect().rows()


def count_in_parquet(path: Path, where: str) -> list[tuple[int, int]]:
    """Return runs with rows in a Parquet file, and the number of their rows."""
    import polars as pl  # noqa: PLC0415 - as above

    frame = pl.scan_parquet(path).filter(pl.sql_expr(where))
    return frame.group_by("run").len().collect().rows()


def move_closed_days(
    folder: Path, now_s: float, oldest_s: float = 0.0, size_bytes: float = inf
) -> int:
    """Move the runs of days that are over; return their number.

    Files of days before `oldest_s` are deleted. Then the owners with most rows lose
    their oldest days, until the files take at most `size_bytes`.
    """
    if not (folder / DATABASE).exists():
        return 0
    today = round(now_s * 1000) // _DAY_MS
    moved = 0
    with closing(open_database(folder)) as database:
        days = [
            day
            for (day,) in database.execute(
                "SELECT DISTINCT left_ms / ? FROM runs WHERE left_ms IS NOT NULL",
                (_DAY_MS,),
            )
            if day < today
        ]
        for day in sorted(days):
            moved += _move_day(database, folder, day)
        give_back_space(database)
    _delete_old(folder, oldest_s, size_bytes)
    return moved


def _move_day(database: sqlite3.Connection, folder: Path, day: int) -> int:
    """Move the runs that left on one day."""
    left_that_day = f"left_ms >= {day * _DAY_MS} AND left_ms < {(day + 1) * _DAY_MS}"
    numbers = f"SELECT run FROM runs WHERE {left_that_day}"  # noqa: S608 - numbers
    with database:
        # A transaction: both tables as they are at one instant.
        database.execute("BEGIN")
        runs = _rows(database, "runs", RUN_COLUMNS, left_that_day)
        operations = _rows(
            database, "operations", OPERATION_COLUMNS, f"run IN ({numbers})"
        )
    name = day_name(day * _DAY_MS / 1000)
    _write(folder / f"operations-{name}.parquet", OPERATION_COLUMNS, operations)
    _write(folder / f"runs-{name}.parquet", RUN_COLUMNS, runs)
    _delete(database, [row[0] for row in runs])
    return len(runs)


def _rows(
    database: sqlite3.Connection, table: str, columns: Sequence[str], where: str
) -> list[tuple[Any, ...]]:
    query = f"SELECT {', '.join(columns)} FROM {table} WHERE {where}"  # noqa: S608
    return database.execute(query).fetchall()


def _delete(database: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Delete runs and their operations, a few runs at a time."""
    with database:
        database.execute(
            "INSERT OR REPLACE INTO moved (id, run) VALUES (1, max(?, "
            "coalesce((SELECT run FROM moved WHERE id = 1), 0)))",
            (max(numbers),),
        )
    for first in range(0, len(numbers), _RUNS_AT_ONCE):
        chosen = [(number,) for number in numbers[first : first + _RUNS_AT_ONCE]]
        with database:
            database.executemany("DELETE FROM operations WHERE run = ?", chosen)
            database.executemany("DELETE FROM runs WHERE run = ?", chosen)
        time.sleep(_PAUSE_S)


def _write(path: Path, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Add rows to a Parquet file; replace it when it is complete."""
    import polars as pl  # noqa: PLC0415 - as above

    known = read_parquet(path, columns) if path.exists() else []
    # A crash may have left rows in the file that are in SQLite, too.
    rows = list(dict.fromkeys([*known, *rows]))
    _replace(path, pl.DataFrame(rows, schema=list(columns), orient="row"))


def _replace(path: Path, frame: pl.DataFrame) -> None:
    """Replace a Parquet file when the new one is complete."""
    temporary = path.with_suffix(".new")
    frame.write_parquet(temporary)
    temporary.chmod(0o600)
    _sync(temporary)
    temporary.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """Wait until a file or a folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _delete_old(folder: Path, oldest_s: float, size_bytes: float) -> None:
    """Delete days before `oldest_s`, then what is too much."""
    oldest_day = day_name(oldest_s)
    for table in _TABLES:
        for day, path in parquet_files(folder, table):
            if day < oldest_day:
                path.unlink(missing_ok=True)
    while (taken_bytes := _taken_bytes(folder)) > size_bytes:
        rows = _rows_by_day(folder)
        if not rows:
            return
        total = sum(each.total() for each in rows.values())
        # A guess: rows differ in size. Another turn deletes what is too much still.
        part = 1.0 - size_bytes / taken_bytes
        _delete_surplus(folder, rows, max(round(total * part), 1))


def _taken_bytes(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for table in _TABLES
        for _, path in parquet_files(folder, table)
    )


def _rows_by_day(folder: Path) -> dict[str, Counter[int]]:
    """Return day -> owner -> number of rows."""
    import polars as pl  # noqa: PLC0415 - as above

    rows: dict[str, Counter[int]] = {}
    for day, path in parquet_files(folder, "runs"):
        runs = pl.scan_parquet(path).select("run", "user")
        counted = [runs]
        operations = folder / f"operations-{day}.parquet"
        if operations.exists():
            done = pl.scan_parquet(operations).select("run")
            counted.append(done.join(runs, on="run").select("run", "user"))
        users = pl.concat(counted).group_by("user").len().collect().rows()
        rows[day] = count_by_owner(users, owner_of)
    return rows


def _delete_surplus(
    folder: Path, rows: Mapping[str, Counter[int]], deleted: int
) -> None:
    """Delete whole days of the owners with most rows, the oldest ones first."""
    by_owner: Counter[int] = sum(rows.values(), Counter())
    left = surplus(by_owner, deleted)
    for day, of_day in sorted(rows.items()):
        chosen = {owner for owner in of_day if left.get(owner, 0) > 0}
        for owner in chosen:
            left[owner] -= of_day[owner]
        if chosen == of_day.keys():
            for table in _TABLES:
                (folder / f"{table}-{day}.parquet").unlink(missing_ok=True)
        elif chosen:
            _delete_owners(folder, day, chosen)


def _delete_owners(folder: Path, day: str, owners: Collection[int]) -> None:
    """Delete the rows of owners from the files of a day."""
    import polars as pl  # noqa: PLC0415 - as above

    paths = [folder / f"{table}-{day}.parquet" for table in _TABLES]
    runs = pl.read_parquet(paths[-1], columns=["run", "user"])
    kept = [run for run, user in runs.rows() if owner_of(user) not in owners]
    # Operations first: a run without its operations does no harm.
    for path in paths:
        if path.exists():
            frame = pl.scan_parquet(path).filter(pl.col("run").is_in(kept)).collect()
            _replace(path, frame)


def _main() -> None:
    """Move the closed days of the archive that the command line names."""
    folder, *numbers = sys.argv[1:]
    move_closed_days(Path(folder), *map(float, numbers))


if __name__ == "__main__":
    _main()
