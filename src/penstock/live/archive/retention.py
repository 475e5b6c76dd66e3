# SPDX-License-Identifier: MIT
"""Deletes from the archive what is too old or too much.

Ages count on the *clock of the archive*. It follows the wall clock, but in one cleaning
it moves forward by at most `_STEP_S`: a wall clock that is wrong for an hour deletes at
most a few days, and not the whole archive. It is kept in the database.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

from penstock.live.archive.tables import give_back_space

__all__ = ["Retention", "clean"]

#: How far the clock of the archive moves in one cleaning (s).
_STEP_S: Final = 86400.0
#: Part of the operations that is deleted when the file is too large.
_DELETED: Final = 0.1
_MS: Final = 1e3


@dataclass(frozen=True, slots=True)
class Retention:
    """How long and how much is kept."""

    age_s: float = 90 * 86400.0
    size_bytes: float = 1e9


def clean(database: sqlite3.Connection, kept: Retention, wall_s: float) -> float:
    """Delete what is too old, then the oldest operations if there are too many.

    Returns the instant before which everything is too old (seconds since 1970).
    """
    with database:
        oldest_s = _advance_clock(database, wall_s) - kept.age_s
        oldest_ms = round(oldest_s * _MS)
        database.execute("DELETE FROM operations WHERE begin_ms < ?", (oldest_ms,))
        if _size_bytes(database) > kept.size_bytes:
            database.execute(
                "DELETE FROM operations WHERE rowid < (SELECT min(rowid) + "
                "(max(rowid) - min(rowid) + 1) * ? FROM operations)",
                (_DELETED,),
            )
        database.execute("DELETE FROM runs WHERE left_ms < ?", (oldest_ms,))
        database.execute("DELETE FROM daemons WHERE seen_ms < ?", (oldest_ms,))
    give_back_space(database)
    return oldest_s


def _advance_clock(database: sqlite3.Connection, wall_s: float) -> float:
    """Move the clock of the archive towards the wall clock; return it (s)."""
    (known_ms,) = database.execute(
        # The clock of an archive that has none yet: its latest run.
        "SELECT coalesce((SELECT now_ms FROM clock), (SELECT max(joined_ms) FROM runs))"
    ).fetchone()
    now_s = wall_s
    if known_ms is not None:
        now_s = min(wall_s, known_ms / _MS + _STEP_S)
    database.execute(
        "INSERT OR REPLACE INTO clock (id, now_ms) VALUES (1, ?)",
        (round(now_s * _MS),),
    )
    return now_s


def _size_bytes(database: sqlite3.Connection) -> int:
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    (free,) = database.execute("PRAGMA freelist_count").fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)
