# SPDX-License-Identifier: MIT
"""ZeroMQ between the controller and agents on other nodes, encrypted with CURVE keys.

``penstock serve --make-keys FOLDER`` creates four files: ``controller.key_secret`` and
``agent.key`` for the controller, ``agent.key_secret`` and ``controller.key`` for the
nodes. The controller accepts only agents that hold the agents' secret key; an agent
accepts only the controller that holds the controller's. Only their owner may read the
secret keys.

Sending never blocks: a message that cannot be sent now is dropped. The next heartbeat
shows the loss, and the agent says hello again.
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
from penstock.live.wire.frames import WarningLog
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
_MAKE_KEYS: Final = "create keys with penstock serve --make-keys FOLDER"


def make_keys(folder: str) -> None:
    """Create the keys of a controller and of its agents in a folder."""
    path = Path(folder)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in ("controller", "agent"):
            if (path / f"{name}.key_secret").exists():
                raise InputError(
                    "already contains keys",
                    where=str(path),
                    remedy="remove them first, or give another folder",
                )
            old = os.umask(0o077)
            try:
                zmq.auth.create_certificates(path, name)
            finally:
                os.umask(old)
    except OSError as error:
        raise InputError(
            f"keys cannot be created: {error.strerror}",
            where=folder,
            remedy="choose a folder in which you can create files",
        ) from None


@asynccontextmanager
async def listen(
    settings: Settings, home: Path, control_loop: ControlLoop
) -> AsyncIterator[None]:
    """Connect agents of other nodes with the controller."""
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
    control_loop.remote = lambda agent, message: _send(socket, message, agent)
    listening = asyncio.create_task(_receive_from_agents(socket, control_loop))
    try:
        yield
    finally:
        control_loop.remote = None
        await _cancel(listening)
        guard.stop()
        context.destroy(linger=0)


@asynccontextmanager
async def join(
    settings: Settings, home: Path, pages: Path, node: str
) -> AsyncIterator[Agent]:
    """Return an agent that is connected with a controller on another node."""
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
    listening = asyncio.create_task(_receive_from_controller(socket, agent))
    try:
        yield agent
    finally:
        await _cancel(listening)
        context.destroy(linger=0)


async def _receive_from_agents(socket: Any, control_loop: ControlLoop) -> None:
    warnings = WarningLog(_LOG)
    while True:
        identity, *parts = await socket.recv_multipart()
        agent = identity.decode(errors="replace")
        if agent in control_loop.links:
            warnings.add(
                f"a second agent calls itself {agent!r}: its messages are ignored "
                "(give each node its own --node)"
            )
            continue
        try:
            control_loop.receive(agent, FROM_AGENT(b"".join(parts)))
        except MessageError as error:
            warnings.add(f"agent {agent!r}: {error}")


async def _receive_from_controller(socket: Any, agent: Agent) -> None:
    warnings = WarningLog(_LOG)
    while True:
        parts = await socket.recv_multipart()
        try:
            message: ToAgent = TO_AGENT(b"".join(parts))
        except MessageError as error:
            warnings.add(f"the controller: {error}")
        else:
            agent.receive(message)


def _send(socket: Any, message: Message, agent: str | None = None) -> None:
    """Send a message to the controller, or to an agent; drop it if that blocks."""
    parts = [encode(message)] if agent is None else [agent.encode(), encode(message)]
    sent = socket.send_multipart(parts, zmq.NOBLOCK)
    # Retrieve the exception of a message that could not be sent, or asyncio logs it.
    sent.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _cancel(task: asyncio.Task[None]) -> None:
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
    """Return the public and secret key of a file; raise if others can read it."""
    public, secret = _key(path)
    if secret is None:
        raise InputError("contains no secret key", where=str(path), remedy=_MAKE_KEYS)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InputError(
            "other users can read this secret key",
            where=str(path),
            remedy=f"chmod 600 {path}",
        )
    return public, secret


def _key(path: Path) -> tuple[bytes, bytes | None]:
    """Return the public key of a file, and its secret key if it has one."""
    if not path.exists():
        raise InputError(
            "this key file does not exist", where=str(path), remedy=_MAKE_KEYS
        )
    try:
        return zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None)
        problem = f"cannot be read: {reason}" if reason else "is not a valid key file"
        raise InputError(problem, where=str(path), remedy=_MAKE_KEYS) from None
