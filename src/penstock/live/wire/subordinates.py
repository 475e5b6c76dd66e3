# SPDX-License-Identifier: MIT
"""User ids that belong to another user: ``/etc/subuid``.

Containers of a user run under such ids, often 65,536 of them. Each looks like a user to
the kernel, so that one person could have as many budgets. An id that the user database
(``passwd``) knows is a person: ranges and ids of other sources, e.g. LDAP, may overlap.

The user database may be a server that is slow or does not answer, and event loops ask
for owners. So they wait for it for `_ANSWER_S` at most, and for `_PART` of the time if
they ask about many ids, which containers of a user can have; and not at all while an
earlier question is not answered. An id of which nothing is known in time belongs to the
owner of its range. The owners in the file are looked up once, for `_START_S` at most.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect
from collections.abc import Callable
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
#: How long to wait for the user database (s), and for which part of the time at most.
_ANSWER_S: Final = 0.1
_PART: Final = 0.01
#: How long to wait for the owners of the ranges (s).
_START_S: Final = 5.0


class _Range(NamedTuple):
    """Consecutive user ids of one owner."""

    first: int
    size: int
    owner: int


class SubordinateUsers:
    """The ranges of user ids in a file, read once.

    Ids of operators are users like others: containers of root may be anybody's.

    Parameters
    ----------
    clock
        Returns the monotonic time (s).
    """

    def __init__(
        self, path: Path = _FILE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._asker = Worker("user database")
        self._ranges = self._read_ranges(path)
        self._clock = clock
        #: For how long to wait at most from now on, without what time adds (s).
        self._patience_s, self._patience_at_s = _ANSWER_S, clock()
        #: Ids in ranges -> owners. An owner never changes: what is held in its name
        #: must be released in its name.
        self._owners: dict[int, int] = {}
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
        begun_s = self._clock()
        saved_s = self._patience_s + _PART * (begun_s - self._patience_at_s)
        patience_s = min(saved_s, _ANSWER_S)
        if patience_s > 0.0 and (self._question is None or self._question.done()):
            self._question = self._asker.submit(user_name, user)
            try:
                return bool(self._question.result(patience_s))
            except TimeoutError:
                pass
            finally:
                self._patience_at_s = self._clock()
                self._patience_s = patience_s - (self._patience_at_s - begun_s)
        if not self._has_warned:
            # Once: a user may have 65,536 such ids, and the log has a budget.
            self._has_warned = True
            _LOG.warning(
                "the user database is slow: user id %d, and others like it, have the "
                "budget of the owner of their range until a restart (getent passwd %d)",
                *(user, user),
            )
        return False

    def _read_ranges(self, path: Path) -> list[_Range]:
        """Return the ranges of a file in ascending order.

        A name that the user database does not know owns nothing. If it does not say
        that in time, the first id of a name stands for it: its ranges have one owner.
        """
        lines: list[str] = []
        with suppress(OSError):
            lines = path.read_text(errors="replace").split("\n")
        ranges = [each for each in map(_range, lines) if each is not None]
        owners: dict[str, int | None] = {}
        for name, first, _ in ranges:
            owners.setdefault(name, first)
        self._look_up(owners)
        known = ((first, size, owners[name]) for name, first, size in ranges)
        return sorted(
            _Range(first, size, owner)
            for first, size, owner in known
            if owner is not None
        )

    def _look_up(self, owners: dict[str, int | None]) -> None:
        """Replace the user ids of these names by those that are known in time."""
        until_s = time.monotonic() + _START_S
        questions = {name: self._asker.submit(user_id, name) for name in owners}
        for name, question in questions.items():
            try:
                owners[name] = question.result(max(until_s - time.monotonic(), 0.0))
            except TimeoutError:
                question.cancel()


@cache
def _of_this_machine() -> SubordinateUsers:
    return SubordinateUsers()


def owner_of(user: int) -> int:
    """Return the user whom a user id of this machine belongs to: mostly itself."""
    return _of_this_machine().owner_of(user)


def _range(line: str) -> tuple[str, int, int] | None:
    """Return the parts of a line NAME:FIRST:COUNT; None if it is not one."""
    with suppress(ValueError):
        name, first, count = line.split(":")
        return name, int(first), int(count)
    return None
