# SPDX-License-Identifier: MIT
"""Make a listening TCP socket ignore new connections for a while.

A filter of the kernel drops the SYN packets of new connections. Their senders try again
after a second; connections that exist are not affected. The socket may belong to a
library, such as ZeroMQ: it is found by its address among the files of this process.
"""

from __future__ import annotations

import ctypes
import os
import socket
from contextlib import suppress
from typing import Final, Self

__all__ = ["SynFilter"]

_SO_ATTACH_FILTER: Final = 26
_SO_DETACH_FILTER: Final = 27
#: Classic BPF: (code, jump if true, jump if false, constant). The packet begins with
#: the TCP header, whose byte 13 has the flags.
_DROP_SYN: Final = (
    (0x30, 0, 0, 13),  # load the flags
    (0x54, 0, 0, 0x12),  # keep SYN and ACK
    (0x15, 0, 1, 0x02),  # SYN alone?
    (0x06, 0, 0, 0),  # yes: drop the packet
    (0x06, 0, 0, 0xFFFFFFFF),  # no: keep it
)


class _Instruction(ctypes.Structure):
    """``struct sock_filter`` of the kernel."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("constant", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    """``struct sock_fprog`` of the kernel."""

    _fields_ = (
        ("length", ctypes.c_uint16),
        ("instructions", ctypes.POINTER(_Instruction)),
    )


class SynFilter:
    """A filter for the SYN packets of one listening socket."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener

    @classmethod
    def of_address(cls, host: str, port: int) -> Self | None:
        """Return the filter of the socket of this process that listens there.

        Return None if no socket does.
        """
        try:
            names = os.listdir("/proc/self/fd")  # noqa: PTH208 - numbers, not paths
        except OSError:
            return None  # this process has too many open files
        for name in names:
            listener = _listener(int(name))
            if listener is None:
                continue
            if listener.getsockname()[:2] == (host, port):
                return cls(listener)
            listener.close()
        return None

    def attach(self) -> None:
        """Drop the SYN packets of new connections."""
        lines = (_Instruction * len(_DROP_SYN))(
            *(_Instruction(*line) for line in _DROP_SYN)
        )
        program = bytes(_Program(len(lines), lines))
        self._listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)

    def detach(self) -> None:
        """Accept new connections again; do nothing if there is no filter."""
        with suppress(FileNotFoundError):
            self._listener.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)

    def close(self) -> None:
        """Detach the filter and forget the socket; do nothing the second time."""
        if self._listener.fileno() >= 0:
            self.detach()
            self._listener.close()


def _listener(descriptor: int) -> socket.socket | None:
    """Return a copy of a descriptor, if it is that of a TCP socket that listens."""
    try:
        # Only sockets: a copy of another file would have to be closed by hand.
        if not os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):  # noqa: PTH115
            return None
        copy = socket.socket(fileno=os.dup(descriptor))
    except OSError:
        return None  # it was closed meanwhile
    is_internet = copy.family in (socket.AF_INET, socket.AF_INET6)
    if is_internet and copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return copy
    copy.close()
    return None
