# SPDX-License-Identifier: MIT
"""ZeroMQ between the controller and agents and mounts on other nodes.

All messages are encrypted with CURVE keys (`penstock.live.wire.curve`). Messages of
agents go to the control loop; reports of mounts go to `MountCredits`, which decides
once per period while there are mounts.

Sending never blocks: a message that cannot be sent now is dropped. The next heartbeat
shows the loss, and the agent says hello again.

New keys in the folder of keys are used without a restart (`_follow_keys`): all
connections are made anew, which takes less time than a lease, unless new connections
exceed their budget.

A handshake costs the controller processor time, whoever begins it. So new connections
are limited (`_limit_connections`): beyond the budget the kernel ignores them for a
while.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import zmq
import zmq.asyncio
from zmq.auth.asyncio import AsyncioAuthenticator

from penstock.errors import InputError
from penstock.live.control.mount_credits import MountCredits
from penstock.live.node.agent import Agent
from penstock.live.node.budgets import TokenBucket
from penstock.live.settings import Settings
from penstock.live.wire.curve import (
    KEYS_S,
    KeyWatch,
    TrustedKeys,
    attach,
    prepare_client,
    prepare_server,
    renew_client,
)
from penstock.live.wire.frames import WarningLog
from penstock.live.wire.messages import (
    FROM_AGENT,
    TO_AGENT,
    Message,
    MessageError,
    MountReport,
    ToAgent,
    encode,
)
from penstock.live.wire.syn_filter import SynFilter
from penstock.qos.credit.allocator import PERIOD_S

if TYPE_CHECKING:
    from penstock.live.daemon.control_loop import ControlLoop

__all__ = ["join", "listen"]

_LOG: Final = logging.getLogger("penstock.remote")
#: Time between two attempts to bind an address that is not free yet (s).
_BIND_S: Final = 0.05
#: After this time without success, the reason is logged (s).
_BIND_LIMIT_S: Final = 2.0
#: New connections of all peers together: per second, and saved up at most. A cluster of
#: a thousand nodes may start at once.
_CONNECTS: Final = (100.0, 1000.0)
#: For how long new connections are ignored if there were too many (s).
_IGNORED_S: Final = 0.5
#: Time between two warnings about too many connections (s).
_WARN_S: Final = 60.0
_TOO_MANY: Final = (
    "more than %g new connections per second at %s: some agents and mounts wait "
    "(ss -tn shows who connects)"
)
#: Where ZeroMQ tells about accepted connections.
_ACCEPTED: Final = "inproc://accepted"


@asynccontextmanager
async def listen(
    settings: Settings, home: Path, control_loop: ControlLoop
) -> AsyncIterator[None]:
    """Connect agents of other nodes with the controller."""
    keys = _key_folder(settings, home)
    async with AsyncExitStack() as stack:
        context = zmq.asyncio.Context()
        stack.callback(context.destroy, linger=0)
        guard = AsyncioAuthenticator(context)
        guard.start()
        stack.callback(guard.stop)
        trusted = TrustedKeys(keys)
        guard.configure_curve_callback(credentials_provider=trusted)
        socket = context.socket(zmq.ROUTER)
        prepare_server(socket, keys)
        socket.router_handover = True
        attach(socket.bind, settings.listen)
        control_loop.remote = lambda agent, message: _send(socket, message, agent)
        mount_credits = MountCredits(secrets.token_hex(8))
        for each in (
            _receive_from_agents(socket, trusted, control_loop, mount_credits),
            _send_credit(socket, mount_credits),
            _follow_keys(keys, partial(_renew_server, socket, trusted, keys)),
            _limit_connections(socket, TokenBucket(*_CONNECTS)),
        ):
            stack.push_async_callback(_cancel, _start(each))
        stack.callback(setattr, control_loop, "remote", None)
        yield


@asynccontextmanager
async def join(
    settings: Settings, home: Path, pages: Path, node: str
) -> AsyncIterator[Agent]:
    """Return an agent that is connected with a controller on another node."""
    keys = _key_folder(settings, home)
    async with AsyncExitStack() as stack:
        context = zmq.asyncio.Context()
        stack.callback(context.destroy, linger=0)
        socket = context.socket(zmq.DEALER)
        prepare_client(socket, keys)
        socket.identity = node.encode()
        attach(socket.connect, settings.join)
        agent = Agent(
            pages,
            lambda message: _send(socket, message),
            settings.journals,
            spares=home / "spares",
        )

        async def renew() -> None:
            renew_client(socket, keys, settings.join)

        for each in (
            _receive_from_controller(socket, agent),
            _follow_keys(keys, renew),
        ):
            stack.push_async_callback(_cancel, _start(each))
        yield agent


async def _follow_keys(keys: Path, renew: Callable[[], Awaitable[None]]) -> None:
    """Call `renew` whenever the keys in a folder were replaced."""
    watch = KeyWatch(keys)
    while True:
        await asyncio.sleep(KEYS_S)
        if not watch.has_changed():
            continue
        try:
            await renew()
        except InputError as error:
            _LOG.warning("the new keys are not used: %s", error)
        else:
            _LOG.info("the new keys in %s are used", keys)


async def _renew_server(socket: Any, trusted: TrustedKeys, keys: Path) -> None:
    """Bind the socket of the controller again, with the keys in the folder now.

    This ends the connections of all agents and mounts; they connect again. Raise
    `InputError` if the keys cannot be used; then nothing has changed.
    """
    prepare_server(socket, keys)
    trusted.load()
    address = socket.last_endpoint.decode()
    socket.unbind(address)
    complaints = WarningLog(_LOG)
    begun_s = time.monotonic()
    while True:
        try:
            socket.bind(address)
        except zmq.ZMQError as error:
            # The former listener ends in another thread.
            if time.monotonic() > begun_s + _BIND_LIMIT_S:
                complaints.add(f"{address} cannot be bound again: {error}")
            await asyncio.sleep(_BIND_S)
        else:
            return


async def _limit_connections(socket: Any, budget: TokenBucket) -> None:
    """Let the kernel ignore new connections for a while whenever there are too many.

    This limits processor time, not who connects: peers are known only after the
    handshake. While an attack lasts, an agent or mount may need many tries.
    """
    loop = asyncio.get_running_loop()
    wait_until_s = warned_s = -inf
    syn_filter: SynFilter | None = None
    socket.monitor(_ACCEPTED, zmq.EVENT_ACCEPTED)
    accepted = socket.context.socket(zmq.PAIR)
    # ZeroMQ waits for a reader of events whose queue is full, and serves nobody.
    accepted.rcvhwm = 0
    accepted.connect(_ACCEPTED)
    try:
        while True:
            await accepted.recv_multipart()
            now_s = loop.time()
            budget.spend(now_s, 1.0)
            if now_s < wait_until_s or not budget.wait_s(now_s):
                continue
            wait_until_s = now_s + _IGNORED_S
            address = socket.last_endpoint.decode()
            syn_filter = _ignore_connections(address)
            if syn_filter is not None and now_s > warned_s + _WARN_S:
                _LOG.warning(_TOO_MANY, _CONNECTS[0], address)
                warned_s = now_s
    finally:
        if syn_filter is not None:
            syn_filter.close()
        accepted.close(linger=0)
        socket.disable_monitor()


def _ignore_connections(address: str) -> SynFilter | None:
    """Ignore new connections to a TCP address of this process for `_IGNORED_S`.

    Return None if that is not possible.
    """
    if not address.startswith("tcp://"):
        return None
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    syn_filter = SynFilter.of_address(host.strip("[]"), int(port))
    if syn_filter is None:
        return None
    try:
        syn_filter.attach()
    except OSError as error:
        syn_filter.close()
        _LOG.warning("%s: new connections cannot be limited: %s", address, error)
        return None
    asyncio.get_running_loop().call_later(_IGNORED_S, syn_filter.close)
    return syn_filter


async def _receive_from_agents(
    socket: Any,
    trusted: TrustedKeys,
    control_loop: ControlLoop,
    mount_credits: MountCredits,
) -> None:
    warnings = WarningLog(_LOG)
    while True:
        identity, *parts = await socket.recv_multipart(copy=False)
        agent = identity.bytes.decode(errors="replace")
        # pyzmq's authenticator makes the key of a peer its user id.
        if not trusted.may_speak_for(parts[0].get("User-Id"), _node_of(agent)):
            warnings.add(f"{agent!r} has the key of another node, and is ignored")
            continue
        if agent in control_loop.links:
            warnings.add(
                f"a second agent calls itself {agent!r}: its messages are ignored "
                "(give each node its own --node)"
            )
            continue
        try:
            message = FROM_AGENT(b"".join(part.bytes for part in parts))
        except MessageError as error:
            warnings.add(f"agent {agent!r}: {error}")
            continue
        if isinstance(message, MountReport):
            for warning in mount_credits.receive(agent, message, time.monotonic()):
                warnings.add(warning)
        else:
            control_loop.receive(agent, message)


def _node_of(agent: str) -> str:
    """Return the node of an agent, or of a mount: mount:NODE:RUN."""
    words = agent.split(":")
    return words[1] if words[0] == "mount" and len(words) > 1 else agent


async def _send_credit(socket: Any, mount_credits: MountCredits) -> None:
    """Decide once per period, and send every mount its credit."""
    while True:
        await asyncio.sleep(PERIOD_S)
        for mount, credit in mount_credits.decide(time.monotonic()):
            _send(socket, credit, mount)


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


def _start(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that runs until it is cancelled; log it if it fails."""
    task = asyncio.create_task(work, name=getattr(work, "__qualname__", None))
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _LOG.error(
            "%s has stopped (report this, and restart the daemon)",
            task.get_name(),
            exc_info=error,
        )


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def _key_folder(settings: Settings, home: Path) -> Path:
    return Path(settings.keys) if settings.keys else home / "keys"
