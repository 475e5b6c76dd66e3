# SPDX-License-Identifier: MIT
"""Serves an application with uvicorn, with bounds on its connections.

A connection that has sent no complete request for `_IDLE_S` is closed, and so is one
whose reader takes nothing for this long. If there are more than `_MOST_CONNECTIONS`,
one is closed that waits for a request or its body: of the sender that has most of them,
the one that waits longest. So a sender of thousands of connections does not keep others
out.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.live.wire.frames import Peer
from penstock.live.wire.peers import CONNECTION, UNIX_HOST

__all__ = ["serve_app"]

_MOST_CONNECTIONS: Final = 256
#: Connections that wait to be accepted; so many are accepted at once.
_BACKLOG: Final = 512
#: How long a connection may do nothing (s).
_IDLE_S: Final = 20.0
#: Longest head of a request (bytes).
_LONGEST_HEAD: Final = 16384
#: How long answers may go on after the end (s).
_GRACE_S: Final = 1
#: Bits of an IPv6 address that a machine chooses itself.
_IPV6_HOST_BITS: Final = 64


class _BoundedConnection(H11Protocol):
    """A connection that is closed if it does nothing."""

    def connection_made(self, transport: Any) -> None:
        """Accept a connection; close another one if there are too many."""
        super().connection_made(transport)
        self._received = False
        self._unsent_bytes = 0
        #: When the connection began to wait for its next request.
        self.waits_since_s = self.loop.time()
        peer = transport.get_extra_info("socket")
        if peer.family == socket.AF_UNIX:
            self.client = UNIX_HOST, Peer.of(peer).user
        self.sender = _sender(self.client)
        self.app = _with_connection(self.app)
        self._make_room()
        self.loop.call_later(_IDLE_S, self._check)

    def _make_room(self) -> None:
        """Close a connection if there are too many, this one if all others answer."""
        connections: Any = self.connections
        alive = [each for each in connections if not each.transport.is_closing()]
        if len(alive) <= _MOST_CONNECTIONS:
            return
        waiting = [each for each in alive if not each.is_answering]
        of_sender = Counter(each.sender for each in waiting)
        longest = min(waiting, key=lambda x: (-of_sender[x.sender], x.waits_since_s))
        longest.transport.abort()

    @property
    def is_answering(self) -> bool:
        """True from a complete request until its answer is sent."""
        cycle = self.cycle
        return cycle is not None and not (cycle.more_body or cycle.response_complete)

    def data_received(self, data: bytes) -> None:
        """Handle a part of a request."""
        self._received = True
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Handle the end of an answer."""
        self.waits_since_s = self.loop.time()
        super().on_response_complete()

    def _check(self) -> None:
        """Close the connection if nothing has happened since the last check."""
        if self.transport.is_closing():
            return
        unsent_bytes = self.transport.get_write_buffer_size()
        # A stuck reader leaves the buffer as it was: the stream waits until it is sent.
        is_stuck = 0 < unsent_bytes == self._unsent_bytes
        if is_stuck or not (self.is_answering or self._received):
            self.transport.abort()
            return
        # Bytes of a request that is never completed do not count twice.
        self._received, self._unsent_bytes = False, unsent_bytes
        self.loop.call_later(_IDLE_S, self._check)


def _with_connection(app: Any) -> Any:
    """Return an application that remembers facts about one connection."""
    facts: dict[str, Any] = {}

    async def with_facts(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, CONNECTION: facts}, receive, send)

    return with_facts


def _sender(client: tuple[str, int] | None) -> tuple[str, int]:
    """Return who opens connections: a user, an address, or a network of IPv6."""
    host, port = client or ("", 0)
    if host == UNIX_HOST:
        return host, port
    try:
        address = ip_address(host)
    except ValueError:
        return host, 0
    if isinstance(address, IPv6Address) and not address.ipv4_mapped:
        # One machine can use all addresses of its network.
        return "", int(address) >> _IPV6_HOST_BITS
    return host, 0


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
        backlog=_BACKLOG,
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
