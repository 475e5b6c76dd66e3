# SPDX-License-Identifier: MIT
"""Reads the archive: which jobs ran, and what they and others did meanwhile.

Instants are seconds since 1970, volumes bytes, rates bytes per second.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError
from penstock.live.archive.parquet import day_name, parquet_files, read_parquet
from penstock.live.archive.tables import (
    DATABASE,
    OPERATION_COLUMNS,
    RUN_COLUMNS,
    decode_grants,
)
from penstock.live.control.past import CompletedOperation, JobRun

__all__ = ["ArchiveReader", "ArchivedRun"]

_LOCK_S: Final = 2.0
_MS: Final = 1e3
_US: Final = 1e6


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
    ) -> list[ArchivedRun]:
        """Return the runs that were there between two instants, oldest first.

        Parameters
        ----------
        user
            Only runs of this user; None: of all users.
        job
            Only runs of jobs with this name or key.
        """
        where = _run_condition(user, job, since_s, until_s)
        found: dict[tuple[str, float], ArchivedRun] = {}
        # A run may be moved from SQLite to Parquet meanwhile: it is then in both.
        for row in self._sqlite_rows("runs", RUN_COLUMNS, where):
            run = _run("", row)
            found[run.job_key, run.joined_s] = run
        for day, path in parquet_files(self.folder, "runs"):
            # The runs in this file left on this day.
            if day >= day_name(since_s):
                for row in _parquet_rows(path, RUN_COLUMNS, where):
                    run = _run(day, row)
                    found.setdefault((run.job_key, run.joined_s), run)
        return sorted(found.values(), key=lambda run: (run.joined_s, run.job_key))

    def operations(
        self,
        runs: Sequence[ArchivedRun],
        *,
        since_s: float = 0.0,
        until_s: float = inf,
    ) -> dict[ArchivedRun, list[CompletedOperation]]:
        """Return the operations of runs between two instants, by their begin."""
        found: dict[ArchivedRun, list[CompletedOperation]] = {run: [] for run in runs}
        time_condition = _time_condition(
            "begin_ms", "begin_ms + length_us / 1000", since_s, until_s
        )
        files: defaultdict[str, dict[int, ArchivedRun]] = defaultdict(dict)
        for run in runs:
            files[run.file][run.number] = run
        live = files.pop("", {})
        self._add_operations(found, "", live, time_condition)
        for number, run in live.items():
            # A run may have been moved to Parquet after it was found.
            if not found[run] and run.left_s is not None:
                files[day_name(run.left_s)].setdefault(number, run)
        for day, numbered in sorted(files.items()):
            self._add_operations(found, day, numbered, time_condition)
        for operations in found.values():
            operations.sort()
        return found

    def _add_operations(
        self,
        found: dict[ArchivedRun, list[CompletedOperation]],
        file: str,
        runs: Mapping[int, ArchivedRun],
        time_condition: str,
    ) -> None:
        """Add the operations of the numbered runs of one file."""
        if not runs:
            return
        # Only numbers: they need no quotes.
        where = f"run IN ({','.join(map(str, runs))}) AND {time_condition}"
        path = self.folder / f"operations-{file}.parquet"
        rows = (
            _parquet_rows(path, OPERATION_COLUMNS, where)
            if file
            else self._sqlite_rows("operations", OPERATION_COLUMNS, where)
        )
        for row in rows:
            found[runs[row[0]]].append(_operation(row))

    def _sqlite_rows(
        self, table: str, columns: Sequence[str], where: str
    ) -> list[tuple[Any, ...]]:
        with self._database() as database:
            if database is None:
                return []
            # A file of an older version has no limits; 0 stands for none.
            info = database.execute(f"PRAGMA table_info({table})")
            known = {name for _, name, *_ in info}
            selected = [name if name in known else "0" for name in columns]
            query = f"SELECT {', '.join(selected)} FROM {table} WHERE {where}"  # noqa: S608 - constants and quoted text
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


def _parquet_rows(
    path: Path, columns: Sequence[str], where: str
) -> list[tuple[Any, ...]]:
    """Return the rows of a file; none if it is gone, because it was too old."""
    if not path.exists():
        return []
    from polars.exceptions import PolarsError  # noqa: PLC0415 - slow to import

    try:
        return read_parquet(path, columns, where)
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
    lost, moved, cap, policy, limit = rest
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
