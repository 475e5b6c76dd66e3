# SPDX-License-Identifier: MIT
"""The tables of the archive, in SQLite and in Parquet.

The table ``runs`` has one row for each time that a job joined the controller, and the
table ``operations`` one row for each of its operations. Instants are milliseconds since
1970, durations microseconds, volumes bytes, rates bytes per second. Whole numbers take
less space than floating-point numbers: an operation takes about 80 bytes.

``grants`` is a sequence of pairs (16-bit part of the duration, 32-bit float rate).
``policies`` is empty if a run saw one policy, else a JSON list of pairs: instant and
policy from then on. ``missing`` says what of the run was not recorded (`JobRun`).
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterable
from contextlib import ExitStack
from math import inf, isfinite
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = [
    "DATABASE",
    "LOCK",
    "OLD_VALUES",
    "OPERATION_COLUMNS",
    "RUN_COLUMNS",
    "decode_grants",
    "encode_grants",
    "give_back_space",
    "open_database",
    "whole_rate",
]

#: Name of the SQLite file in the folder of the archive.
DATABASE: Final = "archive.sqlite"
#: The file that a recorder locks.
LOCK: Final = "archive.lock"
VERSION: Final = 5
#: Version -> what makes it the next version.
_CHANGES: Final = {
    1: "ALTER TABLE runs DROP COLUMN released_ms",
    2: "ALTER TABLE runs ADD COLUMN limit_rate INTEGER NOT NULL DEFAULT 0",
    3: "ALTER TABLE runs ADD COLUMN policies TEXT NOT NULL DEFAULT ''",
    4: "ALTER TABLE runs ADD COLUMN missing TEXT NOT NULL DEFAULT ''",
}
RUN_COLUMNS: Final = (
    *("run", "job", "user", "storage", "nodes", "joined_ms", "left_ms"),
    *("lost_us", "moved_bytes", "cap", "policy", "limit_rate", "policies"),
    "missing",
)
#: Column that files of older versions do not have -> its value there.
OLD_VALUES: Final[dict[str, int | str]] = {
    "limit_rate": 0,
    "policies": "",
    "missing": "",
}
OPERATION_COLUMNS: Final = (
    *("run", "begin_ms", "length_us", "moved_bytes", "held_up_us", "lost_us"),
    *("capacity", "policy", "grants"),
)
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS runs (run INTEGER PRIMARY KEY, job TEXT NOT NULL, "
    "user INTEGER NOT NULL, storage TEXT NOT NULL, nodes INTEGER NOT NULL, "
    "joined_ms INTEGER NOT NULL, left_ms INTEGER, lost_us INTEGER NOT NULL, "
    "moved_bytes INTEGER NOT NULL, cap INTEGER NOT NULL, policy TEXT NOT NULL, "
    "limit_rate INTEGER NOT NULL DEFAULT 0, "
    "policies TEXT NOT NULL DEFAULT '', "
    "missing TEXT NOT NULL DEFAULT '') STRICT",
    "CREATE TABLE IF NOT EXISTS operations (run INTEGER NOT NULL, "
    "begin_ms INTEGER NOT NULL, length_us INTEGER NOT NULL, "
    "moved_bytes INTEGER NOT NULL, held_up_us INTEGER NOT NULL, "
    "lost_us INTEGER NOT NULL, capacity INTEGER NOT NULL, policy TEXT NOT NULL, "
    "grants BLOB NOT NULL) STRICT",
    # The largest number of a run that was moved to Parquet: numbers are not used twice.
    "CREATE TABLE IF NOT EXISTS moved (id INTEGER PRIMARY KEY, run INTEGER NOT NULL) "
    "STRICT",
    # Against which ages count (`penstock.live.archive.retention`).
    "CREATE TABLE IF NOT EXISTS clock (id INTEGER PRIMARY KEY, "
    "now_ms INTEGER NOT NULL) STRICT",
    # When a daemon recorded here: from its begin to the last time that it was seen.
    "CREATE TABLE IF NOT EXISTS daemons (begin_ms INTEGER PRIMARY KEY, "
    "seen_ms INTEGER NOT NULL) STRICT",
    "CREATE INDEX IF NOT EXISTS operations_of_run ON operations (run)",
    "CREATE INDEX IF NOT EXISTS runs_of_job ON runs (job)",
)
_GRANT: Final = struct.Struct("<Hf")
_WHOLE: Final = 0xFFFF
#: Stands for a rate that has no limit or is not known.
_UNLIMITED: Final = 0
#: How long to wait for another writer, which moves days (s).
_LOCK_S: Final = 30.0
#: Pages of deleted rows that are given back at once: others may write in between.
_PAGES: Final = 1000


def encode_grants(
    grants: Iterable[tuple[float, float]], begin_s: float, end_s: float
) -> bytes:
    """Return the grants of an operation as bytes."""
    length = max(end_s - begin_s, 1e-9)
    return b"".join(
        _GRANT.pack(_part((instant - begin_s) / length), whole_rate(rate))
        for instant, rate in grants
        if instant < end_s
    )


def decode_grants(
    data: bytes, begin_s: float, end_s: float
) -> list[tuple[float, float]]:
    """Return instants and rates; a rate without limit is infinite."""
    length = end_s - begin_s
    return [
        (begin_s + length * part / _WHOLE, rate or inf)
        for part, rate in _GRANT.iter_unpack(data)
    ]


def _part(fraction: float) -> int:
    return round(min(max(fraction, 0.0), 1.0) * _WHOLE)


def whole_rate(rate: float) -> int:
    """Return a rate as a whole number of at least 1; 0 stands for no limit.

    A grant of 0 becomes 1 byte/s.
    """
    return round(max(rate, 1.0)) if isfinite(rate) else _UNLIMITED


def open_database(folder: Path) -> sqlite3.Connection:
    """Open the SQLite file of an archive; make it if it is not there.

    A file of an older version is changed to this version. Raises `InputError` for a
    file of a newer version.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / DATABASE
    with ExitStack() as stack:
        database = sqlite3.connect(path, timeout=_LOCK_S, check_same_thread=False)
        stack.callback(database.close)
        _check_version(database, path)
        path.chmod(0o600)
        # Before the first table: pages that become free are given back one by one.
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        with database:
            # A transaction: the version and the tables change together.
            database.execute("BEGIN IMMEDIATE")
            version = _check_version(database, path)
            changes = [_CHANGES[old] for old in range(version, VERSION) if version]
            for statement in (*changes, *_SCHEMA):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {VERSION}")
        # Everything succeeded: keep the connection open.
        stack.pop_all()
    return database


def _check_version(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of the file, 0 if it is new; refuse a newer one."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > VERSION:
        raise InputError(
            f"an archive of version {version}, and only versions up to {VERSION} are "
            "known",
            where=str(path),
            remedy="move it away, or use a newer penstock",
        )
    return int(version)


def give_back_space(database: sqlite3.Connection) -> None:
    """Give the space of deleted rows back to the file system.

    NOTE: `execute` would free one page only, because it takes a single step.
    """
    before = -1
    while (free := _free_pages(database)) not in (0, before):
        before = free
        database.executescript(f"PRAGMA incremental_vacuum({_PAGES})")


def _free_pages(database: sqlite3.Connection) -> int:
    (count,) = database.execute("PRAGMA freelist_count").fetchone()
    return int(count)
