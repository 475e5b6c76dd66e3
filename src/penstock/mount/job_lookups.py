# SPDX-License-Identifier: MIT
"""Find the job of a process without waiting for a storage that does not answer.

A process names the file with its job itself. That file may lie on a file system that
hangs, or on the mount that asks, whose threads would then wait for themselves. So a
thread looks, and the request waits for `_ANSWER_S` at most. A user who has `MOST_LOOKS`
looks under way has no job until one of them has ended: that leaves threads of the mount
to other users.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from penstock.live.worker import Worker

__all__ = ["MOST_LOOKS", "JobLookups"]

#: Most looks of a user at a time; fewer than the threads of a mount (session.c).
MOST_LOOKS: Final = 32
#: Longest wait of a request for a look.
_ANSWER_S: Final = 2.0


class JobLookups:
    """Looks for the jobs of processes, for all requests of a mount."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: Counter[int] = Counter()
        """User -> number of looks."""

    def names(self, uid: int, look: Callable[[], list[str]]) -> list[str]:
        """Return what `look` finds for a user; nothing if it takes too long."""
        with self._lock:
            if self._under_way[uid] >= MOST_LOOKS:
                return []
            worker = Worker("job of a process")
            found = worker.submit(look)
            self._under_way[uid] += 1
        found.add_done_callback(lambda _: self._end(uid))
        worker.end(0.0)
        with suppress(TimeoutError):
            return found.result(_ANSWER_S)
        return []

    def _end(self, uid: int) -> None:
        with self._lock:
            self._under_way[uid] -= 1
            if not self._under_way[uid]:
                del self._under_way[uid]
