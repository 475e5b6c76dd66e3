# SPDX-License-Identifier: MIT
"""Reads the archive: which jobs ran, and what they and others did meanwhile.

Instants are seconds since 1970, volumes bytes, rates bytes per second.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.errors import InputError
from penstock.live.archive.parquet import parquet_files, read_parquet
from penstock.live.archive.tables import (
    DATABASE,
    OPERATION_COLUMNS,
    RUN_COLUMNS,
    decode_grants,
)

__all__ = ["ArchiveReader", "ArchivedOperation", "ArchivedRun"]

_LOCK_S: Final = 2.0
_MS: Final = 1e3
_US: Final = 1e6


class ArchivedRun(NamedTuple):
    """A job, from joining the controller to leaving it."""

    file: str
    """Where it was found: "" for SQLite, else the day of the Parquet files."""
    number: int
    """Number of the run in this file."""
    job_key: str
    user: int
    storage: str
    nodes: int
    joined_s: float
    left_s: float | None
    """None: it is still there, or the controller ended before it."""
    release_s: float
    lost_s: float
    moved_bytes: float
    cap: float
    """Infinite if it had no limit."""
    policy: str

    @property
    def name(self) -> str:
        """The name that its user gave it."""
        return self.job_key.partition(":")[2]

    def progress_yield(self, now_s: float) -> float:
        """Return 1 - lost / age when it left, or now if it has not left."""
        end_s = now_s if self.left_s is None else self.left_s
        age_s = end_s - self.release_s
        return 1.0 - self.lost_s / age_s if age_s > 0.0 else 1.0


class ArchivedOperation(NamedTuple):
    """An operation of a run."""

    begin_s: float
    end_s: float
    moved_bytes: float
    held_up_s: float
    lost_s: float
    capacity: float
    """Bandwidth that all jobs shared; infinite if it was not known."""
    policy: str
    grants: list[tuple[float, float]]
    """Instants and rates."""


class ArchiveReader:
    """Reads an archive while a recorder may write it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
        found = [
            run
            for file, rows in self._all("runs", RUN_COLUMNS)
            for run in (_run(file, row) for row in rows)
            if run.joined_s <= until_s
            and (run.left_s is None or run.left_s >= since_s)
            and user in (None, run.user)
            and job in (None, run.job_key, run.name)
        ]
        return sorted(found, key=lambda run: (run.joined_s, run.job_key))

    def operations(
        self, runs: Sequence[ArchivedRun]
    ) -> dict[ArchivedRun, list[ArchivedOperation]]:
        """Return the operations of runs, in the order of their begin."""
        by_place = {(run.file, run.number): run for run in runs}
        found: dict[ArchivedRun, list[ArchivedOperation]] = {run: [] for run in runs}
        for file, rows in self._all("operations", OPERATION_COLUMNS, runs):
            for row in rows:
                run = by_place.get((file, row[0]))
                if run is not None:
                    found[run].append(_operation(row))
        for operations in found.values():
            operations.sort()
        return found

    def _all(
        self,
        table: str,
        columns: Sequence[str],
        runs: Sequence[ArchivedRun] | None = None,
    ) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
        """Yield the rows of a table from all files, or from those that hold `runs`."""
        files = {run.file for run in runs} if runs is not None else None
        for day, path in parquet_files(self.folder, table):
            if files is None or day in files:
                yield day, read_parquet(path, columns)
        if files is not None and "" not in files:
            return
        with self._database() as database:
            if database is None:
                return
            query = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - constants
            if runs is not None:
                # Only numbers: they need no quotes.
                numbers = ",".join(str(r.number) for r in runs if r.file == "")
                query += f" WHERE run IN ({numbers})"
            yield "", database.execute(query).fetchall()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection | None]:
        path = self.folder / DATABASE
        if not path.exists():
            yield None
            return
        try:
            database = sqlite3.connect(
                f"file:{path}?mode=ro", uri=True, timeout=_LOCK_S
            )
        except sqlite3.Error as error:
            raise _unreadable(path, error) from None
        try:
            yield database
        except sqlite3.Error as error:
            raise _unreadable(path, error) from None
        finally:
            database.close()


def _unreadable(path: Path, error: sqlite3.Error) -> InputError:
    return InputError(
        f"cannot be read: {error}", where=str(path), remedy="check the file"
    )


def _rate(whole: int) -> float:
    return float(whole) if whole else inf


def _run(file: str, row: Sequence[Any]) -> ArchivedRun:
    number, job, user, storage, nodes, joined, left, released, *rest = row
    lost, moved, cap, policy = rest
    return ArchivedRun(
        file,
        *(number, job, user, storage, nodes),
        joined / _MS,
        None if left is None else left / _MS,
        released / _MS,
        lost / _US,
        float(moved),
        _rate(cap),
        policy,
    )


def _operation(row: Sequence[Any]) -> ArchivedOperation:
    _, begin, length, moved, held_up, lost, capacity, policy, grants = row
    begin_s, end_s = begin / _MS, begin / _MS + length / _US
    return ArchivedOperation(
        *(begin_s, end_s, float(moved), held_up / _US, lost / _US),
        _rate(capacity),
        policy,
        decode_grants(grants, begin_s, end_s),
    )
