# SPDX-License-Identifier: MIT
"""Questions to the daemon, from an event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import UnavailableError
from penstock.live.wire.messages import ExplainJob, GetStatus, OnBehalfOf
from penstock.web.identity.readers import OPERATOR, Reader
from penstock.web.link import DaemonLink


class FakeClient:
    """A client that repeats the message."""

    def __init__(self, path: Path, limit_s: float) -> None:
        self.path = path

    def __enter__(self) -> FakeClient:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, message: Any) -> Any:
        return message


def test_a_user_asks_as_that_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.web.link.Client", FakeClient)
    link = DaemonLink(Path("socket"), 1)
    request = ExplainJob("a")
    assert asyncio.run(link.ask(request, Reader(7))) == OnBehalfOf(7, request)
    assert asyncio.run(link.ask(request)) == request
    link.close()


def test_no_daemon(tmp_path: Path) -> None:
    link = DaemonLink(tmp_path / "socket", 1)
    with pytest.raises(UnavailableError, match="no penstock answers"):
        asyncio.run(link.ask(GetStatus()))
    link.close()


def test_too_many_questions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.web.link.Client", FakeClient)
    monkeypatch.setattr("penstock.web.link._MOST", 3)

    async def act() -> list[Any]:
        link = DaemonLink(Path("socket"), 1)
        questions = [link.ask(GetStatus()) for _ in range(5)]
        answers = await asyncio.gather(*questions, return_exceptions=True)
        # Those that were answered have made place.
        assert await link.ask(GetStatus()) == GetStatus()
        link.close()
        return answers

    refused = [isinstance(each, UnavailableError) for each in asyncio.run(act())]
    assert refused == [False, False, False, True, True]


def test_one_user_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.web.link.Client", FakeClient)

    async def act() -> list[Any]:
        link = DaemonLink(Path("socket"), 1)
        readers = [Reader(7)] * 6 + [Reader(8)] + [OPERATOR] * 6
        questions = [link.ask(GetStatus(), reader) for reader in readers]
        answers = await asyncio.gather(*questions, return_exceptions=True)
        link.close()
        return answers

    refused = [isinstance(each, UnavailableError) for each in asyncio.run(act())]
    assert refused == [*[False] * 4, True, True, *[False] * 7]
