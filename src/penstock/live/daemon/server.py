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
import stat
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import InputError, UnavailableError
from penstock.live.control.stager import Stager
from penstock.live.daemon.control_loop import ControlLoop, check_usable
from penstock.live.daemon.history import History
from penstock.live.daemon.measure import measure_bandwidth
from penstock.live.node.agent import Agent
from penstock.live.node.agent_socket import local_socket
from penstock.live.settings import Settings
from penstock.live.staging.partitioner import Partitioner
from penstock.live.wire.messages import AgentConfig
from penstock.units import format_bandwidth

if TYPE_CHECKING:
    from penstock.live.control.coordinator import Coordinator

__all__ = ["serve"]

_LOG: Final = logging.getLogger("penstock.serve")
_SAVE_S: Final = 5.0
#: How long a thread may compute while another one has something to do (s).
_SWITCH_S: Final = 0.0005
_NICE: Final = -10
#: Stands for a bandwidth that is going to be measured (bytes/s).
_NOT_YET: Final = 1.0


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
        await stack.enter_async_context(local_socket(settings, agent))
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
        from penstock.live.daemon.zeromq import join  # noqa: PLC0415 - needs ZeroMQ

        _LOG.info("node %s joins the controller at %s", node, settings.join)
        return await stack.enter_async_context(join(settings, home, pages, node))
    hub = _hub(settings, home)
    stack.callback(hub.close)
    agent = Agent(pages, lambda message: hub.hear(node, message), settings.journals)
    hub.links[node] = agent.receive
    if settings.predict == "ftio":
        from penstock.live.daemon.prediction import ftio_predictor  # noqa: PLC0415 - an extra

        predictor = ftio_predictor(hub.coordinator.expect)
        hub.predict = await stack.enter_async_context(predictor)
    if settings.listen:
        from penstock.live.daemon.zeromq import listen  # noqa: PLC0415 - needs ZeroMQ

        await stack.enter_async_context(listen(settings, home, hub))
    if settings.metrics:
        from penstock.live.daemon.metrics import publish  # noqa: PLC0415 - its own library

        stack.enter_context(publish(settings.metrics, hub.status_for_thread))
    saving = asyncio.create_task(_repeat(_SAVE_S, hub.save))
    stack.callback(saving.cancel)
    # Last, since it takes a while. Since `listen` the loop had no turn to hear agents.
    if not settings.bandwidth:
        hub.coordinator.controller.set_capacity(_measured(settings), time.monotonic())
    _say_terms(hub.coordinator)
    return agent


def _measured(settings: Settings) -> float:
    """Return what the first prefix, or the working directory, takes (bytes/s)."""
    folder = Path(settings.prefixes[0] if settings.prefixes else Path.cwd())
    bandwidth = measure_bandwidth(folder)
    _LOG.info("%s is written at %s", folder, format_bandwidth(bandwidth))
    return bandwidth


def _say_terms(coordinator: Coordinator) -> None:
    controller, terms = coordinator.controller, coordinator.terms
    _LOG.info(
        "mode %s: policy %s shares %s of %s",
        terms.mode,
        controller.policy,
        format_bandwidth(controller.capacity),
        ":".join(terms.prefixes) or "each job's working directory",
    )
    for prefix in terms.prefixes:
        # It may be mounted later.
        if not os.access(prefix, os.F_OK):
            _LOG.warning("prefix %s: there is no such folder yet", prefix)


def _hub(settings: Settings, home: Path) -> ControlLoop:
    from penstock.live.control.controller import Controller  # noqa: PLC0415 - agents need no compiler
    from penstock.live.control.coordinator import Coordinator  # noqa: PLC0415
    from penstock.policies import get_policy  # noqa: PLC0415

    policy = get_policy(settings.policy)
    check_usable(policy)
    history = History(Path(settings.state or home / "history.sqlite"))
    controller = Controller(
        policy,
        settings.bandwidth or _NOT_YET,
        settings.node_bandwidth,
        lend=settings.lend,
    )
    terms = AgentConfig(
        mode=settings.mode,  # type: ignore[arg-type]
        prefixes=list(settings.prefixes),
        gap_s=settings.gap,
        report_s=settings.report,
        lease_s=settings.lease,
        floor=settings.floor,
        reads=settings.reads,
    )
    partitioner = _partitioner(settings)
    stager = _stager(settings.strategy, len(partitioner.names) if partitioner else 1)
    hub = ControlLoop(Coordinator(controller, terms, history.recall, stager), history)
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
        agent.update()
        if settings.linger and time.monotonic() - agent.last_job_s > settings.linger:
            return
        await agent.wait_until_due()


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


# --- Folder and lock --------------------------------------------------------


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
        raise UnavailableError(
            "another penstock serves here already",
            where=str(home),
            remedy="stop it, or give another --folder",
        ) from None
    return descriptor
