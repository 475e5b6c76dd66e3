# SPDX-License-Identifier: MIT
"""Threads that serve the queues of several users at the same time.

One thread at a time serves a user, until nothing of that user waits. An unexpected
error ends the thread: it is logged, and another thread serves what still waits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final

from penstock.live.wire.frames import WarningLog

__all__ = ["UserWorkers"]

_FAILED: Final = "an unexpected error of penstock"


class UserWorkers:
    """Serves the queues of users in threads.

    Parameters
    ----------
    most
        Number of users who are served at the same time.
    serve
        Called with a user id; returns when nothing of this user waits. It must take
        what it works on out of the queue first, so that an error does not come back.
    """

    def __init__(
        self, most: int, serve: Callable[[int], None], complaints: WarningLog
    ) -> None:
        self._serve, self._complaints = serve, complaints
        self._pool = ThreadPoolExecutor(most, "users")

    def start(self, user: int) -> None:
        """Serve a user whom no thread serves yet, and return at once."""
        # When the interpreter ends no thread can be started any more.
        with suppress(RuntimeError):
            served = self._pool.submit(self._serve, user)
            served.add_done_callback(partial(self._end, user))

    def close(self) -> None:
        """Start no further thread."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _end(self, user: int, served: Future[None]) -> None:
        error = None if served.cancelled() else served.exception()
        if error is not None:
            what = f"{_FAILED}: {type(error).__name__}: {error}"
            self._complaints.add(what, user)
            self.start(user)
