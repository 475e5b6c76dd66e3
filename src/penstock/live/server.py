# SPDX-License-Identifier: MIT
"""The daemon: event loop, sockets and clock around the pure parts.

One process holds the controller with its coordinator, the agent of this node, and, if
asked for, the sockets of agents on other nodes. With `Settings.join` it holds only an
agent. Everything runs in one asyncio loop: messages that arrive together are heard
together, then ONE decision is taken.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import platform
import signal
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, Final, Protocol

from penstock.errors import InputError, PenstockError
from penstock.live.agent import Agent
from penstock.live.books import prepare
from penstock.live.controller import Controller
from penstock.live.coordinator import Coordinator
from penstock.live.history import History
from penstock.live.measure import measure_bandwidth
from penstock.live.messages import (
    FROM_PROGRAM,
    Asked,
    FromAgent,
    MessageError,
    Refused,
    SetPolicy,
    StatusDocument,
    Terms,
    ToAgent,
)
from penstock.live.settings import Settings
from penstock.live.wire import Peer, frame, read_frame
from penstock.policies import get_policy
from penstock.units import format_bandwidth

__all__ = ["Hub", "serve"]

_LOG: Final = logging.getLogger("penstock.serve")
#: A program that says nothing for so long is left alone (s).
_PATIENCE_S: Final = 30.0
_MOST_CONNECTIONS: Final = 512
_SAVE_S: Final = 5.0
#: How long another thread waits for a status (s).
_STATUS_S: Final = 2.0


class _Link(Protocol):
    """A way to an agent."""

    def __call__(self, agent: str, message: ToAgent, /) -> None:
        """Send a message to an agent."""


class Hub:
    """Drives a coordinator: gives it the time, and delivers what it says."""

    def __init__(self, coordinator: Coordinator, history: History | None) -> None:
        self.coordinator = coordinator
        self.links: dict[str, Callable[[ToAgent], None]] = {}
        """Agents in this process."""
        self.remote: _Link | None = None
        """The way to all others."""
        self._history = history
        self._loop = asyncio.get_running_loop()
        self._due = False
        self._timer: asyncio.TimerHandle | None = None
        self._saver = ThreadPoolExecutor(1, "history")
        self._compiler = ThreadPoolExecutor(1, "compiler")

    def hear(self, agent: str, message: FromAgent) -> None:
        """Take a message of an agent; the decision follows when all are heard."""
        if isinstance(message, Asked) and isinstance(message.question, SetPolicy):
            self._hear_later(agent, message, message.question.policy)
        else:
            self._hear(agent, message)

    def _hear_later(self, agent: str, message: FromAgent, policy: str) -> None:
        """Have a policy compiled, in another thread, before it is used."""
        done = self._loop.run_in_executor(self._compiler, _prepare, policy)
        done.add_done_callback(lambda _: self._hear(agent, message))

    def _hear(self, agent: str, message: FromAgent) -> None:
        try:
            self.coordinator.hear(agent, message, time.monotonic())
        except Exception:  # noqa: BLE001 - the edge of the process
            # Our bug; whatever it is, the other jobs must not suffer from it.
            _LOG.exception("a message of agent %s was lost", agent)
        self._settle_soon()

    def _settle_soon(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._due = False
        outcome = self.coordinator.settle(time.monotonic())
        for agent, message in outcome.messages:
            self._deliver(agent, message)
        if outcome.left and self._history:
            self._saver.submit(self._history.save, outcome.left)
        if self._timer:
            self._timer.cancel()
        if outcome.wake < inf:
            self._timer = self._loop.call_at(outcome.wake, self._settle)

    def _deliver(self, agent: str, message: ToAgent) -> None:
        if agent in self.links:
            self.links[agent](message)
        elif self.remote:
            self.remote(agent, message)

    def status_for_thread(self) -> StatusDocument:
        """Return how everything stands; for threads other than the loop's."""
        answer: Future[StatusDocument] = Future()

        def look() -> None:
            answer.set_result(self.coordinator.status(time.monotonic()))

        self._loop.call_soon_threadsafe(look)
        return answer.result(_STATUS_S)

    def save(self) -> None:
        """Keep what all jobs have done."""
        if self._history:
            pasts = self.coordinator.pasts(time.monotonic())
            self._saver.submit(self._history.save, pasts)

    def close(self) -> None:
        """Save once more and stop."""
        self.save()
        self._saver.shutdown()
        self._compiler.shutdown(wait=False)
        if self._timer:
            self._timer.cancel()
        if self._history:
            self._history.close()


def _prepare(policy: str) -> None:
    # What is wrong with it is said when it is used.
    with suppress(PenstockError):
        prepare(get_policy(policy))


# --- The parts of the daemon ------------------------------------------------------


async def serve(
    settings: Settings, *, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until SIGTERM or SIGINT, or until there was no job for a while."""
    # Whatever is made here is for this user only, unless it is said otherwise.
    os.umask(0o077)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        home = _prepare_home(settings)
        stack.callback(os.close, _lock(home))
        agent = await _start_parts(settings, home, stack)
        await stack.enter_async_context(_local_socket(settings, agent))
        stack.callback(agent.close)
        agent.start()
        ready()
        await _first(stop.wait(), _look_around(settings, agent))


async def _start_parts(settings: Settings, home: Path, stack: AsyncExitStack) -> Agent:
    """Start controller and agent, or only the agent of a controller elsewhere."""
    pages = _own_folder(home / "pages", 0o711 if settings.users == "all" else 0o700)
    node = settings.node or platform.node() or "node"
    if settings.join:
        from penstock.live.remote import join  # noqa: PLC0415 - needs ZeroMQ

        return await stack.enter_async_context(join(settings, home, pages, node))
    hub = _hub(settings, home)
    stack.callback(hub.close)
    agent = Agent(pages, lambda message: hub.hear(node, message))
    hub.links[node] = agent.receive
    if settings.listen:
        from penstock.live.remote import listen  # noqa: PLC0415 - needs ZeroMQ

        await stack.enter_async_context(listen(settings, home, hub))
    if settings.metrics:
        from penstock.live.metrics import publish  # noqa: PLC0415 - its own library

        stack.enter_context(publish(settings.metrics, hub.status_for_thread))
    saving = asyncio.create_task(_repeat(_SAVE_S, hub.save))
    stack.callback(saving.cancel)
    return agent


def _hub(settings: Settings, home: Path) -> Hub:
    history = History(Path(settings.state or home / "history.sqlite"))
    bandwidth = settings.bandwidth
    if not bandwidth:
        folder = Path(settings.prefixes[0] if settings.prefixes else Path.cwd())
        bandwidth = measure_bandwidth(folder)
        _LOG.info("%s is written at %s", folder, format_bandwidth(bandwidth))
    controller = Controller(
        settings.policy, bandwidth, settings.node_bandwidth, lend=settings.lend
    )
    terms = Terms(
        mode=settings.mode,  # type: ignore[arg-type]
        prefixes=list(settings.prefixes),
        gap=settings.gap,
        report=settings.report,
        lease=settings.lease,
        floor=settings.floor,
        reads=settings.reads,
    )
    return Hub(Coordinator(controller, terms, history.recall), history)


async def _look_around(settings: Settings, agent: Agent) -> None:
    """Look at the pages, until there was no job for long enough."""
    while True:
        agent.look()
        if settings.linger and time.monotonic() - agent.last_job > settings.linger:
            return
        await agent.rest()


async def _first(*awaited: Coroutine[Any, Any, object]) -> None:
    """Wait for the first of several to end, and stop the others."""
    tasks = [asyncio.ensure_future(each) for each in awaited]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    for task in done:
        task.result()


async def _repeat(period_s: float, action: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(period_s)
        action()


# --- Folder, lock and socket --------------------------------------------------------


def _prepare_home(settings: Settings) -> Path:
    return _own_folder(settings.home, 0o711 if settings.users == "all" else 0o700)


def _own_folder(path: Path, mode: int) -> Path:
    """Return a folder that belongs to this user and that nobody else can write."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise InputError(
                "is not a folder of yours", where=str(path), remedy="give --folder"
            )
        path.chmod(mode)
    except OSError as error:
        raise InputError(
            f"cannot be made: {error.strerror}", where=str(path), remedy="give --folder"
        ) from None
    return path


def _lock(home: Path) -> int:
    """Hold a lock as long as the descriptor that is returned is open."""
    path = home / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InputError(
            "another penstock serves here already",
            where=str(home),
            remedy="stop it, or give another --folder",
        ) from None
    return descriptor


@asynccontextmanager
async def _local_socket(settings: Settings, agent: Agent) -> AsyncIterator[None]:
    """Answer the processes of this node."""
    path = settings.socket
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.bind(str(path))
        path.chmod(0o666 if settings.users == "all" else 0o600)
    except OSError as error:
        raise InputError(
            f"cannot listen: {error.strerror or error}",
            where=str(path),
            remedy="give a shorter --folder",
        ) from None
    door = _Door(agent, everybody=settings.users == "all")
    server = await asyncio.start_unix_server(door.answer, sock=listener, backlog=512)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


class _Door:
    """Answers connections; none of them can harm another one or the daemon."""

    def __init__(self, agent: Agent, *, everybody: bool) -> None:
        self._agent = agent
        self._everybody = everybody
        self._open = 0
        self._logged: set[str] = set()

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the messages of one connection."""
        self._open += 1
        try:
            peer = Peer.of(writer.get_extra_info("socket"))
            if self._open <= _MOST_CONNECTIONS and self._may(peer):
                await self._converse(peer, reader, writer)
        except (OSError, TimeoutError) as error:
            self._log_once(f"a connection broke: {error}")
        finally:
            self._open -= 1
            writer.close()

    def _may(self, peer: Peer) -> bool:
        return self._everybody or peer.is_trusted

    async def _converse(
        self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            try:
                data = await asyncio.wait_for(
                    read_frame(reader, FROM_PROGRAM.largest), _PATIENCE_S
                )
                if data is None:
                    return
                message = FROM_PROGRAM(data)
            except MessageError as error:
                self._log_once(f"user {peer.user}: {error}")
                writer.write(frame(Refused(str(error))))
                return
            writer.write(frame(await self._agent.reply(peer, message)))
            await asyncio.wait_for(writer.drain(), _PATIENCE_S)

    def _log_once(self, line: str) -> None:
        if line not in self._logged and len(self._logged) < 100:
            self._logged.add(line)
            _LOG.warning("%s", line)
