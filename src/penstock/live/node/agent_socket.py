# SPDX-License-Identifier: MIT
"""The Unix sockets through which processes of this node talk to the agent.

All users share one socket. Root and the user who runs the daemon also have one of their
own, where nobody can be before them: the prolog of the batch system uses it.

The kernel says who connects (SO_PEERCRED). This is looked at directly after accept: the
connection of a user who is not permitted, or over budget (`budgets`), is closed there.
A user who connects too often has no access to the socket for a while, by an access
control list, so that the kernel refuses the connections; other users are not affected.
Containers of a user have thousands of user ids, which have one budget. The list has
room for some of them; the connections of others are closed, with pauses, so that they
do not keep the daemon busy. A connection that is silent for `_TIMEOUT_S` is closed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from penstock.errors import InputError, UnavailableError
from penstock.live.node.agent import Agent
from penstock.live.node.budgets import Budgets, Holding, Spending
from penstock.live.settings import Settings
from penstock.live.wire.frames import (
    OPERATOR_SOCKET,
    Peer,
    WarningLog,
    frame,
    read_frame,
)
from penstock.live.wire.messages import (
    FROM_PROGRAM,
    FromProgram,
    MessageError,
    OnBehalfOf,
    Refused,
    Reply,
)

__all__ = ["local_socket"]

_LOG: Final = logging.getLogger("penstock.serve")
#: A connection that is silent for this long is closed (s).
_TIMEOUT_S: Final = 30.0
#: How long the last replies of a connection may take to be read (s).
_CLOSE_S: Final = 1.0
#: Connections that the kernel keeps until they are accepted.
_BACKLOG: Final = 512
#: Most connections to accept before other work is done.
_ACCEPT_AT_ONCE: Final = 64
#: How long to accept nothing if there are too many open files (s).
_PAUSE_S: Final = 0.1
#: How long a user who connects too often has no access to the socket (s).
_BARRED_S: Final = 1.0
#: How often users get access again, at most (s): each change rewrites the list.
_LET_IN_S: Final = 0.1
#: Most user ids that have no access at a time, and those of one owner: a list has a
#: largest size, and the kernel reads all of it for each connection.
_MOST_BARRED: Final = 1000
_MOST_BARRED_OF_OWNER: Final = 500
#: Errors that say that a list is too long for its file system.
_TOO_LONG: Final = (errno.E2BIG, errno.ENOSPC)
#: How long to accept nothing after connections of users who have access too often (s).
_REFUSED_PAUSE_S: Final = 0.01
#: How often to check that the socket file still exists (s).
_CHECK_S: Final = 1.0


@asynccontextmanager
async def local_socket(
    settings: Settings, agent: Agent, budgets: Budgets
) -> AsyncIterator[None]:
    """Serve the sockets; if a file of theirs is removed, create it again."""
    connections = _Connections(settings, agent, budgets)
    all_users = settings.users == "all"
    sockets = [_Listener(settings.socket, 0o666 if all_users else 0o600, connections)]
    if all_users:
        path = settings.socket.with_name(OPERATOR_SOCKET)
        sockets.append(_Listener(path, 0o600, connections))
    watch = asyncio.create_task(_watch_files(sockets))
    try:
        for each in sockets:
            each.listen()
        yield
    finally:
        watch.cancel()
        for each in sockets:
            each.close()
        connections.close()


async def _watch_files(sockets: list[_Listener]) -> None:
    while True:
        await asyncio.sleep(_CHECK_S)
        for each in sockets:
            each.restore()


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


class _Listener:
    """A socket file, and the connections that arrive there."""

    def __init__(self, path: Path, mode: int, connections: _Connections) -> None:
        self._path = path
        self._mode = mode
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._inode = 0
        #: Users who have no access -> when they get it again (s); the first ones first.
        self._barred: dict[int, float] = {}
        #: Owner of user ids -> how many of them have no access.
        self._barred_of: Counter[int] = Counter()
        #: How many users the access control list has room for, as far as is known.
        self._room = _MOST_BARRED
        #: True if the access control list bars users who are to have access again.
        self._is_stale = False

    def listen(self) -> None:
        """Create the socket file and accept connections."""
        flags = socket.SOCK_STREAM | socket.SOCK_NONBLOCK
        listener = socket.socket(socket.AF_UNIX, flags)
        try:
            self._path.unlink(missing_ok=True)
            listener.bind(str(self._path))
            self._path.chmod(self._mode)
            listener.listen(_BACKLOG)
        except OSError as error:
            listener.close()
            raise InputError(
                f"cannot listen: {error.strerror or error}",
                where=str(self._path),
                remedy="check that the folder is writable, or give a shorter --folder",
            ) from None
        self._socket, self._inode = listener, _inode(self._path)
        self._barred.clear()
        self._barred_of.clear()
        self._room, self._is_stale = _MOST_BARRED, False
        self._loop.add_reader(listener, self._accept, listener)

    def restore(self) -> None:
        """Listen again if the socket file was removed or replaced."""
        if _inode(self._path) != self._inode:
            complaints = self._connections.complaints
            complaints.add(f"{self._path} was removed; creating it again")
            self._stop()
            # OSError: too many open files. The next check tries again.
            with suppress(InputError, OSError):
                self.listen()

    def close(self) -> None:
        """Stop listening and remove the socket file."""
        self._stop()
        self._path.unlink(missing_ok=True)

    def _stop(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None

    def _accept(self, listener: socket.socket) -> None:
        """Accept the connections that have arrived, but do other work in between."""
        too_often: set[int] = set()
        for _ in range(_ACCEPT_AT_ONCE):
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                break
            except OSError as error:  # e.g. too many open files
                self._connections.complaints.add(f"no connection is accepted: {error}")
                self._pause(listener, _PAUSE_S)
                break
            user = self._connections.admit(connection)
            if user is not None:
                too_often.add(user)
        if too_often and not self._bar(too_often):
            self._pause(listener, _REFUSED_PAUSE_S)

    def _pause(self, listener: socket.socket, pause_s: float) -> None:
        """Accept nothing for a while."""
        if self._loop.remove_reader(listener):
            self._loop.call_later(pause_s, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if listener is self._socket:
            self._loop.add_reader(listener, self._accept, listener)

    # --- Users who connect too often --------------------------------------------------

    def _bar(self, users: Iterable[int]) -> bool:
        """Let the kernel refuse the connections of users for a while.

        Return False if some of them have access: there is no room for them, or the file
        system has no access control lists.
        """
        until_s = self._loop.time() + _BARRED_S
        # Then `_let_in` is not under way.
        was_empty = not self._barred and not self._is_stale
        before = len(self._barred)
        are_all_barred = True
        for user in users:
            owner = self._connections.budgets.owner(user)
            has_room = (
                len(self._barred) < self._room
                and self._barred_of[owner] < _MOST_BARRED_OF_OWNER
            )
            if user not in self._barred and has_room:
                self._barred[user] = until_s
                self._barred_of[owner] += 1
            are_all_barred = are_all_barred and user in self._barred
        if len(self._barred) > before and (error := self._set_access()):
            self._forget_last(len(self._barred) - before)
            if error in _TOO_LONG and self._barred:
                self._room = len(self._barred)
            are_all_barred = False
        if self._barred and was_empty:
            self._loop.call_later(_BARRED_S, self._let_in)
        return are_all_barred

    def _let_in(self) -> None:
        """Give users access whose time is over."""
        now_s = self._loop.time()
        ended = [user for user, until_s in self._barred.items() if until_s <= now_s]
        for user in ended:
            self._forget(user)
        if ended or self._is_stale:
            self._is_stale = bool(self._set_access())
        if not self._barred:
            self._room = _MOST_BARRED
        if self._barred or self._is_stale:
            self._loop.call_later(_LET_IN_S, self._let_in)

    def _forget_last(self, count: int) -> None:
        """Forget the last users who were barred; the list does not name them."""
        for user in list(self._barred)[-count:]:
            self._forget(user)

    def _forget(self, user: int) -> None:
        del self._barred[user]
        self._barred_of[self._connections.budgets.owner(user)] -= 1

    def _set_access(self) -> int:
        """Write the access control list; return the number of an error, or 0."""
        access = _access_list(sorted(self._barred))
        try:
            os.setxattr(self._path, "system.posix_acl_access", access)
        except OSError as error:
            return error.errno or errno.EIO
        return 0


def _access_list(barred: list[int]) -> bytes:
    """Return a POSIX access control list: all may read and write but some users."""
    read_and_write, nothing, nobody = 6, 0, 0xFFFFFFFF
    owner, user, group, mask, others = 0x01, 0x02, 0x04, 0x10, 0x20
    entries = [
        (owner, read_and_write, nobody),
        *((user, nothing, each) for each in barred),
        (group, read_and_write, nobody),
        (mask, read_and_write, nobody),
        (others, read_and_write, nobody),
    ]
    version = 2
    return struct.pack("<I", version) + b"".join(
        struct.pack("<HHI", *entry) for entry in entries
    )


class _Connections:
    """Answers connections; a faulty one affects neither others nor the daemon."""

    def __init__(self, settings: Settings, agent: Agent, budgets: Budgets) -> None:
        self._all_users = settings.users == "all"
        self._agent = agent
        self.budgets = budgets
        self._tasks: set[asyncio.Task[None]] = set()
        self.complaints = WarningLog(_LOG)

    def close(self) -> None:
        """Close all connections."""
        for task in self._tasks:
            task.cancel()

    def admit(self, connection: socket.socket) -> int | None:
        """Answer a new connection, or close it; return a user who connects too often.

        Nothing is spent on a connection before its user was found to be permitted.
        """
        try:
            peer = Peer.of(connection)
        except OSError:
            connection.close()
            return None
        user, now_s = peer.user, time.monotonic()
        is_too_often = not self.budgets.take(user, Spending.CONNECTS, now_s)
        if (
            is_too_often
            or not (self._all_users or peer.is_trusted)
            or not self.budgets.hold(user, Holding.CONNECTIONS, now_s)
        ):
            connection.close()
            return user if is_too_often else None
        connection.settimeout(0.0)
        peer = peer.identified()
        task = asyncio.get_running_loop().create_task(self._answer(peer, connection))
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_end, user))
        return None

    def _on_end(self, user: int, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.budgets.release(user, Holding.CONNECTIONS)

    async def _answer(self, peer: Peer, connection: socket.socket) -> None:
        """Answer the messages of one connection; return when it is closed."""
        # If the stream cannot be opened, the connection is closed all the same.
        with connection:
            reader, writer = await asyncio.open_unix_connection(sock=connection)
            try:
                await self._exchange(peer, reader, writer)
            except (OSError, TimeoutError) as error:
                self.complaints.add(f"a connection failed: {error}", peer.user)
            finally:
                await _close(writer)

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
                self.complaints.add(f"user {peer.user}: {error}", peer.user)
                writer.write(frame(Refused(str(error))))
                return
            try:
                reply = await self._reply(peer, message)
            except UnavailableError as error:
                # Nothing more is read: what has arrived costs nothing.
                writer.write(frame(Refused(str(error), retry=True)))
                return
            writer.write(frame(reply))
            await asyncio.wait_for(writer.drain(), _TIMEOUT_S)

    async def _reply(self, peer: Peer, message: FromProgram) -> Reply:
        """Return the reply of the agent; trusted peers may ask as another user."""
        if isinstance(message, OnBehalfOf):
            if not peer.is_trusted:
                return Refused("only root may ask on behalf of another user")
            # From here on with the rights and the budget of that user.
            peer, message = replace(peer, user=message.user), message.request
        return await self._agent.reply(peer, message)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close a connection; what the other end does not read in time is dropped."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), _CLOSE_S)
    except (OSError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
