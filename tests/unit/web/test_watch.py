# SPDX-License-Identifier: MIT
"""One poll for all readers, and events that miss nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

import pytest

from penstock.errors import UnavailableError
from penstock.live.wire.messages import (
    REPLY,
    ControllerRequest,
    GetStatus,
    StatusDocument,
    encode,
)
from penstock.web.identity.readers import OPERATOR, Reader
from penstock.web.identity.user_names import UserNames
from penstock.web.watch import Watch, event_text
from support.statuses import coordinator_of, job_line, status_of

Event = tuple[str, Any, str]


class FakeSource:
    """A daemon that answers with what a test has put there."""

    def __init__(self) -> None:
        self.answer: StatusDocument | UnavailableError = status_of(
            job_line("a", 7), job_line("b", 8)
        )
        self.requests: list[ControllerRequest] = []

    async def ask(self, request: ControllerRequest) -> Any:
        self.requests.append(request)
        if isinstance(self.answer, UnavailableError):
            raise self.answer
        return self.answer


class Rig:
    """A watch whose daemon and clock a test controls."""

    def __init__(self) -> None:
        self.source = FakeSource()
        self.now_s = 1000.0
        self.watch = Watch(self.source, wall=lambda: self.now_s)

    async def poll(self, times: int = 1) -> None:
        for _ in range(times):
            self.now_s += 1.0
            await self.watch.poll()


def with_watch(act: Callable[[Rig], Awaitable[None]]) -> None:
    async def running() -> None:
        await act(Rig())

    asyncio.run(running())


def parsed(text: bytes) -> Event:
    """Return name, data and id of an event."""
    fields = dict(
        line.split(": ", 1) for line in text.decode().rstrip("\n").split("\n")
    )
    return fields["event"], json.loads(fields["data"]), fields.get("id", "")


async def take(events: AsyncIterator[bytes], count: int) -> list[Event]:
    """Return the next events; the first line only says when to reconnect."""
    taken: list[Event] = []
    while len(taken) < count:
        text = await anext(events)
        if text.startswith(b"retry:"):
            continue
        taken.append(parsed(text))
    return taken


def test_an_event_is_text_of_one_line() -> None:
    text = event_text("status", {"a": "two\nlines"}, "x-1")
    assert text == b'id: x-1\nevent: status\ndata: {"a":"two\\nlines"}\n\n'


def test_a_new_reader_gets_the_past_and_then_the_status() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll(3)
        events = rig.watch.events(OPERATOR)
        first, second, third = await take(events, 3)
        assert (first[0], first[1]["times"], first[1]["reset"]) == (
            *("picture", [1001.0, 1002.0]),
            True,
        )
        assert second[0] == "status"
        assert second[1]["time"] == 1003.0
        assert [line["job"] for line in second[1]["jobs"]] == ["a", "b"]
        assert third[0] == "mounts"
        await rig.poll()
        (following,) = await take(events, 1)
        assert (following[0], following[1]["time"]) == ("status", 1004.0)

    with_watch(act)


def test_one_poll_serves_all_readers() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll()
        for user in range(20):
            await take(rig.watch.events(Reader(user)), 2)
        assert rig.source.requests == [GetStatus(explains=False)]

    with_watch(act)


def test_users_get_their_jobs_only() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll(2)
        picture, status = await take(rig.watch.events(Reader(8)), 2)
        assert [series["job"] for series in picture[1]["series"]] == ["8:b"]
        assert [line["job"] for line in status[1]["jobs"]] == ["b"]

    with_watch(act)


def test_a_reader_who_reconnects_gets_what_was_missed() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll(2)
        last_id = (await take(rig.watch.events(OPERATOR), 2))[-1][2]
        await rig.poll(4)
        picture, status = await take(rig.watch.events(OPERATOR, last_id), 2)
        assert picture[1]["reset"] is False
        assert picture[1]["times"] == [1003.0, 1004.0, 1005.0]
        assert status[1]["time"] == 1006.0

    with_watch(act)


def test_a_slow_reader_gets_what_was_missed() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll()
        events = rig.watch.events(Reader(7))
        await take(events, 2)
        await rig.poll(5)
        picture, status = await take(events, 2)
        assert picture[1]["times"] == [1002.0, 1003.0, 1004.0, 1005.0]
        assert (picture[1]["reset"], status[1]["time"]) == (False, 1006.0)

    with_watch(act)


@pytest.mark.parametrize("last_id", ["x-1", "", "-", "1", "é-²", "x-" + "9" * 5000])
def test_an_id_of_another_run_starts_from_the_beginning(last_id: str) -> None:
    async def act(rig: Rig) -> None:
        await rig.poll(2)
        (first,) = await take(rig.watch.events(OPERATOR, last_id), 1)
        assert (first[0], first[1]["reset"]) == ("picture", True)

    with_watch(act)


def test_a_long_number_is_no_trouble() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll()
        run = (await take(rig.watch.events(OPERATOR), 2))[-1][2].partition("-")[0]
        events = rig.watch.events(OPERATOR, f"{run}-{'9' * 10_000}")
        (first,) = await take(events, 1)
        assert first[0] == "status"

    with_watch(act)


def test_a_daemon_that_does_not_answer_and_comes_back() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll()
        answer = rig.source.answer
        events = rig.watch.events(Reader(7))
        await take(events, 2)
        rig.source.answer = UnavailableError("no penstock answers")
        await rig.poll()
        (silence,) = await take(events, 1)
        assert silence == (
            "silence",
            {
                "since": 1001.0,
                "reason": "no penstock answers",
                "ended": False,
            },
            "",
        )
        rig.source.answer = answer
        await rig.poll()
        (status,) = await take(events, 1)
        assert (status[0], status[1]["time"]) == ("status", 1003.0)
        assert rig.watch.silence == ""

    with_watch(act)


def test_a_daemon_that_has_never_answered() -> None:
    async def act(rig: Rig) -> None:
        rig.source.answer = UnavailableError("no penstock answers")
        await rig.poll()
        (silence,) = await take(rig.watch.events(OPERATOR), 1)
        assert silence[1]["since"] is None

    with_watch(act)


def test_a_reader_whose_rights_end_gets_no_more_events() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll()
        rights = [True]
        events = rig.watch.events(Reader(7), may_go_on=lambda: rights[0])
        await take(events, 2)
        rights[0] = False
        await rig.poll()
        # No status any more, only why.
        (last,) = [parsed(text) async for text in events]
        assert last[0] == "silence"
        assert last[1]["reason"] == "Your access has ended: log in again"
        # The page does not say that it tries again.
        assert last[1]["ended"] is True

    with_watch(act)


def test_a_comment_is_sent_if_there_is_no_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.web.watch._ALIVE_S", 0.01)

    async def act(rig: Rig) -> None:
        await rig.poll()
        events = rig.watch.events(Reader(7))
        await take(events, 2)
        assert await anext(events) == b": no news\n\n"

    with_watch(act)


def test_the_numbers_are_those_of_ctl_at_the_same_instant() -> None:
    coordinator = coordinator_of(7, 8)

    class Daemon:
        """Answers at one instant, over the wire."""

        async def ask(self, request: ControllerRequest) -> Any:
            assert isinstance(request, GetStatus)
            return REPLY(encode(coordinator.status(2.0, explains=request.explains)))

    async def shown() -> dict[str, Any]:
        watch = Watch(Daemon())
        await watch.poll()
        events = await take(watch.events(OPERATOR), 2)
        return dict(next(data for name, data, _ in events if name == "status"))

    by_ctl = json.loads(json.dumps(coordinator.status(2.0).document()))
    document = asyncio.run(shown())
    assert document.pop("time") > 0.0
    assert "rates" in document
    document.pop("rates")
    # Beside the numbers of users, their names.
    document.pop("users")
    for line in by_ctl["jobs"]:
        # The page asks for explanations one by one.
        assert line.pop("why")
    for line in document["jobs"]:
        assert line.pop("why") == ""
    assert document == by_ctl


def test_a_watch_that_is_closed_ends_the_events() -> None:
    async def act(rig: Rig) -> None:
        await rig.poll()
        events = rig.watch.events(OPERATOR)
        await take(events, 3)
        rig.watch.close()
        assert [text async for text in events if b"event:" in text] == []

    with_watch(act)


def test_a_job_is_named_with_its_user_as_far_as_the_name_is_known() -> None:
    class Names(UserNames):
        """One name is known, and nobody is asked for others."""

        def known(self, users: Iterable[int]) -> dict[str, str]:
            return {str(user): "ann" for user in users if user == 7}

    async def act() -> None:
        watch = Watch(FakeSource(), names=Names())
        assert watch.job_words("7:a:b") == "ann:a:b"
        assert watch.job_words("8:a") == "8:a"

    asyncio.run(act())
