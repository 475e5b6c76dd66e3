# SPDX-License-Identifier: MIT
"""Writes what jobs did to the archive.

If the archive cannot be written (full disk, damaged, read-only), control goes on. The
problem is logged once, and the next write tries again; what happened in between is not
in the archive. A run that left in between ends with its last archived operation.

A folder has one recorder at a time: it locks the file `LOCK`. A second one would end
the runs of the first one and use its numbers.

Days that are over are moved to Parquet files by a process of their own (`parquet`),
beside which the recorder goes on.
"""

from __future__ import annotations

import fcntl
import json
import logging
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.archive.retention import Retention, clean
from penstock.live.archive.tables import (
    LOCK,
    OPERATION_COLUMNS,
    RUN_COLUMNS,
    encode_grants,
    open_database,
    whole_rate,
)
from penstock.live.control.past import CompletedOperation, JobRun
from penstock.live.ending import end_process

__all__ = ["ArchiveRecorder"]

_LOG: Final = logging.getLogger("penstock.archive")
#: How often old rows are looked for (s).
_CLEAN_S: Final = 600.0
_DAY_S: Final = 86400.0
#: How long the process that moves days may take to stop (s).
_STOP_S: Final = 10.0
_MS: Final = 1e3
_US: Final = 1e6
#: Largest number in the archive: well below 2^63, the largest one of SQLite.
_LARGEST: Final = 1e18

_PUT_RUN: Final = (
    f"INSERT OR REPLACE INTO runs ({', '.join(RUN_COLUMNS)}) "  # noqa: S608 - constants
    f"VALUES ({', '.join('?' * len(RUN_COLUMNS))})"
)
_ADD_OPERATION: Final = (
    f"INSERT INTO operations ({', '.join(OPERATION_COLUMNS)}) "  # noqa: S608
    f"VALUES ({', '.join('?' * len(OPERATION_COLUMNS))})"
)
_PUT_DAEMON: Final = "INSERT OR REPLACE INTO daemons (begin_ms, seen_ms) VALUES (?, ?)"
#: Two maxima, because the maximum of a union would read all rows.
_LARGEST_NUMBER: Final = (
    "SELECT max(coalesce((SELECT max(run) FROM runs), 0), "
    "coalesce((SELECT max(run) FROM moved), 0))"
)


class ArchiveRecorder:
    """Adds runs and operations to the archive. Only one thread at a time may use it.

    Parameters
    ----------
    now, wall
        The controller's clock and the wall clock (s).
    """

    def __init__(
        self,
        folder: Path,
        retention: Retention = Retention(),  # noqa: B008 - frozen
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._retention = retention
        self._now, self._wall = now, wall
        self._begun_ms = round(wall() * _MS)
        self._database: sqlite3.Connection | None = None
        self._problem = ""
        self._cleaned_s = -_CLEAN_S
        self._oldest_s = 0.0
        self._closed_day = -1
        self._mover: subprocess.Popen[bytes] | None = None
        self._locked = ExitStack()
        #: Job key and instant at which it joined -> number of its run.
        self._numbers: dict[tuple[str, float], int] = {}

    def add(
        self,
        operations: Sequence[tuple[JobRun, CompletedOperation]],
        runs: list[JobRun],
    ) -> None:
        """Add operations that have ended, with their jobs, and jobs that have left."""
        self._try(lambda database: self._add(database, operations, runs))
        # If this failed, the file is opened again, which ends runs without a number.
        for run in runs:
            self._numbers.pop((run.job_key, run.joined_s), None)

    def note_alive(self) -> None:
        """Note that a daemon records here now, unless there is no archive yet."""
        if self.folder.exists():
            self._try(self._note_alive)

    def _note_alive(self, database: sqlite3.Connection) -> None:
        with database:
            seen_ms = round(self._wall() * _MS)
            database.execute(_PUT_DAEMON, (self._begun_ms, seen_ms))

    def close_days(self) -> None:
        """Start the process that moves days that are over to Parquet files.

        The next call looks how it has ended. If it failed, the days stay in SQLite:
        nothing is lost.
        """
        today = int(self._wall() // _DAY_S)
        if today == self._closed_day or not self.folder.exists():
            self._look_at_mover()
            return
        self._stop_mover()
        self._closed_day = today
        module = "penstock.live.archive.parquet"
        command = [sys.executable, "-m", module, str(self.folder)]
        numbers = (self._wall(), self._oldest_s, self._retention.size_bytes)
        try:
            self._mover = subprocess.Popen(  # noqa: S603 - our own module
                [*command, *map(repr, numbers)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            _LOG.warning("%s: past days stay in SQLite: %s", self.folder, error)

    def _look_at_mover(self) -> None:
        """Log why the process that moves days has failed, if it has."""
        if self._mover is None or self._mover.poll() is None:
            return
        # It has ended and starts no processes: this waits for nothing.
        _, problem = self._mover.communicate()
        if self._mover.returncode:
            reason = problem.decode(errors="replace").strip().rpartition("\n")[2]
            _LOG.warning("%s: past days stay in SQLite: %s", self.folder, reason)
        self._mover = None

    def _stop_mover(self) -> None:
        """Stop the process that moves days; the next one continues.

        A process that is inside a system call of a file system that does not answer
        cannot be killed. It is abandoned.
        """
        if self._mover is None:
            return
        mover, self._mover = self._mover, None
        mover.terminate()
        with suppress(subprocess.TimeoutExpired):
            mover.communicate(timeout=_STOP_S)
            return
        if end_process(mover).is_abandoned:
            _LOG.warning("%s: process %d cannot be killed", self.folder, mover.pid)

    def close(self) -> None:
        """Close the file, and let others record in this folder."""
        self._stop_mover()
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None
        self._locked.close()

    def _add(
        self,
        database: sqlite3.Connection,
        operations: Sequence[tuple[JobRun, CompletedOperation]],
        runs: Sequence[JobRun],
    ) -> None:
        offset_s = self._wall() - self._now()
        with database:
            # Of the states of one run, the last one counts.
            latest = {(run.job_key, run.joined_s): run for run, _ in operations}
            latest |= {(run.job_key, run.joined_s): run for run in runs}
            for run in latest.values():
                database.execute(_PUT_RUN, self._run_row(database, run, offset_s))
            database.executemany(
                _ADD_OPERATION,
                (
                    self._operation_row(database, run, operation, offset_s)
                    for run, operation in operations
                ),
            )
        self._note_alive(database)
        if self._now() - self._cleaned_s >= _CLEAN_S:
            self._cleaned_s = self._now()
            self._oldest_s = clean(database, self._retention, self._wall())

    def _number(self, database: sqlite3.Connection, run: JobRun) -> int:
        key = (run.job_key, run.joined_s)
        if key not in self._numbers:
            (largest,) = database.execute(_LARGEST_NUMBER).fetchone()
            used = max(self._numbers.values(), default=0)
            self._numbers[key] = max(largest, used) + 1
        return self._numbers[key]

    def _run_row(
        self, database: sqlite3.Connection, run: JobRun, offset_s: float
    ) -> tuple[object, ...]:
        def instant(seconds: float) -> int:
            return round((seconds + offset_s) * _MS)

        return (
            self._number(database, run),
            *(run.job_key, run.user, run.storage, run.nodes),
            instant(run.joined_s),
            None if run.left_s is None else instant(run.left_s),
            *(_whole(run.lost_s * _US), _whole(run.moved_bytes)),
            *(whole_rate(run.cap), run.policy, whole_rate(run.limit)),
            json.dumps([(instant(at_s), name) for at_s, name in run.policies])
            if len(run.policies) > 1
            else "",
            run.missing,
        )

    def _operation_row(
        self,
        database: sqlite3.Connection,
        run: JobRun,
        operation: CompletedOperation,
        offset_s: float,
    ) -> tuple[object, ...]:
        begin_s, end_s = operation.begin_s, operation.end_s
        return (
            self._number(database, run),
            round((begin_s + offset_s) * _MS),
            _whole((end_s - begin_s) * _US),
            _whole(operation.moved_bytes),
            _whole(operation.held_up_s * _US),
            _whole(operation.lost_s * _US),
            whole_rate(operation.capacity),
            operation.policy,
            encode_grants(operation.grants, begin_s, end_s),
        )

    def _end_abandoned_runs(self, database: sqlite3.Connection) -> None:
        """End the runs of a controller that was killed: with their last operation."""
        known = ",".join(map(str, self._numbers.values()))
        with database:
            database.execute(
                "UPDATE runs SET left_ms = coalesce((SELECT max(begin_ms + length_us "  # noqa: S608 - numbers
                "/ 1000) FROM operations WHERE operations.run = runs.run), joined_ms)"
                ", missing = CASE missing WHEN 'begin' THEN 'both' ELSE 'end' END "
                f"WHERE left_ms IS NULL AND run NOT IN ({known})"
            )

    def _lock(self) -> None:
        """Lock the folder; raise `InputError` if another recorder has locked it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with ExitStack() as stack:
            file = stack.enter_context((self.folder / LOCK).open("ab"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    "another controller archives in this folder",
                    remedy="give each its own folder: setting `archive`",
                ) from None
            self._locked = stack.pop_all()

    def _try(self, use: Callable[[sqlite3.Connection], None]) -> None:
        """Use the file; log a problem instead of raising it."""
        try:
            if self._database is None:
                self._lock()
                self._database = open_database(self.folder)
                self._end_abandoned_runs(self._database)
            use(self._database)
        except (sqlite3.Error, OSError, OverflowError, InputError) as error:
            if str(error) != self._problem:
                _LOG.warning(
                    "%s: %s; control goes on, but what jobs do is not archived",
                    self.folder,
                    error,
                )
            self._problem = str(error)
            self.close()
        else:
            self._problem = ""


def _whole(value: float) -> int:
    """Return a number that a column can hold.

    Nodes report these numbers. A false one must not keep the operations of other jobs,
    which are written with it, out of the archive.
    """
    return round(min(max(value, -_LARGEST), _LARGEST))
