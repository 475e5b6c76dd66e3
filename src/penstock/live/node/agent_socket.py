# SPDX-License-Identifier: MIT
"""The Unix socket through which processes of this node talk to the agent.

Limits: only permitted users are answered, each user has at most `_MAX_CONNECTIONS`
connections, and a connection that is silent for `_TIMEOUT_S` is closed.
"""

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
from penstock.live.wire.frames import Peer, WarningLog, frame, read_frame
from penstock.live.wire.messages import FROM_PROGRAM, MessageError, Refused

__all__ = ["local_socket"]

_LOG: Final = logging.getLogger("penstock.serve")
#: A connection that is silent for this long is closed (s).
_TIMEOUT_S: Final = 30.0
#: Most connections that one user may have open.
_MAX_CONNECTIONS: Final = 256
#: How often to check that the socket file still exists (s).
_CHECK_S: Final = 1.0


@asynccontextmanager
async def local_socket(settings: Settings, agent: Agent) -> AsyncIterator[None]:
    """Serve the socket; if its file is removed, create it again."""
    agent_socket = _AgentSocket(settings, agent)
    await agent_socket.listen()
    watch = asyncio.create_task(agent_socket.watch_file())
    try:
        yield
    finally:
        watch.cancel()
        agent_socket.close()


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


class _AgentSocket:
    """Answers connections; a faulty one affects neither others nor the daemon."""

    def __init__(self, settings: Settings, agent: Agent) -> None:
        self._path = settings.socket
        self._all_users = settings.users == "all"
        self._agent = agent
        self._server: asyncio.Server | None = None
        self._inode = 0
        #: User id -> number of open connections.
        self._connections: Counter[int] = Counter()
        self._complaints = WarningLog(_LOG)

    async def listen(self) -> None:
        """Create the socket file and accept connections."""
        listener = socket.socket(
            socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK
        )
        try:
            self._path.unlink(missing_ok=True)
            listener.bind(str(self._path))
            self._path.chmod(0o666 if self._all_users else 0o600)
        except OSError as error:
            listener.close()
            raise InputError(
                f"cannot listen: {error.strerror or error}",
                where=str(self._path),
                remedy="check that the folder is writable, or give a shorter --folder",
            ) from None
        self._server = await asyncio.start_unix_server(
            self.answer, sock=listener, backlog=512
        )
        self._inode = _inode(self._path)

    async def watch_file(self) -> None:
        """Listen again whenever the socket file was removed or replaced."""
        while True:
            await asyncio.sleep(_CHECK_S)
            if _inode(self._path) != self._inode:
                self._complaints.add(f"{self._path} was removed; creating it again")
                self._stop_listening()
                with suppress(InputError):
                    await self.listen()

    def close(self) -> None:
        """Stop listening and remove the socket file."""
        self._stop_listening()
        self._path.unlink(missing_ok=True)

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the messages of one connection."""
        try:
            peer = Peer.of(writer.get_extra_info("socket"))
            with self._counting(peer.user) as connections:
                if connections <= _MAX_CONNECTIONS and self._is_permitted(peer):
                    await self._exchange(peer, reader, writer)
        except (OSError, TimeoutError) as error:
            self._complaints.add(f"a connection failed: {error}")
        finally:
            writer.close()

    @contextmanager
    def _counting(self, user: int) -> Iterator[int]:
        """Yield the number of open connections of a user, including this one."""
        self._connections[user] += 1
        try:
            yield self._connections[user]
        finally:
            self._connections[user] -= 1
            self._connections += Counter()  # Drops users with no connection left.

    def _is_permitted(self, peer: Peer) -> bool:
        return self._all_users or peer.is_trusted

    async def _exchange(
        self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            try:
                data = await asyncio.wait_for(
                    read_frame(reader, FROM_PROGRAM.largest_bytes), _TIMEOUT_S
                )
                if data is None:
                    return
                message = FROM_PROGRAM(data)
            except MessageError as error:
                self._complaints.add(f"user {peer.user}: {error}")
                writer.write(frame(Refused(str(error))))
                return
            writer.write(frame(await self._agent.reply(peer, message)))
            await asyncio.wait_for(writer.drain(), _TIMEOUT_S)
