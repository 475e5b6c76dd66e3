# SPDX-License-Identifier: MIT
"""Histories of jobs, saved in SQLite for the next start of the controller.

A job that comes back under the same key within `_KEPT_S` continues its history: after a
restart of the controller, or as the next program of the same job. After a longer time
it begins a new history; otherwise the time between would count as work and its yield
would mean nothing.

The file stores instants of the wall clock, since the controller's monotonic clock
starts again with the machine. If the file cannot be used (full disk, damaged,
read-only), control goes on without it. The problem is logged once, and the next save
tries again.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from penstock.live.control.jobs import JobHistory

__all__ = ["History"]

_LOG: Final = logging.getLogger("penstock.history")
#: How long the history of a job that has left is kept.
_KEPT_S: Final = 3600.0
#: How long to wait for a lock on the file.
_LOCK_S: Final = 1.0
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS past (
    job TEXT PRIMARY KEY,
    seen REAL NOT NULL,
    release REAL NOT NULL,
    lost REAL NOT NULL,
    iterations INTEGER NOT NULL,
    iteration_time REAL NOT NULL
) STRICT, WITHOUT ROWID
"""
_SAVE: Final = "INSERT OR REPLACE INTO past VALUES (?, ?, ?, ?, ?, ?)"
_LOAD: Final = "SELECT job, seen, release, lost, iterations, iteration_time FROM past"

#: seen and release (s, wall clock), lost (s), iterations, iteration_time (s).
_Row = tuple[float, float, float, int, float]


class History:
    """Histories of jobs, in memory and in a file.

    After the constructor, only `save` and `close` use the file. They may run in another
    thread, one at a time.

    Parameters
    ----------
    now, wall
        The controller's clock and the wall clock (s).
    """

    def __init__(
        self,
        path: Path,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._now, self._wall = now, wall
        self._database: sqlite3.Connection | None = None
        self._problem = ""
        self._rows: dict[str, _Row] = {}
        self._try(self._load)

    def _load(self, database: sqlite3.Connection) -> None:
        self._rows = {job: tuple(row) for job, *row in database.execute(_LOAD)}

    def recall(self, job_key: str) -> JobHistory | None:
        """Return the saved history of a job; None if there is none or it is too old."""
        row = self._rows.get(job_key)
        if row is None or row[0] < self._wall() - _KEPT_S:
            return None
        _, release, lost, iterations, iteration_time = row
        now = self._now()
        release = min(release - self._offset(), now)
        # The wall clock may have been set back: no job loses more than its age.
        return JobHistory(release, min(lost, now - release), iterations, iteration_time)

    def save(self, histories: Mapping[str, JobHistory]) -> None:
        """Save the histories of jobs, by key."""
        seen, offset = self._wall(), self._offset()
        rows: dict[str, _Row] = {
            job_key: (
                seen,
                history.release_s + offset,
                history.lost_s,
                history.iterations,
                history.iteration_time_s,
            )
            for job_key, history in histories.items()
        }
        oldest = seen - _KEPT_S
        known = self._rows | rows
        self._rows = {job: row for job, row in known.items() if row[0] >= oldest}
        if rows:
            self._try(lambda database: _save(database, rows, oldest))

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def _offset(self) -> float:
        """Return the wall clock minus the controller's clock (s)."""
        return self._wall() - self._now()

    def _try(self, use: Callable[[sqlite3.Connection], None]) -> None:
        """Use the file; log a problem instead of raising it."""
        try:
            if self._database is None:
                self._database = _open(self._path)
            use(self._database)
        except (sqlite3.Error, OSError, OverflowError) as error:
            self._log_once(str(error))
            self.close()
            if getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT":
                self._set_aside()
        else:
            self._problem = ""

    def _log_once(self, problem: str) -> None:
        if problem != self._problem:
            _LOG.warning(
                "%s: %s; control goes on, but a restart would lose the jobs' histories",
                self._path,
                problem,
            )
        self._problem = problem

    def _set_aside(self) -> None:
        """Rename a damaged file; the next save creates a new one."""
        with suppress(OSError):
            self._path.replace(self._path.with_suffix(".damaged"))


def _open(path: Path) -> sqlite3.Connection:
    with ExitStack() as stack:
        database = sqlite3.connect(path, timeout=_LOCK_S, check_same_thread=False)
        stack.callback(database.close)
        path.chmod(0o600)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        with database:
            database.execute(_TABLE)
        # Everything succeeded: keep the connection open.
        stack.pop_all()
    return database


def _save(
    database: sqlite3.Connection, rows: Mapping[str, _Row], oldest: float
) -> None:
    with database:
        database.executemany(_SAVE, ((job, *row) for job, row in rows.items()))
        database.execute("DELETE FROM past WHERE seen < ?", (oldest,))
