# SPDX-License-Identifier: MIT
"""The agent's socket: answers, refusals, limits, and restoration after removal."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import stat
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.errors import InputError
from penstock.live.node import agent_socket, budgets
from penstock.live.node.agent import Agent
from penstock.live.node.agent_socket import local_socket
from penstock.live.node.budgets import Budgets, Holding, Spending
from penstock.live.settings import Settings
from penstock.live.wire.frames import Peer, frame, read_frame
from penstock.live.wire.messages import (
    FROM_PROGRAM,
    REPLY,
    ExplainJob,
    FromProgram,
    GetStatus,
    OnBehalfOf,
    Refused,
    Reply,
    TextAnswer,
)
from support.waiting import until_async


class FakeAgent:
    """Answers with the user id of the peer and the name of the message."""

    async def reply(self, peer: Peer, message: FromProgram) -> Reply:
        return TextAnswer(f"{peer.user} {type(message).__name__}")


class Connection:
    """A connection to the socket."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, data: bytes) -> object:
        """Send bytes; return the reply, or None if the connection is closed."""
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()
        return await self.receive()

    async def receive(self) -> object:
        try:
            answer = await asyncio.wait_for(
                read_frame(self.reader, REPLY.largest_bytes), 60.0
            )
        except ConnectionError:
            return None
        return None if answer is None else REPLY(answer)

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class Clients:
    """Opens connections to the socket, and closes them at the end."""

    def __init__(self, settings: Settings) -> None:
        self._path = str(settings.socket)
        self._connections: list[Connection] = []

    async def connect(self) -> Connection:
        connection = Connection(*await asyncio.open_unix_connection(self._path))
        self._connections.append(connection)
        return connection

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


def serve(settings: Settings, act: Callable[[Clients], Awaitable[None]]) -> None:
    """Run `act` while the socket is served."""

    async def running() -> None:
        before = len(asyncio.all_tasks())
        async with local_socket(settings, cast("Agent", FakeAgent()), Budgets(4096)):
            clients = Clients(settings)
            try:
                await act(clients)
            finally:
                await clients.close()
        await until_async(lambda: len(asyncio.all_tasks()) == before)

    asyncio.run(running())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Return settings whose socket is in a folder of the test."""
    return Settings(folder=str(tmp_path))


def test_messages_are_answered_in_order_with_the_user_of_the_kernel(
    settings: Settings,
) -> None:
    async def act(clients: Clients) -> None:
        connection = await clients.connect()
        both = frame(GetStatus()) + frame(ExplainJob("a"))
        first = await connection.ask(both)
        second = await connection.receive()
        assert first == TextAnswer(f"{os.geteuid()} GetStatus")
        assert second == TextAnswer(f"{os.geteuid()} ExplainJob")

    serve(settings, act)


def test_a_trusted_peer_asks_on_behalf_of_a_user(settings: Settings) -> None:
    async def act(clients: Clients) -> None:
        connection = await clients.connect()
        answer = await connection.ask(frame(OnBehalfOf(54321, GetStatus())))
        assert answer == TextAnswer("54321 GetStatus")

    serve(settings, act)


def test_other_peers_do_not_ask_on_behalf_of_anybody(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = Peer(os.getpid(), 54321, 54321)
    monkeypatch.setattr(Peer, "of", lambda _: stranger)

    async def act(clients: Clients) -> None:
        connection = await clients.connect()
        for user in (0, os.geteuid(), stranger.user):
            answer = await connection.ask(frame(OnBehalfOf(user, GetStatus())))
            assert answer == Refused("only root may ask on behalf of another user")

    serve(replace(settings, users="all"), act)


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\3abc",
        b"\xff\xff\xff\xff",
        (FROM_PROGRAM.largest_bytes + 1).to_bytes(4, "big"),
        b"\0\0\0\0",
    ],
    ids=["garbage", "far too long", "just too long", "empty"],
)
def test_an_invalid_message_is_refused_and_ends_only_its_connection(
    settings: Settings, data: bytes
) -> None:
    async def act(clients: Clients) -> None:
        good, bad = await clients.connect(), await clients.connect()
        reply = await bad.ask(data)
        assert isinstance(reply, Refused)
        assert "\n" not in reply.reason
        assert await bad.receive() is None
        assert await good.ask(frame(GetStatus())) is not None

    serve(settings, act)


@pytest.mark.parametrize(("users", "mode"), [("own", 0o600), ("all", 0o666)])
def test_the_file_admits_the_permitted_users(
    tmp_path: Path, users: str, mode: int
) -> None:
    settings = Settings(folder=str(tmp_path), users=users)

    async def act(clients: Clients) -> None:
        status = settings.socket.stat()
        assert stat.S_ISSOCK(status.st_mode)
        assert stat.S_IMODE(status.st_mode) == mode

    serve(settings, act)
    assert not settings.socket.exists()


@pytest.mark.parametrize(("users", "answered"), [("own", False), ("all", True)])
def test_other_users_are_answered_only_if_all_users_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: str, answered: bool
) -> None:
    settings = Settings(folder=str(tmp_path), users=users)
    stranger = Peer(os.getpid(), 54321, 54321)
    monkeypatch.setattr(Peer, "of", lambda _connection: stranger)

    async def act(clients: Clients) -> None:
        connection = await clients.connect()
        reply = await connection.ask(frame(GetStatus()))
        assert (reply is not None) is answered

    serve(settings, act)


def test_a_user_has_a_limited_number_of_connections(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "is_operator", lambda _: False)
    monkeypatch.setitem(budgets._MOST, Holding.CONNECTIONS, 2)

    async def act(clients: Clients) -> None:
        first, second = await clients.connect(), await clients.connect()
        for connection in (first, second):
            assert await connection.ask(frame(GetStatus())) is not None
        third = await clients.connect()
        assert await third.receive() is None
        # A closed connection makes room for another one.
        await first.close()

        reply = None
        async with asyncio.timeout(60.0):
            while reply is None:
                reply = await (await clients.connect()).ask(frame(GetStatus()))

    serve(settings, act)


Barring = tuple[agent_socket._Listener, list[set[int]]]


@pytest.fixture
def barring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> Callable[[Callable[[agent_socket._Listener], Awaitable[None]]], list[set[int]]]:
    """Return a function that runs a test with a socket of users with containers.

    It returns the users that each access control list has named, in order.
    """
    lists: list[set[int]] = []

    def set_list(path: Path, name: str, access: bytes) -> None:
        entries = list(struct.iter_unpack("<HHI", access[4:]))
        users = {user for tag, _, user in entries if tag == 0x02}
        if len(users) > 700:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        lists.append(users)

    monkeypatch.setattr(os, "setxattr", set_list)
    monkeypatch.setattr(agent_socket, "_BARRED_S", 0.05)
    counted = Budgets(4096, lambda user: user // 100_000)

    def run(
        act: Callable[[agent_socket._Listener], Awaitable[None]],
    ) -> list[set[int]]:
        async def running() -> None:
            connections = agent_socket._Connections(
                settings, cast("Agent", FakeAgent()), counted
            )
            await act(agent_socket._Listener(tmp_path / "socket", 0o666, connections))

        asyncio.run(running())
        return lists

    return run


def test_many_ids_of_containers_leave_room_for_other_users(barring: Any) -> None:
    """A hundred ids of one user filled the list, and others could not be refused."""

    async def act(listener: agent_socket._Listener) -> None:
        assert listener._bar(range(100_000, 100_200))
        assert not listener._bar(range(100_100, 101_000))
        assert listener._bar([200_001, 300_001])
        await until_async(lambda: not listener._barred)
        assert listener._bar([100_999])

    lists = barring(act)
    assert [len(users) for users in lists[:3]] == [200, 500, 502]
    assert {200_001, 300_001} <= lists[2]
    # Users get access together: each list is written as a whole.
    assert len(lists) < 50
    assert lists[-2:] == [set(), {100_999}]


def test_a_list_that_is_too_long_bars_those_for_whom_it_has_room(barring: Any) -> None:
    async def act(listener: agent_socket._Listener) -> None:
        assert listener._bar(range(100_000, 100_400))
        assert not listener._bar(range(200_000, 200_400))
        assert len(listener._barred) == 400
        assert not listener._bar([300_000])
        await until_async(lambda: not listener._barred)

    lists = barring(act)
    assert [len(users) for users in lists] == [400, 0]


def test_a_list_that_cannot_be_written_for_a_moment_is_written_later(
    barring: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failures = os.setxattr, [errno.EIO]

    def set_list(*arguments: Any) -> None:
        if failures:
            raise OSError(failures.pop(), "for a moment")
        write(*arguments)

    monkeypatch.setattr(os, "setxattr", set_list)

    async def act(listener: agent_socket._Listener) -> None:
        assert not listener._bar([100_000])
        # This was no sign of a list that is too long.
        assert listener._bar([100_000, 200_000])
        failures.extend([errno.EIO] * 3)
        await until_async(lambda: not listener._barred and not listener._is_stale)

    assert barring(act) == [{100_000, 200_000}, set()]


def test_after_a_list_that_was_too_long_there_is_room_again(barring: Any) -> None:
    async def act(listener: agent_socket._Listener) -> None:
        assert listener._bar(range(100_000, 100_400))
        assert not listener._bar(range(200_000, 200_400))
        await until_async(lambda: not listener._barred)
        assert listener._bar(range(200_000, 200_450))
        await until_async(lambda: not listener._barred)

    assert [len(users) for users in barring(act)] == [400, 0, 450, 0]


def test_connections_that_the_kernel_does_not_refuse_are_paced(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    pause = agent_socket._Listener._pause

    def noted(self: Any, listener: socket.socket, pause_s: float) -> None:
        pauses.append(pause_s)
        pause(self, listener, pause_s)

    monkeypatch.setattr(agent_socket._Listener, "_pause", noted)
    monkeypatch.setattr(agent_socket, "_MOST_BARRED", 0)
    monkeypatch.setattr(budgets, "is_operator", lambda _: False)
    monkeypatch.setitem(budgets._RATES, Spending.CONNECTS, (0.001, 1.0))

    async def act(clients: Clients) -> None:
        await clients.connect()
        for _ in range(3):
            refused = await clients.connect()
            assert await refused.receive() is None
        assert pauses[0] == agent_socket._REFUSED_PAUSE_S

    serve(settings, act)


def test_a_silent_connection_is_closed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_socket, "_TIMEOUT_S", 0.01)

    async def act(clients: Clients) -> None:
        connection = await clients.connect()
        assert await connection.receive() is None

    serve(settings, act)


def open_sockets() -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum("socket:" in str(link.readlink()) for link in links if link.is_symlink())


def test_a_connection_whose_replies_are_not_read_is_closed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_socket, "_TIMEOUT_S", 0.1)
    monkeypatch.setattr(agent_socket, "_CLOSE_S", 0.01)

    async def reply(*_: object) -> Reply:
        return TextAnswer("x" * 1_000_000)

    monkeypatch.setattr(FakeAgent, "reply", reply)

    async def act(clients: Clients) -> None:
        before = open_sockets()
        with socket.socket(socket.AF_UNIX) as mute:
            mute.connect(str(settings.socket))
            mute.sendall(frame(GetStatus()))
            await until_async(lambda: open_sockets() == before + 2)
            # Only the end of the client is left.
            await until_async(lambda: open_sockets() == before + 1)

    serve(settings, act)


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_removed_socket_is_created_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(agent_socket, "_CHECK_S", 0.01)

    async def act(clients: Clients) -> None:
        before = settings.socket.stat().st_ino
        # The name is kept, so that the new file cannot have the same inode.
        settings.socket.rename(settings.socket.with_name("old.sock"))
        if change == "replaced":
            settings.socket.write_text("something else")

        def is_back() -> bool:
            path = settings.socket
            return path.is_socket() and path.stat().st_ino != before

        await until_async(is_back)
        connection = await clients.connect()
        assert await connection.ask(frame(GetStatus())) is not None

    serve(settings, act)


def test_too_many_open_files_do_not_end_the_checks_of_the_socket(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_socket, "_CHECK_S", 0.01)
    failures: list[object] = []

    def fail(*arguments: object) -> socket.socket:
        failures.append(arguments)
        raise OSError(24, "too many open files")

    async def act(clients: Clients) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(socket, "socket", fail)
            settings.socket.unlink()
            await until_async(lambda: len(failures) > 1)
        await until_async(settings.socket.is_socket)

    serve(settings, act)


def test_a_path_that_is_too_long_for_a_socket_gives_one_message(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()

    async def act(clients: Clients) -> None:
        pytest.fail("there is no socket")

    with pytest.raises(InputError, match="give a shorter --folder") as caught:
        serve(Settings(folder=str(folder)), act)
    assert caught.value.where == str(folder / "agent.sock")
