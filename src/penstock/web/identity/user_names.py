# SPDX-License-Identifier: MIT
"""Names of users beside their numbers, found without ever waiting for them.

The system may ask a server on the network for a name, and that server may not answer.
So one thread asks, and `UserNames.known` returns what is known by now: a user whose
name is not known, or not known yet, has none. The thread ends with the process, also
while it waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Final

from penstock.live.wire.identity import user_name

__all__ = ["UserNames"]

#: How long a name is believed (s).
_FRESH_S: Final = 3600.0
#: Users whose names are kept; all are forgotten when there are more.
_MOST: Final = 10_000


class UserNames:
    """The names of users, as far as they are known.

    Parameters
    ----------
    find
        Returns the name of a user id, or ""; it may take for ever.
    """

    def __init__(
        self,
        find: Callable[[int], str] = user_name,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._find, self._clock = find, clock
        #: User id -> name, and when it was asked for last (s).
        self._names: dict[int, str] = {}
        self._asked_s: dict[int, float] = {}
        self._questions: SimpleQueue[int] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def known(self, users: Iterable[int]) -> dict[str, str]:
        """Return user id -> name of those whose names are known; ask for the others."""
        wanted, now_s = set(users), self._clock()
        for user in wanted:
            if now_s - self._asked_s.get(user, -_FRESH_S) >= _FRESH_S:
                self._ask(user, now_s)
        return {
            str(user): name
            for user in sorted(wanted)
            if (name := self._names.get(user))
        }

    def _ask(self, user: int, now_s: float) -> None:
        if len(self._asked_s) >= _MOST:
            self._asked_s.clear()
            self._names = {}
        self._asked_s[user] = now_s
        self._questions.put(user)
        if self._thread is None:
            self._thread = threading.Thread(target=self._answer, daemon=True)
            self._thread.start()

    def _answer(self) -> None:
        """Find names for ever, one after the other."""
        while True:
            user = self._questions.get()
            self._names[user] = self._find(user)
