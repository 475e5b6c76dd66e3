# SPDX-License-Identifier: MIT
"""What a browser may do with the page."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("starlette", reason="needs the extra `web`")

from starlette.types import Message, Receive, Scope, Send

from penstock.web.headers import SAFE_HEADERS, SafeHeaders


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    headers = [(b"cache-control", b"public"), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x"})


async def _receive() -> Message:
    return {"type": "http.request"}


def test_headers_are_added_and_replace_others() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(SafeHeaders(_app)({"type": "http"}, _receive, send))
    start, body = sent
    found = [(name.decode(), text.decode()) for name, text in start["headers"]]
    assert len(dict(found)) == len(found)
    assert dict(found) == {**SAFE_HEADERS, "content-type": "text/plain"}
    assert body["body"] == b"x"


def test_nothing_foreign_is_allowed() -> None:
    policy = SAFE_HEADERS["content-security-policy"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert {rule.split()[1] for rule in policy} == {"'none'", "'self'"}
