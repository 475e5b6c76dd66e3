# SPDX-License-Identifier: MIT
"""Messages over the Unix socket of an agent, and the identity of the other process.

A frame is a message preceded by its length: four bytes, most significant first. The
kernel says which process and user are at the other end (SO_PEERCRED); a message cannot
claim another identity.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from penstock.errors import InputError, UnavailableError, plain_mismatch
from penstock.live.settings import Settings
from penstock.live.wire.folder import is_locked
from penstock.live.wire.identity import is_operator, process_start_ticks
from penstock.live.wire.messages import (
    FROM_PROGRAM,
    REPLY,
    FromProgram,
    Message,
    MessageError,
    Refused,
    encode,
    too_long_error,
)
from penstock.live.wire.subordinates import owner_of

if TYPE_CHECKING:
    # Every start of a program uses `Client`; asyncio would take 15 ms of it.
    import asyncio
    import logging

__all__ = [
    "ENDED",
    "OPERATOR_SOCKET",
    "RETRY_S",
    "SILENT_S",
    "START_S",
    "Client",
    "Peer",
    "WarningLog",
    "connect",
    "frame",
    "read_frame",
]

#: How long a daemon may take to start (s).
START_S: Final = 20.0
#: How long to wait for a daemon without a message (s).
SILENT_S: Final = 2.0
#: Time between two attempts to connect (s).
RETRY_S: Final = 0.02

_LENGTH: Final = struct.Struct(">I")
_CREDENTIALS: Final = struct.Struct("iII")
#: Start of a process that has ended: no process has it.
ENDED: Final = -1
_MOST_WARNINGS: Final = 100
_MOST_WARNINGS_OF_USER: Final = 20
#: Beside the socket of all users: the socket of root and of who runs the daemon.
OPERATOR_SOCKET: Final = "operator.sock"
#: Anybody may write: the socket is open to all users.
_OPEN_TO_ALL: Final = 0o002
#: Position of an invalid field at the end of an error message of msgspec.
_POSITION: Final = re.compile(r" - at \$\[(\d+)\]$")


class WarningLog:
    """Logs each warning once, and few of one user: users must not fill the disk."""

    def __init__(
        self, log: logging.Logger, owner_of: Callable[[int], int] = owner_of
    ) -> None:
        self._log = log
        self._owner_of = owner_of
        #: User id -> warnings about this user; None -> all others.
        self._logged: dict[int | None, set[str]] = {}

    def add(self, warning: str, user: int | None = None) -> None:
        """Log a warning if it is new; give the user who has caused it, if any."""
        owner = None if user is None else self._owner_of(user)
        logged = self._logged.setdefault(owner, set())
        most = _MOST_WARNINGS if user is None else _MOST_WARNINGS_OF_USER
        if warning not in logged and len(logged) < most:
            logged.add(warning)
            self._log.warning("%s", warning)


@dataclass(frozen=True, slots=True)
class Peer:
    """The process at the other end of a Unix socket, as the kernel knows it."""

    pid: int
    user: int
    """User id."""
    group: int
    """Group id."""
    start: int | None = None
    """When it started (clock ticks after boot); None: not looked up (`identified`)."""

    @classmethod
    def of(cls, connection: Any) -> Self:
        """Return the process at the other end of a connection."""
        size = _CREDENTIALS.size
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return cls(*_CREDENTIALS.unpack(data))

    def identified(self) -> Self:
        """Return the process with its start, which no later one of its number has.

        The kernel tells the number that it had when it connected. If it has ended, the
        start is `ENDED`.
        """
        start = process_start_ticks(self.pid)
        return replace(self, start=ENDED if start is None else start)

    @property
    def is_trusted(self) -> bool:
        """True if it runs as an operator."""
        return is_operator(self.user)


def frame(message: Message) -> bytes:
    """Return a message preceded by its length."""
    data = encode(message)
    return _LENGTH.pack(len(data)) + data


def _checked_frame(message: FromProgram) -> bytes:
    """Return the frame of a message that the agent will accept.

    Raise `InputError` with the name of the field if the agent would refuse it.
    """
    try:
        data = frame(message)
        FROM_PROGRAM(data[_LENGTH.size :])
    except MessageError as error:
        raise _at_field(error, message) from None
    except (OverflowError, UnicodeEncodeError) as error:
        raise InputError(
            f"cannot be sent: {error}", remedy="give smaller numbers, names in UTF-8"
        ) from None
    return data


def _at_field(error: MessageError, message: FromProgram) -> InputError:
    """Return the error with the name of the invalid field instead of its position."""
    problem = error.what.removeprefix("not a message: ").replace("`", "")
    position = _POSITION.search(problem)
    # The name of the message comes before its fields.
    field = message.__struct_fields__[int(position[1]) - 1] if position else ""
    return InputError(
        plain_mismatch(_POSITION.sub("", problem)),
        where=field.removesuffix("_name").removesuffix("_bytes"),
        remedy="give another value",
    )


async def read_frame(reader: asyncio.StreamReader, largest_bytes: int) -> bytes | None:
    """Return the bytes of the next message; None at the end of the stream."""
    try:
        (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if size > largest_bytes:
            raise too_long_error(size)
        return await reader.readexactly(size)
    except EOFError as error:  # asyncio.IncompleteReadError
        if getattr(error, "partial", b""):
            raise MessageError("a message is incomplete") from None
        return None


class Client:
    """A connection to the agent of this node; no call waits longer than `limit_s`.

    Parameters
    ----------
    path
        The socket of all users. Root and the user who runs the daemon take the one
        that is theirs, if there is one: no other user can occupy it.
    limit_s
        How long to wait, at most (s).

    Raises
    ------
    UnavailableError
        If nobody answers, or the daemon of another user does.
    """

    def __init__(self, path: Path, limit_s: float = 5.0) -> None:
        # Anybody can make the folder of this user in /tmp first, but only root in /run.
        is_own = os.geteuid() != 0 and path.parent == Settings().home
        if is_own and _is_of_stranger(path.parent):
            # It may never answer: do not wait for it.
            raise _stranger_error(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(limit_s)
        try:
            if not self._try_to_connect(path.with_name(OPERATOR_SOCKET)):
                self._connect(path, limit_s)
        except OSError as error:
            self._socket.close()
            raise UnavailableError(
                f"no penstock answers: {error.strerror or error}",
                where=str(path),
                remedy="start one with penstock serve, or check --folder",
            ) from None
        if is_own and not Peer.of(self._socket).is_trusted:
            self._socket.close()
            raise _stranger_error(path)
        self._stream = self._socket.makefile("rb")

    def _try_to_connect(self, path: Path) -> bool:
        """Connect to a socket that need not exist; return False if it fails."""
        try:
            self._socket.connect(str(path))
        except OSError:
            return False
        return True

    def _connect(self, path: Path, limit_s: float) -> None:
        """Connect; try again while many others connect, or this user is throttled."""
        deadline_s = time.monotonic() + limit_s
        while True:
            try:
                self._socket.connect(str(path))
            except BlockingIOError:
                if time.monotonic() > deadline_s:
                    raise
            except PermissionError:
                # A throttled user has no access, although the socket is open to all.
                is_open = path.stat().st_mode & _OPEN_TO_ALL
                if not is_open or time.monotonic() > deadline_s:
                    raise
            else:
                return
            time.sleep(RETRY_S)

    def ask(self, message: FromProgram, shown: Callable[[str], str] = str) -> Any:
        """Return the reply to a message.

        `shown` returns how a job key in the reason of a refusal is shown.

        Raises
        ------
        UnavailableError
            If no reply came, or the request may succeed later.
        InputError
            If the request was refused.
        """
        data = _checked_frame(message)
        try:
            self._socket.sendall(data)
            (size,) = _LENGTH.unpack(self._receive(_LENGTH.size))
            if size > REPLY.largest_bytes:
                raise too_long_error(size)
            reply = REPLY(self._receive(size))
        except OSError as error:
            raise UnavailableError(
                f"penstock does not answer: {error.strerror or error}",
                remedy="try again; penstock serve may be overloaded or ending",
            ) from None
        if isinstance(reply, Refused):
            kind = UnavailableError if reply.retry else InputError
            raise kind(reply.words(shown))
        return reply

    def _receive(self, size_bytes: int) -> bytes:
        data = self._stream.read(size_bytes)
        if len(data) < size_bytes:
            raise ConnectionResetError(0, "the connection was closed")
        return data

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_of_stranger(folder: Path) -> bool:
    """Return True if a folder, or a link of its name, belongs to another user."""
    try:
        return not is_operator(folder.lstat().st_uid)
    except OSError:
        return False


def _stranger_error(path: Path) -> UnavailableError:
    return UnavailableError(
        "the penstock there belongs to another user",
        where=str(path),
        remedy="give another --folder",
    )


def connect(
    settings: Settings,
    limit_s: float = 5.0,
    say_waiting: Callable[[], None] = lambda: None,
) -> Client:
    """Return a connection to the daemon; wait for one that is starting.

    `say_waiting` is called once if that takes longer than `SILENT_S`.

    Raises
    ------
    UnavailableError
        If there is no daemon, or it takes longer than `START_S` to start.
    """
    begun_s = time.monotonic()
    notice_s = begun_s + SILENT_S
    while True:
        try:
            return Client(settings.client_socket, limit_s)
        except UnavailableError:
            if not is_locked(settings.client_socket.parent):
                raise
        if time.monotonic() > notice_s:
            notice_s = inf
            say_waiting()
        if time.monotonic() > begun_s + START_S:
            raise UnavailableError(
                "penstock serve is still starting",
                where=str(settings.home),
                remedy="try again when it has said that it is ready",
            )
        time.sleep(RETRY_S)
