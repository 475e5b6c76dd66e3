# SPDX-License-Identifier: MIT
"""Deletes from the archive what is too old or too much.

What is too much is taken from the user who has most: a user with many small jobs does
not push out what others did. User ids of containers count as their owner (`owner_of`).

Ages count on the *clock of the archive*. It follows the wall clock, but in one cleaning
it moves forward by at most `_STEP_S`: a wall clock that is wrong for an hour deletes at
most a few days, and not the whole archive. It is kept in the database.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from penstock.live.archive.tables import give_back_space
from penstock.live.wire.subordinates import owner_of

__all__ = ["Retention", "clean", "count_by_owner", "surplus"]

#: How far the clock of the archive moves in one cleaning (s).
_STEP_S: Final = 86400.0
#: Part of all rows that is deleted when the file is too large.
_DELETED: Final = 0.1
_MS: Final = 1e3
#: Users and their rows that can be deleted: operations, and runs that have ended.
_ROWS_BY_USER: Final = (
    "SELECT user, sum(number) FROM (SELECT runs.user AS user, count(*) AS number "
    "FROM operations JOIN runs ON runs.run = operations.run GROUP BY runs.user "
    "UNION ALL SELECT user, count(*) FROM runs WHERE left_ms IS NOT NULL "
    "GROUP BY user) GROUP BY user"
)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long and how much is kept."""

    age_s: float = 90 * 86400.0
    size_bytes: float = 1e9


def clean(
    database: sqlite3.Connection,
    kept: Retention,
    wall_s: float,
    owner_of: Callable[[int], int] = owner_of,
) -> float:
    """Delete what is too old, then the oldest rows of who has most if it is too much.

    Returns the instant before which everything is too old (seconds since 1970).
    """
    with database:
        oldest_s = _advance_clock(database, wall_s) - kept.age_s
        oldest_ms = round(oldest_s * _MS)
        database.execute("DELETE FROM operations WHERE begin_ms < ?", (oldest_ms,))
        database.execute("DELETE FROM runs WHERE left_ms < ?", (oldest_ms,))
        database.execute("DELETE FROM daemons WHERE seen_ms < ?", (oldest_ms,))
        if _size_bytes(database) > kept.size_bytes:
            _delete_surplus(database, owner_of)
    give_back_space(database)
    return oldest_s


def count_by_owner(
    users: Iterable[tuple[int, int]], owner_of: Callable[[int], int]
) -> Counter[int]:
    """Return the numbers of rows by owner, from pairs of a user and a number."""
    rows: Counter[int] = Counter()
    for user, number in users:
        rows[owner_of(user)] += number
    return rows


def surplus(rows: Mapping[int, int], deleted: int) -> dict[int, int]:
    """Return how many rows of which owners to delete, if that is `deleted` in all.

    Those with most rows lose theirs until they have as many as the next ones.
    """
    level, counts = 0, sorted(rows.values(), reverse=True)
    for number, below in enumerate([*counts[1:], 0], start=1):
        level = max((sum(counts[:number]) - deleted) // number, 0)
        if level >= below:
            break
    return {owner: rows[owner] - level for owner in rows if rows[owner] > level}


def _delete_surplus(
    database: sqlite3.Connection, owner_of: Callable[[int], int]
) -> None:
    """Delete a part of all rows: the oldest ones of the owners with most of them."""
    users = dict(database.execute(_ROWS_BY_USER).fetchall())
    rows = count_by_owner(users.items(), owner_of)
    for owner, number in surplus(rows, round(rows.total() * _DELETED)).items():
        _delete_oldest(
            database, [user for user in users if owner_of(user) == owner], number
        )


def _delete_oldest(
    database: sqlite3.Connection, users: Sequence[int], number: int
) -> None:
    """Delete the oldest rows of users: operations, and runs that have ended."""
    chosen = f"SELECT run FROM runs WHERE user IN ({','.join(map(str, users))})"  # noqa: S608 - numbers
    ended = f"run IN ({chosen}) AND left_ms IS NOT NULL"
    (until_ms,) = database.execute(
        f"SELECT max(at_ms) FROM (SELECT begin_ms AS at_ms FROM operations WHERE "  # noqa: S608
        f"run IN ({chosen}) UNION ALL SELECT left_ms FROM runs WHERE {ended} "
        "ORDER BY at_ms LIMIT ?)",
        (number,),
    ).fetchone()
    database.execute(
        f"DELETE FROM operations WHERE begin_ms <= ? AND run IN ({chosen})",  # noqa: S608
        (until_ms,),
    )
    database.execute(f"DELETE FROM runs WHERE left_ms <= ? AND {ended}", (until_ms,))  # noqa: S608


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
