# SPDX-License-Identifier: MIT
"""Serves an application with uvicorn, with bounds on its connections.

A connection that has sent no complete request for `_IDLE_S` is closed, and so is one
whose reader takes nothing for this long. Connections beyond `_MOST_CONNECTIONS` are
closed at once.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["serve_app"]

_MOST_CONNECTIONS: Final = 256
#: How long a connection may do nothing (s).
_IDLE_S: Final = 20.0
#: Longest head of a request (bytes).
_LONGEST_HEAD: Final = 16384
#: How long answers may go on after the end (s).
_GRACE_S: Final = 1


class _BoundedConnection(H11Protocol):
    """A connection that is closed if it does nothing."""

    def connection_made(self, transport: Any) -> None:
        """Accept a connection, or close it if there are too many."""
        super().connection_made(transport)
        self._received = False
        self._unsent_bytes = 0
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.abort()
        else:
            self.loop.call_later(_IDLE_S, self._check)

    def data_received(self, data: bytes) -> None:
        """Handle a part of a request."""
        self._received = True
        super().data_received(data)

    def _check(self) -> None:
        """Close the connection if nothing has happened since the last check."""
        if self.transport.is_closing():
            return
        is_answering = self.cycle is not None and not self.cycle.response_complete
        unsent_bytes = self.transport.get_write_buffer_size()
        # A stuck reader leaves the buffer as it was: the stream waits until it is sent.
        is_stuck = 0 < unsent_bytes == self._unsent_bytes
        if is_stuck or not (is_answering or self._received):
            self.transport.abort()
            return
        # Bytes of a request that is never completed do not count twice.
        self._received, self._unsent_bytes = False, unsent_bytes
        self.loop.call_later(_IDLE_S, self._check)


async def serve_app(
    app: ASGIApp, listener: socket.socket, ended: asyncio.Event
) -> None:
    """Serve an application at a socket until SIGTERM, or until `ended` is set."""
    config = uvicorn.Config(
        app,
        http=_BoundedConnection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = uvicorn.Server(config)

    async def stop() -> None:
        await ended.wait()
        server.should_exit = True

    task = asyncio.create_task(stop())
    try:
        await server.serve(sockets=[listener])
    finally:
        task.cancel()
