# SPDX-License-Identifier: MIT
"""What jobs have done, kept in SQLite so that a restarted controller knows it.

A name stands for one job as long as programs of this name follow one another: who comes
back within `_KEPT_S`, after a restart of the controller or as the next step of a job,
has its past again. Whoever was away for longer is over, and the next of its name begins
anew: else the time between the two would count as work, and their yield mean nothing.

Ages count on the wall clock, since the controller's own clock begins anew with the
machine. Whatever happens to the file (full disk, damaged, read-only), control goes on
without it: the trouble is logged once, and tried again with the next save.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.live.control.jobs import JobHistory

__all__ = ["History"]

_LOG: Final = logging.getLogger("penstock.history")
#: A job that was not seen for so long is over (s).
_KEPT_S: Final = 3600.0
_WAIT_S: Final = 1.0
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


#: seen and release (s, wall clock), lost (s), iterations, iteration_time (s)
_Row = tuple[float, float, float, int, float]


class History:
    """The pasts of jobs in a file, and in memory as long as the controller lives.

    Only `save` and `close` touch the file after the begin; both may be called in a
    thread of their own, one at a time.

    Parameters
    ----------
    now, wall
        The clock of the controller, and the wall clock (s).
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
        self._complaint = ""
        self._rows: dict[str, _Row] = {}
        self._try(self._load)

    def _load(self, database: sqlite3.Connection) -> None:
        self._rows = {job: tuple(row) for job, *row in database.execute(_LOAD)}

    def recall(self, job: str) -> JobHistory | None:
        """Return what a job had done when it was last saved, if it is known."""
        row = self._rows.get(job)
        if row is None or row[0] < self._wall() - _KEPT_S:
            return None
        _, release, lost, iterations, iteration_time = row
        now = self._now()
        release = min(release - self._offset(), now)
        # Clocks may have been set back: nobody loses more than its age.
        return JobHistory(release, min(lost, now - release), iterations, iteration_time)

    def save(self, pasts: Mapping[str, JobHistory]) -> None:
        """Keep what jobs have done."""
        seen, offset = self._wall(), self._offset()
        rows: dict[str, _Row] = {
            job: (seen, p.release + offset, p.lost, p.iterations, p.iteration_time)
            for job, p in pasts.items()
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
        return self._wall() - self._now()

    def _try(self, use: Callable[[sqlite3.Connection], None]) -> None:
        try:
            if self._database is None:
                self._database = _opened(self._path)
            use(self._database)
        except (sqlite3.Error, OSError, OverflowError) as error:
            self._complain(str(error))
            self.close()
            if getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT":
                self._set_aside()
        else:
            self._complaint = ""

    def _complain(self, complaint: str) -> None:
        if complaint != self._complaint:
            _LOG.warning(
                "%s: %s; control goes on, but after a restart jobs begin anew",
                self._path,
                complaint,
            )
        self._complaint = complaint

    def _set_aside(self) -> None:
        """Rename a damaged file, so that the next save makes a new one."""
        with suppress(OSError):
            self._path.replace(self._path.with_suffix(".damaged"))


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_WAIT_S, check_same_thread=False)
    try:
        path.chmod(0o600)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        with database:
            database.execute(_TABLE)
    except BaseException:
        database.close()
        raise
    return database


def _save(
    database: sqlite3.Connection, rows: Mapping[str, _Row], oldest: float
) -> None:
    with database:
        database.executemany(_SAVE, ((job, *row) for job, row in rows.items()))
        database.execute("DELETE FROM past WHERE seen < ?", (oldest,))
