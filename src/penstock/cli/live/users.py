# SPDX-License-Identifier: MIT
"""Names of users in what live commands print and in the jobs that they are given.

Daemons know users by their numbers, and never wait for a user database. Commands ask
the database of the machine where they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from penstock.live.wire.identity import user_id, user_name

__all__ = ["job_argument", "job_labels", "job_words", "user_words", "with_users"]


@cache
def user_words(user: int) -> str:
    """Return the name of a user, or the number if the user has no name here."""
    return user_name(user) or str(user)


def with_users(
    rows: Sequence[Sequence[str]], users: Sequence[int]
) -> Sequence[Sequence[str]]:
    """Return a table with a second column of users, if its jobs have several users.

    The first row is the header, every other row belongs to a job; `users` are theirs.
    """
    if len({*users}) < 2:
        return rows
    column = ["user", *map(user_words, users)]
    return [[row[0], cell, *row[1:]] for row, cell in zip(rows, column, strict=True)]


def job_words(job_key: str) -> str:
    """Return a job key, UID:NAME, as USER:NAME."""
    user, _, job_name = job_key.partition(":")
    return f"{user_words(int(user))}:{job_name}"


def job_labels(job_keys: Iterable[str]) -> Callable[[str], str]:
    """Return a function that names jobs by their keys, in texts about `job_keys`.

    It returns NAME, or USER:NAME if jobs of several users have this name.
    """
    from penstock.live.control.names import JobNames

    names = JobNames(job_keys)
    return lambda job_key: names.shown(job_key, job_words)


def job_argument(text: str) -> str:
    """Return the name or key of a job that a user writes as NAME or USER:NAME.

    A job whose own name begins with the name of a user and a colon is reached as
    NUMBER:NAME only, so that no user can give a job the key of another user's job.
    """
    word, colon, job_name = text.partition(":")
    user = user_id(word) if colon and word else None
    return text if user is None or not job_name else f"{user}:{job_name}"
