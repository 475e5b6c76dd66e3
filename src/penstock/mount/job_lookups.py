# SPDX-License-Identifier: MIT
"""Find the job of a process without waiting for a storage that does not answer.

A process names the file with its job itself. That file may lie on a file system that
hangs, or on the mount that asks, whose threads would then wait for themselves. So a
thread looks, and the request waits for `_ANSWER_S` at most.

A user who has `MOST_LOOKS` looks under way has no job until one of them has ended: that
leaves threads of the mount to other users. The user ids of a user's containers count
with their owner. Nobody has a job while `MOST_LOOKS_OF_ALL` looks are under way: each
one that hangs keeps a thread.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from penstock.live.wire.subordinates import owner_of
from penstock.live.worker import Worker

__all__ = ["MOST_LOOKS", "MOST_LOOKS_OF_ALL", "JobLookups"]

#: Most looks of a user, and of all users, at a time; fewer than the threads of a mount
#: (session.c).
MOST_LOOKS: Final = 32
MOST_LOOKS_OF_ALL: Final = 96
#: Longest wait of a request for a look.
_ANSWER_S: Final = 2.0


class JobLookups:
    """Looks for the jobs of processes, for all requests of a mount.

    Parameters
    ----------
    owner_of
        Returns the user whom a user id belongs to.
    """

    def __init__(self, owner_of: Callable[[int], int] = owner_of) -> None:
        self._owner_of = owner_of
        self._lock = threading.Lock()
        self._under_way: Counter[int] = Counter()
        """Owner -> number of looks."""

    def names(self, uid: int, look: Callable[[], list[str]]) -> list[str]:
        """Return what `look` finds for a user; nothing if it takes too long."""
        owner = self._owner_of(uid)
        with self._lock:
            if (
                self._under_way[owner] >= MOST_LOOKS
                or self._under_way.total() >= MOST_LOOKS_OF_ALL
            ):
                return []
            worker = Worker("job of a process")
            found = worker.submit(look)
            self._under_way[owner] += 1
        found.add_done_callback(lambda _: self._end(owner))
        worker.end(0.0)
        with suppress(TimeoutError):
            return found.result(_ANSWER_S)
        return []

    def _end(self, owner: int) -> None:
        with self._lock:
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]
