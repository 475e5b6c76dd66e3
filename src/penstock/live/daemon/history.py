# SPDX-License-Identifier: MIT
"""Histories of jobs, saved in SQLite for the next start of the controller.

A job that comes back under the same key within `_SAME_RUN_S` continues its history.
After a longer time it begins a new run, with a yield of 1, but what was learnt of its
operations (volumes, length of an iteration, processes) still helps to predict and to
place it. That is kept for `kept_s`. No job comes back under the number that a batch
system has given it: what is saved under the number is kept for `_SAME_RUN_S` only.

Of each user the latest `_MOST_OF_USER` jobs are kept, of all users `_MOST_KEPT`; those
who have the most lose their oldest ones first. Jobs that are kept for `_SAME_RUN_S`
only are counted by themselves, so that they do not replace the others.

- It comes back while the controller runs (the next program of the same job): the time
  between counts as work.
- It comes back after a restart of the controller: nobody knows what it did meanwhile.
  The time since the last save is neither work nor loss: with age A and lost time L at
  that save, it continues at the instant t as if it had been released at t - A and lost
  L, so its yield 1 - L / A is the same as before.

The file holds ages, not instants: a wall clock that is set forwards or backwards
changes no yield. The wall clock only says which rows of the file are too old.

If the file cannot be used (full disk, damaged, read-only, of another version), control
goes on without it. The problem is logged once, and the next save tries again.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import InputError
from penstock.live.control.rates.jobs import JobHistory

__all__ = ["History"]

_LOG: Final = logging.getLogger("penstock.history")
#: A job that comes back within this time continues its run.
_SAME_RUN_S: Final = 3600.0
#: Most jobs that are kept, of all users and of one user.
_MOST_KEPT: Final = 10_000
_MOST_OF_USER: Final = 2_000
#: How long to wait for a lock on the file.
_LOCK_S: Final = 1.0
#: Version of the table; a file of another version is renamed.
_VERSION: Final = 6
#: seen (s, wall clock), age, lost, shown_lost and iteration_time (s), volumes (bytes,
#: JSON), processes (0: not counted), request (bytes, 0: not known), pause (s),
#: lasting (0 or 1).
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS past (
    job TEXT PRIMARY KEY,
    seen REAL NOT NULL,
    age REAL NOT NULL,
    lost REAL NOT NULL,
    iterations INTEGER NOT NULL,
    iteration_time REAL NOT NULL,
    volumes TEXT NOT NULL,
    shown_lost REAL NOT NULL,
    processes INTEGER NOT NULL,
    request REAL NOT NULL,
    pause REAL NOT NULL,
    lasting INTEGER NOT NULL
) STRICT, WITHOUT ROWID
"""
_SAVE: Final = f"INSERT OR REPLACE INTO past VALUES ({', '.join('?' * 12)})"  # noqa: S608
_LOAD: Final = (
    "SELECT job, seen, age, lost, iterations, iteration_time, volumes, shown_lost, "
    "processes, request, pause, lasting FROM past"
)


class _Entry(NamedTuple):
    """The history of a job, as of an instant of the controller's clock."""

    seen_s: float
    """When it was saved; before now if it was read from the file."""
    history: JobHistory
    from_file: bool
    """True if another controller saved it."""


class History:
    """Histories of jobs, in memory and in a file.

    After the constructor, only `save` and `close` use the file. They may run in another
    thread, one at a time.

    Parameters
    ----------
    now, wall
        The controller's clock and the wall clock (s).
    kept_s
        How long what was learnt of a job is kept.
    """

    def __init__(
        self,
        path: Path,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        kept_s: float = _SAME_RUN_S,
    ) -> None:
        self._path, self._kept_s = path, kept_s
        self._now, self._wall = now, wall
        self._database: sqlite3.Connection | None = None
        self._problem = ""
        self._entries: dict[str, _Entry] = {}
        self._try(self._load)

    def _load(self, database: sqlite3.Connection) -> None:
        now, wall = self._now(), self._wall()
        for row in list(database.execute(_LOAD)):
            (
                job,
                seen,
                age,
                lost,
                iterations,
                iteration_time,
                volumes,
                *rest,
                lasting,
            ) = row
            # The wall clock may have been set back since: nothing is from the future.
            seen_s = now - max(wall - seen, 0.0)
            past_bytes = tuple(map(float, json.loads(volumes)))
            history = JobHistory(
                seen_s - age, lost, iterations, iteration_time, past_bytes, *rest
            )
            history = replace(history, is_lasting=bool(lasting))
            self._entries[job] = _Entry(seen_s, history, from_file=True)

    def recall(self, job_key: str) -> JobHistory | None:
        """Return the saved history of a job; None if there is none or it is too old.

        After `_SAME_RUN_S`, it is that of a run that begins now.
        """
        entry = self._entries.get(job_key)
        now = self._now()
        if entry is None or not self._is_kept(entry, now):
            return None
        if entry.seen_s < now - _SAME_RUN_S:
            return entry.history.for_new_run(now)
        if not entry.from_file:
            return entry.history
        return replace(
            entry.history, release_s=entry.history.release_s + now - entry.seen_s
        )

    def save(self, histories: Mapping[str, JobHistory]) -> None:
        """Save the histories of jobs, by key."""
        now = self._now()
        new = {
            job_key: _Entry(now, history, from_file=False)
            for job_key, history in histories.items()
        }
        # New ones first: of equally late ones, they are kept.
        known = new | {job: e for job, e in self._entries.items() if job not in new}
        kept = [(job, e) for job, e in known.items() if self._is_kept(e, now)]
        self._entries = dict(
            each
            for is_lasting in (True, False)
            for each in _latest([k for k in kept if _is_lasting(k[1]) is is_lasting])
        )
        expired = known.keys() - self._entries.keys()
        if new:
            rows = [_row(job, entry, self._wall()) for job, entry in new.items()]
            self._try(lambda database: _save(database, rows, expired))

    def _is_kept(self, entry: _Entry, now: float) -> bool:
        lasting_s = self._kept_s if _is_lasting(entry) else _SAME_RUN_S
        return entry.seen_s >= now - max(lasting_s, _SAME_RUN_S)

    def close(self) -> None:
        """Close the file."""
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None

    def _try(self, use: Callable[[sqlite3.Connection], None]) -> None:
        """Use the file; log a problem instead of raising it."""
        try:
            if self._database is None:
                self._database = _open(self._path)
            use(self._database)
        except InputError as error:
            self._log_once(f"{error}; it is renamed")
            self._set_aside(".other-version")
        except (sqlite3.Error, OSError, OverflowError, ValueError, TypeError) as error:
            self._log_once(str(error))
            self.close()
            if getattr(error, "sqlite_errorname", "") == "SQLITE_CORRUPT":
                self._set_aside(".damaged")
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

    def _set_aside(self, suffix: str) -> None:
        """Rename a file that cannot be used; the next save creates a new one."""
        with suppress(OSError):
            self._path.replace(self._path.with_suffix(suffix))


def _is_lasting(entry: _Entry) -> bool:
    """Return True if an entry says something about a later run under its key."""
    return entry.history.is_lasting and entry.history.is_of_use


def _latest(entries: Sequence[tuple[str, _Entry]]) -> Iterable[tuple[str, _Entry]]:
    """Return the latest entries of each user, as far as there is a place for them."""
    if len(entries) <= _MOST_OF_USER:
        return entries
    counts: Counter[str] = Counter()
    ranked = []
    for key, entry in sorted(entries, key=lambda each: -each[1].seen_s):
        # A key begins with the number of the user: see `histories`.
        user = re.split("[:/]", key, maxsplit=1)[0]
        counts[user] += 1
        if counts[user] <= _MOST_OF_USER:
            ranked.append((counts[user], key, entry))
    # The latest entry of every user, then the last but one of every user, and so on.
    ranked.sort(key=lambda each: each[0])
    return [(key, entry) for _, key, entry in ranked[:_MOST_KEPT]]


def _open(path: Path) -> sqlite3.Connection:
    with ExitStack() as stack:
        database = sqlite3.connect(path, timeout=_LOCK_S, check_same_thread=False)
        stack.callback(database.close)
        _check_version(database)
        path.chmod(0o600)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        with database:
            database.execute(_TABLE)
            database.execute(f"PRAGMA user_version = {_VERSION}")
        # Everything succeeded: keep the connection open.
        stack.pop_all()
    return database


def _check_version(database: sqlite3.Connection) -> None:
    """Raise an error if the file is not a history of this version.

    `InputError`: it is one of another version. `ValueError`: it is none.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema")}
    if tables and "past" not in tables:
        raise ValueError("a database, but not a history of penstock")
    if tables and version != _VERSION:
        raise InputError(
            f"a history of version {version or 1}, not of version {_VERSION}"
        )


def _row(job: str, entry: _Entry, wall: float) -> tuple[str | float, ...]:
    history = entry.history
    return (
        job,
        wall,
        max(entry.seen_s - history.release_s, 0.0),
        history.lost_s,
        history.iterations,
        history.iteration_time_s,
        json.dumps(history.past_bytes),
        history.shown_lost_s,
        history.processes,
        history.round_bytes,
        history.pause_s,
        int(history.is_lasting),
    )


def _save(
    database: sqlite3.Connection,
    rows: Iterable[tuple[str | float, ...]],
    expired: Iterable[str],
) -> None:
    with database:
        database.executemany(_SAVE, rows)
        database.executemany("DELETE FROM past WHERE job = ?", ((k,) for k in expired))
