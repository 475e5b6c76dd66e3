# SPDX-License-Identifier: MIT
"""Questions to the archive wait in a queue with bounds."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from penstock.live.archive import questions
from penstock.live.archive.questions import ArchiveAnswer, ArchiveQueue
from penstock.live.wire.messages import (
    ListPastJobs,
    Refused,
    TextAnswer,
    UserRequest,
)
from support.waiting import LIMIT_S

MOST = questions._MOST_QUESTIONS


def _question(user: int, *, trusted: bool = False) -> UserRequest:
    return UserRequest(1, user, trusted, ListPastJobs())


def test_one_user_does_not_fill_the_queue() -> None:
    async def act() -> None:
        queue, go = ArchiveQueue(), threading.Event()

        def read() -> ArchiveAnswer:
            go.wait(LIMIT_S)
            return TextAnswer("read")

        prepared: list[int] = []

        def prepare() -> Callable[[], ArchiveAnswer]:
            prepared.append(1)
            return read

        asked = [queue.ask(_question(7), prepare) for _ in range(MOST + 1)]
        # What a refused question would need is not computed.
        assert len(prepared) == MOST
        assert [each.done() for each in asked] == [False] * MOST + [True]
        assert isinstance(asked[-1].result(), Refused)
        other = queue.ask(_question(8), prepare)
        operator = queue.ask(_question(7, trusted=True), prepare)
        go.set()
        assert await asyncio.wait_for(other, LIMIT_S) == TextAnswer("read")
        assert await asyncio.wait_for(operator, LIMIT_S) == TextAnswer("read")
        # The user has been answered, and may ask again.
        again = queue.ask(_question(7), prepare)
        assert await asyncio.wait_for(again, LIMIT_S) == TextAnswer("read")
        queue.close()

    asyncio.run(act())


def test_the_ids_of_a_container_ask_in_the_name_of_their_owner() -> None:
    async def act() -> None:
        queue, go = ArchiveQueue(lambda user: min(user, 7)), threading.Event()

        def prepare() -> Callable[[], ArchiveAnswer]:
            return lambda: TextAnswer(str(go.wait(LIMIT_S)))

        asked = [queue.ask(_question(7 + n), prepare) for n in range(MOST + 1)]
        assert [each.done() for each in asked] == [False] * MOST + [True]
        go.set()
        await asyncio.wait_for(asked[0], LIMIT_S)
        queue.close()

    asyncio.run(act())


def test_nobody_reads_for_those_who_wait_no_longer() -> None:
    async def act() -> None:
        now_s = 0.0
        queue, go = ArchiveQueue(clock=lambda: now_s), threading.Event()
        begun = threading.Event()
        calls: list[str] = []

        def first() -> ArchiveAnswer:
            begun.set()
            go.wait(LIMIT_S)
            return TextAnswer("first")

        def second() -> ArchiveAnswer:
            calls.append("second")
            return TextAnswer("second")

        asked = [
            queue.ask(_question(7), prepare)
            for prepare in (lambda: first, lambda: second)
        ]
        assert begun.wait(LIMIT_S)
        now_s = questions._PATIENCE_S + 1.0
        go.set()
        answers = await asyncio.wait_for(asyncio.gather(*asked), LIMIT_S)
        assert answers[0] == TextAnswer("first")
        assert isinstance(answers[1], Refused)
        assert not calls
        queue.close()

    asyncio.run(act())
