# SPDX-License-Identifier: MIT
"""User ids that belong to another user: ``/etc/subuid``.

Containers of a user run under such ids, often 65,536 of them. Each looks like a user to
the kernel, so that one person could have as many budgets. An id that the user database
(``passwd``) knows is a person: ranges and ids of other sources, e.g. LDAP, may overlap.

The user database may be a server that does not answer, and event loops ask for owners.
So they wait for it for `_ANSWER_S` at most, and not at all while an earlier question is
not answered. An id of which nothing is known in time belongs to the owner of its range.
"""

from __future__ import annotations

import logging
from bisect import bisect
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from penstock.live.wire.identity import is_operator, user_id, user_name
from penstock.live.worker import Worker

__all__ = ["SubordinateUsers", "owner_of"]

_LOG: Final = logging.getLogger("penstock.users")
_FILE: Final = Path("/etc/subuid")
#: How long to wait for the user database (s).
_ANSWER_S: Final = 0.1


class _Range(NamedTuple):
    """Consecutive user ids of one owner."""

    first: int
    size: int
    owner: int


class SubordinateUsers:
    """The ranges of user ids in a file, read once.

    Ids of operators are users like others: containers of root may be anybody's.
    """

    def __init__(self, path: Path = _FILE) -> None:
        lines: list[str] = []
        with suppress(OSError):
            lines = path.read_text(errors="replace").splitlines()
        ranges = (_range(line) for line in lines)
        self._ranges = sorted(each for each in ranges if each is not None)
        #: Ids in ranges -> owners. An owner never changes: what is held in its name
        #: must be released in its name.
        self._owners: dict[int, int] = {}
        self._asker = Worker("user database")
        self._question: Future[str] | None = None
        #: Threads and the event loop ask; all get the same answer.
        self._lock = Lock()
        self._has_warned = False

    def owner_of(self, user: int) -> int:
        """Return the user whom a user id belongs to: mostly itself."""
        at = bisect(self._ranges, user, key=lambda each: each.first) - 1
        if at < 0:
            return user
        found = self._ranges[at]
        if user >= found.first + found.size or is_operator(found.owner):
            return user
        with self._lock:
            if user not in self._owners:
                self._owners[user] = user if self._is_person(user) else found.owner
            return self._owners[user]

    def _is_person(self, user: int) -> bool:
        """Return True if the user database says in time that it knows a user id."""
        if self._question is None or self._question.done():
            self._question = self._asker.submit(user_name, user)
            with suppress(TimeoutError):
                return bool(self._question.result(_ANSWER_S))
        if not self._has_warned:
            # Once: a user may have 65,536 such ids, and the log has a budget.
            self._has_warned = True
            _LOG.warning(
                "the user database is slow: user id %d, and others like it, have the "
                "budget of the owner of their range until a restart (getent passwd %d)",
                *(user, user),
            )
        return False


@cache
def _of_this_machine() -> SubordinateUsers:
    return SubordinateUsers()


def owner_of(user: int) -> int:
    """Return the user whom a user id of this machine belongs to: mostly itself."""
    return _of_this_machine().owner_of(user)


def _range(line: str) -> _Range | None:
    """Return the range of a line NAME:FIRST:COUNT; None if it is not one."""
    with suppress(ValueError):
        name, first, count = line.split(":")
        owner = user_id(name)
        return None if owner is None else _Range(int(first), int(count), owner)
    return None
