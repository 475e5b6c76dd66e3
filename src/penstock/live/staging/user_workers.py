# SPDX-License-Identifier: MIT
"""Threads that serve the queues of several users at the same time.

One thread at a time serves a user, until nothing of that user waits. An unexpected
error is logged, and another thread serves what still waits. A thread ends when no user
waits.

A file system that does not answer can hold a thread up for ever. Such a thread takes no
place of others, and does not keep the daemon from its end.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from penstock.live.ending import KILL_S
from penstock.live.wire.frames import WarningLog

__all__ = ["UserWorkers"]

_FAILED: Final = "an unexpected error of penstock"
#: Longest time that threads have to end, and to kill their processes (s).
_END_S: Final = KILL_S + 1.0
#: A thread without a sign of life for this long may hang: it takes no place (s).
_HANGS_S: Final = 900.0


class UserWorkers:
    """Serves the queues of users in threads.

    Parameters
    ----------
    most
        Number of users who are served at the same time.
    serve
        Called with a user id; returns when nothing of this user waits. It must take
        what it works on out of the queue first, so that an error does not come back. It
        must call `show_life` every few minutes.
    """

    def __init__(
        self, most: int, serve: Callable[[int], None], complaints: WarningLog
    ) -> None:
        self._most, self._serve, self._complaints = most, serve, complaints
        self._lock = threading.Lock()
        self._users: deque[int] = deque()
        #: Thread -> its last sign of life (s).
        self._threads: dict[threading.Thread, float] = {}
        self._is_closed = False

    def start(self, user: int) -> None:
        """Serve a user whom no thread serves yet, and return at once."""
        with self._lock:
            self._users.append(user)
            now_s = time.monotonic()
            places = sum(now_s - since < _HANGS_S for since in self._threads.values())
            if self._is_closed or places >= self._most:
                return
            thread = threading.Thread(target=self._run, name="users", daemon=True)
            # When there are too many threads, another one serves this user.
            with suppress(RuntimeError):
                thread.start()
                self._threads[thread] = now_s

    def show_life(self) -> None:
        """Say that the thread which calls this, in `serve`, goes on."""
        with self._lock:
            self._threads[threading.current_thread()] = time.monotonic()

    def close(self) -> None:
        """Serve no further user; wait for the threads, for `_END_S` at most."""
        with self._lock:
            self._is_closed = True
            threads = list(self._threads)
        deadline_s = time.monotonic() + _END_S
        for thread in threads:
            thread.join(max(deadline_s - time.monotonic(), 0.0))

    def _run(self) -> None:
        while (user := self._next()) is not None:
            failed = True
            try:
                self._serve(user)
                failed = False
            finally:
                # The error ends this thread, and Python prints where it happened.
                if failed:
                    error = sys.exception()
                    what = f"{_FAILED}: {type(error).__name__}: {error}"
                    self._complaints.add(what, user)
                    with self._lock:
                        self._threads.pop(threading.current_thread(), None)
                    self.start(user)

    def _next(self) -> int | None:
        """Return a user who waits; None: this thread ends."""
        with self._lock:
            thread = threading.current_thread()
            if self._is_closed or not self._users:
                self._threads.pop(thread, None)
                return None
            self._threads[thread] = time.monotonic()
            return self._users.popleft()
