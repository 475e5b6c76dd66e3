# SPDX-License-Identifier: MIT
"""The socket of this node: who may speak to the agent, how much, and for how long."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.node.agent import Agent
from penstock.live.settings import Settings
from penstock.live.wire.frames import Complaints, Peer, frame, read_frame
from penstock.live.wire.messages import FROM_PROGRAM, MessageError, Refused

__all__ = ["local_socket"]

_LOG: Final = logging.getLogger("penstock.serve")
#: A program that says nothing for so long is left alone (s).
_PATIENCE_S: Final = 30.0
#: No user may have more connections at a time.
_MOST_CONNECTIONS: Final = 256
#: How often the socket is looked for (s).
_SOCKET_S: Final = 1.0


@asynccontextmanager
async def local_socket(settings: Settings, agent: Agent) -> AsyncIterator[None]:
    """Answer the processes of this node; a socket that is removed is made again."""
    door = _AgentSocket(agent, everybody=settings.users == "all")
    listener = await _listening(settings, door)
    keeping = asyncio.create_task(_keep_listening(settings, door, listener))
    try:
        yield
    finally:
        keeping.cancel()
        settings.socket.unlink(missing_ok=True)


async def _keep_listening(
    settings: Settings, door: _AgentSocket, listener: asyncio.Server
) -> None:
    number = _inode(settings.socket)
    complaints = Complaints(_LOG)
    try:
        while True:
            await asyncio.sleep(_SOCKET_S)
            if _inode(settings.socket) != number:
                complaints.add(f"{settings.socket} was removed, and is made again")
                listener.close()
                with suppress(InputError):
                    listener = await _listening(settings, door)
                    number = _inode(settings.socket)
    finally:
        listener.close()


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


async def _listening(settings: Settings, door: _AgentSocket) -> asyncio.Server:
    path = settings.socket
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o666 if settings.users == "all" else 0o600)
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen: {error.strerror or error}",
            where=str(path),
            remedy="give a shorter --folder",
        ) from None
    return await asyncio.start_unix_server(door.answer, sock=listener, backlog=512)


class _AgentSocket:
    """Answers connections; none of them can harm another one or the daemon."""

    def __init__(self, agent: Agent, *, everybody: bool) -> None:
        self._agent = agent
        self._everybody = everybody
        self._open: Counter[int] = Counter()
        self._complaints = Complaints(_LOG)

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the messages of one connection."""
        try:
            peer = Peer.of(writer.get_extra_info("socket"))
            with self._counted(peer.user) as connections:
                if connections <= _MOST_CONNECTIONS and self._may(peer):
                    await self._converse(peer, reader, writer)
        except (OSError, TimeoutError) as error:
            self._complaints.add(f"a connection broke: {error}")
        finally:
            writer.close()

    @contextmanager
    def _counted(self, user: int) -> Iterator[int]:
        """Count a connection of a user while it lasts."""
        self._open[user] += 1
        try:
            yield self._open[user]
        finally:
            self._open[user] -= 1
            self._open += Counter()  # Users without connections are forgotten.

    def _may(self, peer: Peer) -> bool:
        return self._everybody or peer.is_trusted

    async def _converse(
        self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            try:
                data = await asyncio.wait_for(
                    read_frame(reader, FROM_PROGRAM.largest_bytes), _PATIENCE_S
                )
                if data is None:
                    return
                message = FROM_PROGRAM(data)
            except MessageError as error:
                self._complaints.add(f"user {peer.user}: {error}")
                writer.write(frame(Refused(str(error))))
                return
            writer.write(frame(await self._agent.reply(peer, message)))
            await asyncio.wait_for(writer.drain(), _PATIENCE_S)
