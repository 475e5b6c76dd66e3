# SPDX-License-Identifier: MIT
"""A real server with bounds on its connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("uvicorn", reason="needs the extra `web`")

from starlette.types import Receive, Scope, Send

from penstock.live.wire.peers import CONNECTION
from penstock.web import serving
from support.waiting import LIMIT_S, until_async

Address = tuple[str, int]
#: More than all buffers of a connection hold.
_LONG = bytes(1 << 20)
#: Readers of endless data who are gone.
_GONE: list[str] = []
#: Senders of requests whose bodies are read.
_WAITING: list[str] = []
#: What was remembered about the connection of each request.
_FACTS: list[dict[str, Any]] = []
_GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer ``/`` with one word, ``/endless`` with data without an end.

    The body of a request to ``/body`` is awaited.
    """
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
    _FACTS.append(scope[CONNECTION])
    if scope["path"] == "/body":
        _WAITING.append("sender")
        while (await receive()).get("more_body"):
            pass
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/endless":
        await _send_until_gone(receive, send)
    await send({"type": "http.response.body", "body": b"hello"})


async def _send_until_gone(receive: Receive, send: Send) -> None:
    """Send data until the reader is gone, and note that."""

    async def wait() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.create_task(wait())
    while not gone.done():
        await send({"type": "http.response.body", "body": _LONG, "more_body": True})
        await asyncio.sleep(0)
    _GONE.append("reader")


def with_server(act: Callable[[Address], Awaitable[None]]) -> None:
    """Run `act` beside a server; the server stops when `act` has ended."""

    async def running() -> None:
        ended = asyncio.Event()
        listener = socket.create_server(("127.0.0.1", 0))
        task = asyncio.create_task(serving.serve_app(_app, listener, ended))
        try:
            await asyncio.wait_for(act(listener.getsockname()), LIMIT_S)
        finally:
            ended.set()
            await asyncio.wait_for(task, LIMIT_S)

    asyncio.run(running())


async def _ask(address: Address) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(_GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
    answer = await reader.read()
    writer.close()
    return answer


async def _until_closed(reader: asyncio.StreamReader) -> bytes:
    """Return what arrives until the server closes or resets the connection."""
    received = b""
    try:
        while data := await reader.read(65536):
            received = (received + data)[-1000:]
    except ConnectionError:
        pass
    return received


def test_it_answers_and_ends() -> None:
    async def act(address: Address) -> None:
        answer = await _ask(address)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"hello\r\n0\r\n\r\n")
        assert b"server:" not in answer

    with_server(act)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", _GET])
def test_a_connection_that_does_nothing_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_IDLE_S", 0.1)

    async def act(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        await _until_closed(reader)
        writer.close()

    with_server(act)


def test_a_reader_who_takes_nothing_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "_IDLE_S", 0.2)
    _GONE.clear()

    async def act(address: Address) -> None:
        loop = asyncio.get_running_loop()
        with socket.create_connection(address) as slow:
            slow.setblocking(False)
            await loop.sock_sendall(slow, _GET.replace(b"/ ", b"/endless "))
            await until_async(lambda: _GONE)
        assert (await _ask(address)).endswith(b"hello\r\n0\r\n\r\n")

    with_server(act)


def test_more_connections_than_allowed_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "_MOST_CONNECTIONS", 3)

    async def act(address: Address) -> None:
        held = [await asyncio.open_connection(*address) for _ in range(3)]
        # The server accepts them in the order in which they were opened.
        assert b"hello" in await _ask(address)
        assert await _until_closed(held[0][0]) == b""
        for _, writer in held:
            writer.close()

    with_server(act)


_POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf"


def test_requests_without_their_bodies_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "_MOST_CONNECTIONS", 3)
    _WAITING.clear()

    async def act(address: Address) -> None:
        held = [await asyncio.open_connection(*address) for _ in range(3)]
        for _, writer in held:
            writer.write(_POST.replace(b"/ ", b"/body "))
        await until_async(lambda: len(_WAITING) == 3)
        assert b"hello" in await _ask(address)
        for _, writer in held:
            writer.close()

    with_server(act)


def test_the_sender_with_most_connections_loses_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "_MOST_CONNECTIONS", 3)

    async def act(address: Address) -> None:
        # The oldest connection is that of another sender.
        single_reader, single = await asyncio.open_connection(*address)
        many = [
            await asyncio.open_connection(*address, local_addr=("127.0.0.2", 0))
            for _ in range(3)
        ]
        assert await _until_closed(many[0][0]) == b""
        single.write(_GET)
        assert b"200" in await single_reader.readline()
        for writer in (single, *(each for _, each in many)):
            writer.close()

    with_server(act)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (("unix", 7), ("unix", 8), False),
        (("10.0.0.1", 7), ("10.0.0.1", 8), True),
        (("10.0.0.1", 7), ("10.0.0.2", 7), False),
        (("2001:db8::1", 7), ("2001:db8::2", 7), True),
        (("2001:db8::1", 7), ("2001:db8:0:1::1", 7), False),
        (("::ffff:10.0.0.1", 7), ("::ffff:10.0.0.2", 7), False),
        (("", 0), None, True),
    ],
)
def test_who_is_one_sender(
    one: Address, other: Address | None, *, is_same: bool
) -> None:
    assert (serving._sender(one) == serving._sender(other)) is is_same


def test_facts_are_of_one_connection() -> None:
    _FACTS.clear()

    async def act(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(2):
            writer.write(_GET)
            await reader.readuntil(b"0\r\n\r\n")
        writer.close()
        await _ask(address)
        first, second, third = _FACTS
        assert first is second
        assert first is not third

    with_server(act)


def test_a_head_that_is_too_long_is_refused() -> None:
    async def act(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(_GET.replace(b"\r\n\r\n", b"\r\nx: " + b"y" * 100_000))
        assert b" 400 " in await _until_closed(reader)
        writer.close()

    with_server(act)
