# SPDX-License-Identifier: MIT
"""Reads the archive: which jobs ran, and what they and others did meanwhile.

Instants are seconds since 1970, volumes bytes, rates bytes per second.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError
from penstock.live.archive.parquet import (
    count_in_parquet,
    day_begin_s,
    day_name,
    parquet_files,
    read_parquet,
)
from penstock.live.archive.tables import (
    DATABASE,
    OLD_VALUES,
    OPERATION_COLUMNS,
    RUN_COLUMNS,
    decode_grants,
)
from penstock.live.control.past import CompletedOperation, JobRun

__all__ = ["MOST_RUNS", "ArchiveReader", "ArchivedRun"]

#: Most runs whose operations one question is about: SQLite refuses longer conditions.
MOST_RUNS: Final = 50_000

_LOCK_S: Final = 2.0
#: How long ago the present daemon may have been seen (s).
_SEEN_S: Final = 30.0
_MS: Final = 1e3
_US: Final = 1e6
#: Column, and how many rows with the largest values there; None: all rows.
_Latest = tuple[str, int] | None


class ArchivedRun(JobRun, frozen=True, kw_only=True):
    """A run, and where it is in the archive."""

    file: str
    """"" for SQLite, else the day of the Parquet files."""
    number: int
    """Number of the run in this file."""


class ArchiveReader:
    """Reads an archive while a recorder may write it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def exists(self) -> bool:
        """Return True if there is an archive in the folder."""
        return (self.folder / DATABASE).exists() or any(
            parquet_files(self.folder, "runs")
        )

    def runs(
        self,
        *,
        user: int | None = None,
        job: str | None = None,
        since_s: float = 0.0,
        until_s: float = inf,
        newest: int | None = None,
    ) -> list[ArchivedRun]:
        """Return the runs that were there between two instants, oldest first.

        Parameters
        ----------
        user
            Only runs of this user; None: of all users.
        job
            Only runs of jobs with this name or key.
        newest
            Only so many runs, those that joined last; None: all.
        """
        where = _run_condition(user, job, since_s, until_s)
        latest = None if newest is None else ("joined_ms", newest)
        found: dict[tuple[str, float], ArchivedRun] = {}
        # A run may be moved from SQLite to Parquet meanwhile: it is then in both.
        for row in self._sqlite_rows("runs", RUN_COLUMNS, where, latest):
            run = _run("", row)
            found[run.job_key, run.joined_s] = run
        for day, path in parquet_files(self.folder, "runs"):
            # The runs in this file left on this day.
            if day >= day_name(since_s):
                for row in _parquet_rows(path, RUN_COLUMNS, where, latest):
                    run = _run(day, row)
                    found.setdefault((run.job_key, run.joined_s), run)
        runs = sorted(found.values(), key=lambda run: (run.joined_s, run.job_key))
        return runs if newest is None else runs[max(len(runs) - newest, 0) :]

    def operations(
        self,
        runs: Sequence[ArchivedRun],
        *,
        since_s: float = 0.0,
        until_s: float = inf,
        newest: int | None = None,
    ) -> dict[ArchivedRun, list[CompletedOperation]]:
        """Return the operations of runs between two instants, by their begin.

        Parameters
        ----------
        newest
            Only so many operations of all runs, those that began last; None: all.
        """
        latest = None if newest is None else ("begin_ms", newest)
        pairs: list[tuple[CompletedOperation, ArchivedRun]] = []
        for numbered, rows in self._operation_rows(
            runs, OPERATION_COLUMNS, (since_s, until_s), latest
        ):
            pairs += [(_operation(row), numbered[row[0]]) for row in rows]
            if newest is not None and len(pairs) > newest:
                # Each file has its own newest ones.
                pairs = nlargest(newest, pairs, key=itemgetter(0))
        found: dict[ArchivedRun, list[CompletedOperation]] = {run: [] for run in runs}
        for operation, run in pairs:
            found[run].append(operation)
        for operations in found.values():
            operations.sort()
        return found

    def operation_count(
        self, runs: Sequence[ArchivedRun], *, since_s: float = 0.0, until_s: float = inf
    ) -> int:
        """Return the number of operations of runs between two instants."""
        times_s = since_s, until_s
        counted = self._operation_rows(runs, None, times_s, None)
        return sum(row[1] for _, rows in counted for row in rows)

    def operations_at_most(
        self, most: int, since_s: float, until_s: float, user: int | None = None
    ) -> dict[ArchivedRun, list[CompletedOperation]]:
        """Return all operations between two instants, of one user or of all.

        They are counted before they are read: reading takes about 700 bytes of memory
        for each one.

        Raises
        ------
        InputError
            If there are more than `most` operations, or `MOST_RUNS` jobs.
        """
        runs = self.runs(
            user=user, since_s=since_s, until_s=until_s, newest=MOST_RUNS + 1
        )
        _check_number(len(runs), MOST_RUNS, "jobs")
        count = self.operation_count(runs, since_s=since_s, until_s=until_s)
        _check_number(count, most, "operations")
        return self.operations(runs, since_s=since_s, until_s=until_s)

    def unrecorded(self, since_s: float, until_s: float) -> list[tuple[float, float]]:
        """Return the times between two instants in which no daemon recorded.

        The present daemon was seen a moment ago, at most `_SEEN_S`. Archives of older
        versions do not say when a daemon recorded: from their first run on, one did.
        """
        with self._database() as database:
            if database is None:
                return [(since_s, until_s)]
            served = _served_ms(database)
        days = [day for day, _ in parquet_files(self.folder, "runs")]
        if days and served:
            # The runs of the first day may have begun long before.
            served[0] = (min(served[0][0], day_begin_s(days[0]) * _MS), served[0][1])
        if served:
            served[-1] = (served[-1][0], served[-1][1] + _SEEN_S * _MS)
        gaps, known_s = [], since_s
        for begin_ms, end_ms in served:
            if begin_ms / _MS > known_s:
                gaps.append((known_s, min(begin_ms / _MS, until_s)))
            known_s = max(known_s, end_ms / _MS)
            if known_s >= until_s:
                break
        if known_s < until_s:
            gaps.append((known_s, until_s))
        return [(begin_s, end_s) for begin_s, end_s in gaps if begin_s < end_s]

    def _operation_rows(
        self,
        runs: Sequence[ArchivedRun],
        columns: Sequence[str] | None,
        times_s: tuple[float, float],
        latest: _Latest,
    ) -> Iterator[tuple[Mapping[int, ArchivedRun], list[tuple[Any, ...]]]]:
        """Yield the runs of each file by their numbers, and rows of their operations.

        The first column is the number of the run. Without `columns`, the second one is
        the number of operations of the run.
        """
        files: defaultdict[str, dict[int, ArchivedRun]] = defaultdict(dict)
        for run in runs:
            files[run.file][run.number] = run
        live = files.pop("", {})
        where = _operation_condition(live, times_s)
        rows = self._sqlite_rows("operations", columns, where, latest) if live else []
        yield live, rows
        with_rows = {row[0] for row in rows}
        for number, run in live.items():
            # A run may have been moved to Parquet after it was found.
            if number not in with_rows and run.left_s is not None:
                files[day_name(run.left_s)].setdefault(number, run)
        for day, numbered in sorted(files.items()):
            where = _operation_condition(numbered, times_s)
            path = self.folder / f"operations-{day}.parquet"
            yield numbered, _parquet_rows(path, columns, where, latest)

    def _sqlite_rows(
        self,
        table: str,
        columns: Sequence[str] | None,
        where: str,
        latest: _Latest,
    ) -> list[tuple[Any, ...]]:
        """Return rows of a table; without `columns`, their number for each run."""
        with self._database() as database:
            if database is None:
                return []
            if columns is None:
                query = f"SELECT run, count(*) FROM {table} WHERE {where} GROUP BY run"  # noqa: S608 - constants and quoted text
                return database.execute(query).fetchall()
            info = database.execute(f"PRAGMA table_info({table})")
            known = {name for _, name, *_ in info}
            selected = [c if c in known else f"{OLD_VALUES[c]!r}" for c in columns]
            query = f"SELECT {', '.join(selected)} FROM {table} WHERE {where}"  # noqa: S608 - constants and quoted text
            if latest is not None:
                query += f" ORDER BY {latest[0]} DESC LIMIT {latest[1]}"
            return database.execute(query).fetchall()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection | None]:
        path = self.folder / DATABASE
        if not path.exists():
            yield None
            return
        try:
            address = f"{path.absolute().as_uri()}?mode=ro"
            database = sqlite3.connect(address, uri=True, timeout=_LOCK_S)
        except sqlite3.Error as error:
            raise _unreadable(path, error) from None
        try:
            # A function of Polars' SQL: the same conditions select in Parquet files.
            database.create_function(
                "strpos", 2, lambda text, part: text.find(part) + 1
            )
            yield database
        except sqlite3.Error as error:
            raise _unreadable(path, error) from None
        finally:
            database.close()


def _served_ms(database: sqlite3.Connection) -> list[tuple[float, float]]:
    """Return begins and ends of the times in which a daemon recorded, in order."""
    (first_ms,) = database.execute("SELECT min(joined_ms) FROM runs").fetchone()
    found = database.execute("SELECT name FROM sqlite_schema WHERE name = 'daemons'")
    rows: list[tuple[float, float]] = []
    if found.fetchone():
        query = "SELECT begin_ms, seen_ms FROM daemons ORDER BY begin_ms"
        rows = database.execute(query).fetchall()
    if first_ms is None or (rows and rows[0][0] <= first_ms):
        return rows
    # Runs of before: an archive of an older version.
    end_ms = rows[0][0] if rows else inf
    return [(first_ms, end_ms), *rows]


def _parquet_rows(
    path: Path, columns: Sequence[str] | None, where: str, latest: _Latest
) -> list[tuple[Any, ...]]:
    """Return the rows of a file; none if it is gone, because it was too old."""
    if not path.exists():
        return []
    from polars.exceptions import PolarsError  # noqa: PLC0415 - slow to import

    try:
        if columns is None:
            return count_in_parquet(path, where)
        return read_parquet(path, columns, where, latest)
    except (PolarsError, OSError) as error:
        raise _unreadable(path, error) from None


def _run_condition(
    user: int | None, job: str | None, since_s: float, until_s: float
) -> str:
    """Return the condition in SQL of `ArchiveReader.runs`."""
    conditions = [_time_condition("joined_ms", "left_ms", since_s, until_s)]
    if user is not None:
        # Quoted, because `user` without quotes is a function in Polars' SQL.
        conditions.append(f'"user" = {user}')
    if job is not None:
        text = job.replace("'", "''")
        name = "substr(job, strpos(job, ':') + 1)"
        conditions.append(f"(job = '{text}' OR {name} = '{text}')")
    return " AND ".join(conditions)


def _operation_condition(numbers: Iterable[int], times_s: tuple[float, float]) -> str:
    """Return the condition in SQL: operations of these runs between two instants."""
    end = "begin_ms + length_us / 1000"
    # Only numbers: they need no quotes.
    of_runs = f"run IN ({','.join(map(str, numbers))})"
    return f"{of_runs} AND {_time_condition('begin_ms', end, *times_s)}"


def _check_number(number: int, most: int, noun: str) -> None:
    if number > most:
        raise InputError(
            f"there are more than {most} {noun} in this time",
            remedy="look at a shorter time",
        )


def _time_condition(begin: str, end: str, since_s: float, until_s: float) -> str:
    """Return the condition in SQL that an interval overlaps another one."""
    conditions = [f"({end} IS NULL OR {end} >= {round(since_s * _MS)})"]
    if until_s < inf:
        conditions.append(f"{begin} <= {round(until_s * _MS)}")
    return " AND ".join(conditions)


def _unreadable(path: Path, error: Exception) -> InputError:
    return InputError(
        f"cannot be read: {error}", where=str(path), remedy="check the file"
    )


def _rate(whole: int) -> float:
    return float(whole) if whole else inf


def _run(file: str, row: Sequence[Any]) -> ArchivedRun:
    number, job, user, storage, nodes, joined, left, *rest = row
    lost, moved, cap, policy, limit, policies, missing = rest
    return ArchivedRun(
        file=file,
        number=number,
        job_key=job,
        user=user,
        storage=storage,
        nodes=nodes,
        joined_s=joined / _MS,
        left_s=None if left is None else left / _MS,
        lost_s=lost / _US,
        moved_bytes=float(moved),
        cap=_rate(cap),
        policy=policy,
        limit=_rate(limit),
        policies=tuple((ms / _MS, name) for ms, name in json.loads(policies or "[]")),
        missing=missing,
    )


def _operation(row: Sequence[Any]) -> CompletedOperation:
    _, begin, length, moved, held_up, lost, capacity, policy, grants = row
    begin_s, end_s = begin / _MS, begin / _MS + length / _US
    return CompletedOperation(
        *(begin_s, end_s, float(moved), held_up / _US, lost / _US),
        _rate(capacity),
        policy,
        tuple(decode_grants(grants, begin_s, end_s)),
    )
