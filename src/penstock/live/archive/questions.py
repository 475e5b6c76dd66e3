# SPDX-License-Identifier: MIT
"""The queue of questions to the archive: one thread reads it, for all users.

Reading can take seconds. So that no user keeps others waiting for long, one user can
have `_MOST_QUESTIONS` questions in the queue, and a question is dropped if whoever
asked has gone meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from penstock.live.wire.messages import (
    JobReport,
    PastJobs,
    Refused,
    RunsUnderWay,
    TextAnswer,
    UserRequest,
)
from penstock.live.worker import Worker

__all__ = ["ArchiveAnswer", "ArchiveQueue"]

ArchiveAnswer = Refused | TextAnswer | PastJobs | JobReport | RunsUnderWay

#: Questions of one user that wait or are being answered; operators have no bound.
_MOST_QUESTIONS: Final = 4
#: How long an agent waits for an answer (s).
_PATIENCE_S: Final = 4.0


class ArchiveQueue:
    """Answers questions in another thread, one after the other.

    Parameters
    ----------
    owner_of
        Returns the user whose questions those of a user id are.
    """

    def __init__(
        self,
        owner_of: Callable[[int], int] = lambda user: user,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._owner_of = owner_of
        self._clock = clock
        self._thread = Worker("archive")
        #: Owner of user ids -> questions in the queue.
        self._questions: Counter[int] = Counter()

    def ask(
        self,
        message: UserRequest,
        prepare: Callable[[], Callable[[], ArchiveAnswer]],
    ) -> asyncio.Future[ArchiveAnswer]:
        """Return the future answer, or a refusal.

        Parameters
        ----------
        prepare
            Returns what reads the answer in the other thread. It is called here, and
            not at all if the question is refused.
        """
        if message.trusted:
            return self._read(prepare)
        user = self._owner_of(message.user)
        if self._questions[user] >= _MOST_QUESTIONS:
            loop = asyncio.get_running_loop()
            refused: asyncio.Future[ArchiveAnswer] = loop.create_future()
            refused.set_result(
                Refused("your other questions to the archive come first; try again")
            )
            return refused
        done = self._read(prepare)
        self._questions[user] += 1
        done.add_done_callback(lambda _: self._forget(user))
        return done

    def _read(
        self, prepare: Callable[[], Callable[[], ArchiveAnswer]]
    ) -> asyncio.Future[ArchiveAnswer]:
        return asyncio.wrap_future(self._thread.submit(self._in_time(prepare())))

    def close(self) -> None:
        """Drop the questions that wait, and do not wait for the one in work."""
        self._thread.end(0.0, drops=True)

    def _in_time(
        self, read: Callable[[], ArchiveAnswer]
    ) -> Callable[[], ArchiveAnswer]:
        """Return `read`, which is not called if its turn comes too late."""
        end_s = self._clock() + _PATIENCE_S

        def read_in_time() -> ArchiveAnswer:
            if self._clock() > end_s:
                return Refused("the archive is busy; try again later")
            return read()

        return read_in_time

    def _forget(self, user: int) -> None:
        self._questions[user] -= 1
        if not self._questions[user]:
            del self._questions[user]
