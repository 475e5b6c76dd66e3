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
import gc
import logging
import os
import platform
import resource
import signal
import socket
import stat
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from penstock.errors import InputError, PenstockError
from penstock.live.agent import Agent
from penstock.live.history import History
from penstock.live.measure import measure_bandwidth
from penstock.live.messages import (
    FROM_PROGRAM,
    Asked,
    FromAgent,
    MessageError,
    Refused,
    Replied,
    SetPolicy,
    StatusDocument,
    Terms,
    ToAgent,
)
from penstock.live.partitioner import Partitioner
from penstock.live.settings import Settings
from penstock.live.stager import Stager
from penstock.live.wire import Complaints, Peer, frame, read_frame
from penstock.units import format_bandwidth

if TYPE_CHECKING:
    from penstock.live.coordinator import Coordinator, Outcome
    from penstock.live.prediction import Predictor
    from penstock.policies.policy import Policy

__all__ = ["Hub", "serve"]

_LOG: Final = logging.getLogger("penstock.serve")
#: A program that says nothing for so long is left alone (s).
_PATIENCE_S: Final = 30.0
#: No user may have more connections at a time.
_MOST_CONNECTIONS: Final = 256
_SAVE_S: Final = 5.0
#: How often the socket is looked for (s).
_SOCKET_S: Final = 1.0
#: How long a thread may compute while another one has something to do (s).
_SWITCH_S: Final = 0.0005
_NICE: Final = -10
_PERIODIC: Final = "periodic-greedy-yield"
#: How long another thread waits for a status (s).
_STATUS_S: Final = 2.0
#: When to decide again after a decision that was lost (s).
_AGAIN_S: Final = 1.0


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
        self.predict: Predictor | None = None
        """Who predicts the volumes of operations."""
        self.partitioner: Partitioner | None = None
        """Who puts the folders of jobs on targets."""
        self._history = history
        self._loop = asyncio.get_running_loop()
        self._due = False
        self._instant: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._saver = ThreadPoolExecutor(1, "history")
        self._compiler = ThreadPoolExecutor(1, "compiler")

    def hear(self, agent: str, message: FromAgent) -> None:
        """Take a message of an agent; the decision follows when all are heard."""
        # Nothing is imported for those who may not change anything.
        if (
            isinstance(message, Asked)
            and message.trusted
            and isinstance(message.question, SetPolicy)
        ):
            self._hear_later(agent, message, message.question.policy)
        else:
            self._hear(agent, message)

    def _hear_later(self, agent: str, asked: Asked, policy: str) -> None:
        """Have a policy compiled, in another thread, before it is used."""

        def hear(done: asyncio.Future[None]) -> None:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, InputError):
                self._deliver(agent, Replied(asked.number, Refused(str(error))))
            else:
                self._hear(agent, asked)

        done = self._loop.run_in_executor(self._compiler, _prepare, policy)
        done.add_done_callback(hear)

    def _hear(self, agent: str, message: FromAgent) -> None:
        try:
            self.coordinator.hear(agent, message, self._now())
        except Exception:  # noqa: BLE001 - the edge of the process
            # Our bug; whatever it is, the other jobs must not suffer from it.
            _LOG.exception("a message of agent %s was lost", agent)
        self._settle_soon()

    def _now(self) -> float:
        """Return the time, which stands still from a message to its decision.

        Else a job would lose the time in between, and those never delayed would not
        tie any more.
        """
        if self._instant is None:
            self._instant = time.monotonic()
        return self._instant

    def _settle_soon(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_soon(self._settle)

    def _settle(self) -> None:
        self._due = False
        now, self._instant = self._now(), None
        wake = now + _AGAIN_S
        try:
            outcome = self.coordinator.settle(now)
            wake = outcome.wake
            self._carry_out(outcome)
        except Exception:  # noqa: BLE001 - the edge of the process
            _LOG.exception("a decision was lost")
        self._wake_at(wake)

    def _carry_out(self, outcome: Outcome) -> None:
        for agent, message in outcome.messages:
            self._deliver(agent, message)
        if outcome.left and self._history:
            self._saver.submit(self._history.save, outcome.left)
        if self.partitioner and outcome.moved:
            self.partitioner.move(outcome.moved)
        if self.predict:
            for job in outcome.ended:
                self.predict(job, self.coordinator.operations(job))

    def _wake_at(self, instant: float) -> None:
        if self._timer:
            self._timer.cancel()
        if instant < inf:
            self._timer = self._loop.call_at(instant, self._settle)

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
        if self.partitioner:
            self.partitioner.close()
        if self._timer:
            self._timer.cancel()
        if self._history:
            self._history.close()


def _prepare(policy: str) -> None:
    """Compile a policy, if it can decide here."""
    from penstock.live.books import prepare  # noqa: PLC0415 - agents need no compiler
    from penstock.policies import get_policy  # noqa: PLC0415

    found = get_policy(policy)
    _check_usable(found)
    # What is wrong with the function itself is said when it is used.
    with suppress(PenstockError):
        prepare(found)


def _check_usable(policy: Policy) -> None:
    """Refuse a policy that would wait for something that only a simulation knows."""
    if policy.name != _PERIODIC or "delta=" in policy.label:
        return
    raise InputError(
        "needs its delta: live, the dedicated mode that gives it is not known",
        where=f"policy {policy.label}",
        remedy=f"e.g. {_PERIODIC}:delta=1",
    )


# --- The parts of the daemon ------------------------------------------------------


async def serve(
    settings: Settings, *, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until SIGTERM or SIGINT, or until there was no job for a while."""
    _check_together(settings)
    _prepare_process()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        home = _own_folder(settings.home)
        stack.callback(os.close, _lock(home))
        # Not before: another daemon may have it open for all.
        folder_mode = 0o711 if settings.users == "all" else 0o700
        for folder in (home, _own_folder(home / "pages")):
            folder.chmod(folder_mode)
        agent = await _start_parts(settings, home, stack)
        await stack.enter_async_context(_local_socket(settings, agent))
        stack.callback(agent.close)
        agent.start()
        # What is there by now stays: later collections are short.
        gc.collect()
        gc.freeze()
        ready()
        await _first(stop.wait(), _look_around(settings, agent))


def _check_together(settings: Settings) -> None:
    """Refuse settings of which one would be ignored."""
    if settings.join and settings.listen:
        raise InputError(
            "does not go with `join`",
            where="listen",
            remedy="agents join the controller itself",
        )
    if settings.job_folder and not settings.targets:
        raise InputError(
            "has no effect without `targets`",
            where="job_folder",
            remedy="name the targets, or leave it out",
        )


def _prepare_process() -> None:
    # Whatever is made here is for this user only, unless it is said otherwise.
    os.umask(0o077)
    # A descriptor for every page and process.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # The loop does not wait for long until a thread that compiles or saves lets go.
    sys.setswitchinterval(_SWITCH_S)
    # The programs that it serves may fill every processor; only root may do this.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)


async def _start_parts(settings: Settings, home: Path, stack: AsyncExitStack) -> Agent:
    """Start controller and agent, or only the agent of a controller elsewhere."""
    pages = home / "pages"
    node = settings.node or platform.node() or "node"
    if settings.join:
        from penstock.live.remote import join  # noqa: PLC0415 - needs ZeroMQ

        return await stack.enter_async_context(join(settings, home, pages, node))
    hub = _hub(settings, home)
    stack.callback(hub.close)
    agent = Agent(pages, lambda message: hub.hear(node, message), settings.journals)
    hub.links[node] = agent.receive
    if settings.listen:
        from penstock.live.remote import listen  # noqa: PLC0415 - needs ZeroMQ

        await stack.enter_async_context(listen(settings, home, hub))
    if settings.predict == "ftio":
        from penstock.live.prediction import ftio_predictor  # noqa: PLC0415 - an extra

        predictor = ftio_predictor(hub.coordinator.expect)
        hub.predict = await stack.enter_async_context(predictor)
    if settings.metrics:
        from penstock.live.metrics import publish  # noqa: PLC0415 - its own library

        stack.enter_context(publish(settings.metrics, hub.status_for_thread))
    saving = asyncio.create_task(_repeat(_SAVE_S, hub.save))
    stack.callback(saving.cancel)
    return agent


def _hub(settings: Settings, home: Path) -> Hub:
    from penstock.live.controller import Controller  # noqa: PLC0415 - see _prepare
    from penstock.live.coordinator import Coordinator  # noqa: PLC0415
    from penstock.policies import get_policy  # noqa: PLC0415

    policy = get_policy(settings.policy)
    _check_usable(policy)
    history = History(Path(settings.state or home / "history.sqlite"))
    bandwidth = settings.bandwidth
    if not bandwidth:
        folder = Path(settings.prefixes[0] if settings.prefixes else Path.cwd())
        bandwidth = measure_bandwidth(folder)
        _LOG.info("%s is written at %s", folder, format_bandwidth(bandwidth))
    controller = Controller(
        policy, bandwidth, settings.node_bandwidth, lend=settings.lend
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
    partitioner = _partitioner(settings)
    stager = _stager(settings.strategy, len(partitioner.names) if partitioner else 1)
    hub = Hub(Coordinator(controller, terms, history.recall, stager), history)
    hub.partitioner = partitioner
    return hub


def _stager(strategy: str, targets: int) -> Stager | None:
    """Return what decides who stages and where; None if nobody ever does."""
    if strategy == "none":
        return None
    from penstock.staging import get_strategy  # noqa: PLC0415 - few need it

    return Stager(get_strategy(strategy), targets)


def _partitioner(settings: Settings) -> Partitioner | None:
    if not settings.targets:
        return None
    if settings.users == "all":
        # The folder of a job is its user's: we would follow any link in it.
        raise InputError(
            "targets are given out to jobs of one's own only",
            where="targets",
            remedy="users = own",
        )
    return Partitioner.of(settings.targets, settings.job_folder, _LOG)


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


def _own_folder(path: Path) -> Path:
    """Return a folder that belongs to this user and that nobody else can write."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise InputError(
                "is not a folder of yours", where=str(path), remedy="give --folder"
            )
    except OSError as error:
        raise InputError(
            f"cannot be made: {error.strerror}", where=str(path), remedy="give --folder"
        ) from None
    return path


def _lock(home: Path) -> int:
    """Hold a lock as long as the descriptor that is returned is open."""
    path = home / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(
            f"cannot be made: {error.strerror}", where=str(path), remedy="give --folder"
        ) from None
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
    """Answer the processes of this node; a socket that is removed is made again."""
    door = _Door(agent, everybody=settings.users == "all")
    listener = await _listening(settings, door)
    keeping = asyncio.create_task(_keep_listening(settings, door, listener))
    try:
        yield
    finally:
        keeping.cancel()
        settings.socket.unlink(missing_ok=True)


async def _keep_listening(
    settings: Settings, door: _Door, listener: asyncio.Server
) -> None:
    number = _inode(settings.socket)
    complaints = Complaints(_LOG)
    try:
        while True:
            await asyncio.sleep(_SOCKET_S)
            if _inode(settings.socket) != number:
                complaints.add(f"{settings.socket} was removed, and is made again")
                listener.close()
                with suppress(InputError):
                    listener = await _listening(settings, door)
                    number = _inode(settings.socket)
    finally:
        listener.close()


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


async def _listening(settings: Settings, door: _Door) -> asyncio.Server:
    path = settings.socket
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o666 if settings.users == "all" else 0o600)
    except OSError as error:
        listener.close()
        raise InputError(
            f"cannot listen: {error.strerror or error}",
            where=str(path),
            remedy="give a shorter --folder",
        ) from None
    return await asyncio.start_unix_server(door.answer, sock=listener, backlog=512)


class _Door:
    """Answers connections; none of them can harm another one or the daemon."""

    def __init__(self, agent: Agent, *, everybody: bool) -> None:
        self._agent = agent
        self._everybody = everybody
        self._open: Counter[int] = Counter()
        self._complaints = Complaints(_LOG)

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer the messages of one connection."""
        try:
            peer = Peer.of(writer.get_extra_info("socket"))
            with self._counted(peer.user) as connections:
                if connections <= _MOST_CONNECTIONS and self._may(peer):
                    await self._converse(peer, reader, writer)
        except (OSError, TimeoutError) as error:
            self._complaints.add(f"a connection broke: {error}")
        finally:
            writer.close()

    @contextmanager
    def _counted(self, user: int) -> Iterator[int]:
        """Count a connection of a user while it lasts."""
        self._open[user] += 1
        try:
            yield self._open[user]
        finally:
            self._open[user] -= 1
            self._open += Counter()  # Users without connections are forgotten.

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
                self._complaints.add(f"user {peer.user}: {error}")
                writer.write(frame(Refused(str(error))))
                return
            writer.write(frame(await self._agent.reply(peer, message)))
            await asyncio.wait_for(writer.drain(), _PATIENCE_S)
