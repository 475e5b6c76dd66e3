# SPDX-License-Identifier: MIT
"""Agents on other nodes: ZeroMQ between them and the controller, under CURVE keys.

``penstock serve --make-keys FOLDER`` makes four files: ``controller.key_secret`` and
``agent.key`` stay with the controller, ``agent.key_secret`` and ``controller.key`` go
to the nodes. Who does not hold the agents' secret is not heard; who does not hold the
controller's is not believed. Secrets must be readable by their owner only.

Nothing here waits: what cannot be sent now is dropped, and said again by the heartbeat.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import zmq
import zmq.asyncio
import zmq.auth
from zmq.auth.asyncio import AsyncioAuthenticator

from penstock.errors import InputError
from penstock.live.node.agent import Agent
from penstock.live.settings import Settings
from penstock.live.wire.frames import Complaints
from penstock.live.wire.messages import (
    FROM_AGENT,
    LARGEST_BYTES,
    TO_AGENT,
    Message,
    MessageError,
    ToAgent,
    encode,
)

if TYPE_CHECKING:
    from penstock.live.daemon.control_loop import ControlLoop

__all__ = ["join", "listen", "make_keys"]

_LOG: Final = logging.getLogger("penstock.remote")
_HEARTBEAT_MS: Final = 1000
_SILENCE_MS: Final = 5000


def make_keys(folder: str) -> None:
    """Make the keys of a controller and of its agents."""
    path = Path(folder)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("controller", "agent"):
            if (path / f"{name}.key_secret").exists():
                raise InputError(
                    "there is a key already", where=str(path), remedy="remove it first"
                )
            old = os.umask(0o077)
            try:
                zmq.auth.create_certificates(path, name)
            finally:
                os.umask(old)
    except OSError as error:
        raise InputError(
            f"no key can be made: {error.strerror}", where=folder
        ) from None


@asynccontextmanager
async def listen(
    settings: Settings, home: Path, hub: ControlLoop
) -> AsyncIterator[None]:
    """Let agents of other nodes speak with the controller."""
    keys = _key_folder(settings, home)
    public, secret = _secret_key(keys / "controller.key_secret")
    context = zmq.asyncio.Context()
    guard = AsyncioAuthenticator(context)
    guard.start()
    guard.configure_curve(domain="*", location=str(keys))
    socket = context.socket(zmq.ROUTER)
    _prepare(socket, public, secret)
    socket.curve_server = True
    socket.router_handover = True
    _attach(socket.bind, settings.listen)
    hub.remote = lambda agent, message: _send(socket, message, agent)
    listening = asyncio.create_task(_hear_agents(socket, hub))
    try:
        yield
    finally:
        hub.remote = None
        await _ended(listening)
        guard.stop()
        context.destroy(linger=0)


@asynccontextmanager
async def join(
    settings: Settings, home: Path, pages: Path, node: str
) -> AsyncIterator[Agent]:
    """Be the agent of a controller on another node."""
    keys = _key_folder(settings, home)
    public, secret = _secret_key(keys / "agent.key_secret")
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.DEALER)
    _prepare(socket, public, secret)
    socket.curve_serverkey = _key(keys / "controller.key")[0]
    socket.identity = node.encode()
    socket.immediate = True
    _attach(socket.connect, settings.join)
    agent = Agent(pages, lambda message: _send(socket, message), settings.journals)
    listening = asyncio.create_task(_hear_controller(socket, agent))
    try:
        yield agent
    finally:
        await _ended(listening)
        context.destroy(linger=0)


async def _hear_agents(socket: Any, hub: ControlLoop) -> None:
    complaints = Complaints(_LOG)
    while True:
        identity, *parts = await socket.recv_multipart()
        agent = identity.decode(errors="replace")
        if agent in hub.links:
            complaints.add(f"a second agent calls itself {agent!r}: it is not heard")
            continue
        try:
            hub.hear(agent, FROM_AGENT(b"".join(parts)))
        except MessageError as error:
            complaints.add(f"agent {agent!r}: {error}")


async def _hear_controller(socket: Any, agent: Agent) -> None:
    complaints = Complaints(_LOG)
    while True:
        parts = await socket.recv_multipart()
        try:
            message: ToAgent = TO_AGENT(b"".join(parts))
        except MessageError as error:
            complaints.add(f"the controller: {error}")
        else:
            agent.receive(message)


def _send(socket: Any, message: Message, agent: str | None = None) -> None:
    parts = [encode(message)] if agent is None else [agent.encode(), encode(message)]
    sent = socket.send_multipart(parts, zmq.NOBLOCK)
    # Asked for, so that a message that could not be sent is no unnoticed error.
    sent.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _prepare(socket: Any, public: bytes, secret: bytes) -> None:
    socket.linger = 0
    socket.maxmsgsize = LARGEST_BYTES
    socket.heartbeat_ivl = _HEARTBEAT_MS
    socket.heartbeat_timeout = _SILENCE_MS
    socket.curve_publickey = public
    socket.curve_secretkey = secret


def _attach(attach: Any, address: str) -> None:
    try:
        attach(address)
    except zmq.ZMQError as error:
        raise InputError(
            f"cannot be used: {error.strerror}",
            where=address,
            remedy="write tcp://HOST:PORT",
        ) from None


def _key_folder(settings: Settings, home: Path) -> Path:
    return Path(settings.keys) if settings.keys else home / "keys"


def _secret_key(path: Path) -> tuple[bytes, bytes]:
    """Return public and secret key of a file that only its owner can read."""
    public, secret = _key(path)
    if secret is None:
        raise InputError("holds no secret key", where=str(path))
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            "others can read this key", where=str(path), remedy="chmod 600"
        )
    return public, secret


def _key(path: Path) -> tuple[bytes, bytes | None]:
    remedy = "make keys with penstock serve --make-keys FOLDER"
    if not path.exists():
        raise InputError(
            "is no key: there is no such file", where=str(path), remedy=remedy
        )
    try:
        return zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its content is none"
        raise InputError(
            f"is no key: {reason}", where=str(path), remedy=remedy
        ) from None
