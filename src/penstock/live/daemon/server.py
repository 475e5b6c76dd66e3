# SPDX-License-Identifier: MIT
"""The daemon, ``penstock serve``: event loop, sockets and clock around the pure parts.

One process holds the controller with its coordinator (`control_loop`), the agent of
this node, and, with the setting `listen`, a socket for agents on other nodes. With the
setting `join` it holds only an agent. Everything runs in one asyncio loop.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import platform
import resource
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    nullcontext,
    suppress,
)
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import InputError
from penstock.kernels import can_compile
from penstock.live.archive.recorder import ArchiveRecorder
from penstock.live.archive.retention import Retention
from penstock.live.control.stager import Stager
from penstock.live.control.storage.bandwidth import BandwidthEstimator
from penstock.live.daemon.control_loop import ControlLoop, check_usable
from penstock.live.daemon.history import History
from penstock.live.daemon.job_folders import JobFolders
from penstock.live.daemon.learnt import LearntBandwidths
from penstock.live.daemon.limits import SavedLimits
from penstock.live.daemon.measure import measure_bandwidth
from penstock.live.node.agent import Agent
from penstock.live.node.agent_socket import local_socket
from penstock.live.node.file_system import storage_name
from penstock.live.settings import MEASURE, Settings
from penstock.live.staging.folder_watch import FolderWatch, UserFolderWatch
from penstock.live.staging.job_folder import JobFolder
from penstock.live.staging.partitioner import Partitioner
from penstock.live.wire.folder import own_folder
from penstock.live.wire.messages import AgentConfig
from penstock.units import format_bandwidth

if TYPE_CHECKING:
    from penstock.live.control.coordinator import Coordinator
    from penstock.live.control.placing import JobPlacer
    from penstock.live.control.rates.controller import Controller

__all__ = ["serve"]

_LOG: Final = logging.getLogger("penstock.serve")
#: Time between two saves of the jobs' histories.
_SAVE_S: Final = 5.0
#: How often operations that have ended are archived (s).
_ARCHIVE_S: Final = 1.0
#: How often the daemon looks which folders of jobs it is time to assign again (s).
_RETRY_S: Final = 1.0
#: How often the archive notes that the daemon runs (s).
_ALIVE_S: Final = 10.0
#: How often the archive looks whether a day is over (s).
_CLOSE_S: Final = 600.0
#: How long one Python thread may compute while another one is waiting.
_SWITCH_S: Final = 0.0005
#: Priority of the daemon.
_NICE: Final = -10


# --- The parts of the daemon ------------------------------------------------------


async def serve(
    settings: Settings,
    *,
    ready: Callable[[], None] = lambda: None,
    beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> None:
    """Serve until SIGTERM or SIGINT, or until there was no job for `linger` seconds.

    The caller has locked the folder (`locked_folder`). `ready` is called when programs
    can connect. `beside` returns what runs from then on, such as the dashboard.
    """
    _prepare_process()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        home = settings.home
        folder_mode = 0o711 if settings.users == "all" else 0o700
        for folder in (home, own_folder(home / "pages")):
            folder.chmod(folder_mode)
        agent = await _start_parts(settings, home, stack)
        await stack.enter_async_context(local_socket(settings, agent, agent.budgets))
        stack.callback(agent.close)
        agent.start()
        # Objects that exist now live as long as the daemon: collections skip them.
        gc.collect()
        gc.freeze()
        ready()
        await stack.enter_async_context(beside())
        await _wait_for_first(stop.wait(), _run_agent(settings, agent))


def _prepare_process() -> None:
    # Files are for this user only, unless a mode is set explicitly.
    os.umask(0o077)
    # Every page and every process needs a descriptor.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # The loop must not wait long for threads that compile policies or save histories.
    sys.setswitchinterval(_SWITCH_S)
    # Programs may occupy every processor. Only root may raise the priority.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)


async def _start_parts(settings: Settings, home: Path, stack: AsyncExitStack) -> Agent:
    """Start controller and agent, or only an agent if the controller is elsewhere."""
    pages = home / "pages"
    node = settings.node or platform.node() or "node"
    if settings.join:
        from penstock.live.daemon.zeromq import join  # noqa: PLC0415 - needs ZeroMQ

        _LOG.info("node %s joins the controller at %s", node, settings.join)
        return await stack.enter_async_context(join(settings, home, pages, node))
    control_loop = _control_loop(settings)
    stack.callback(control_loop.close)
    agent = Agent(
        pages,
        partial(control_loop.receive, node),
        settings.journals,
        spares=home / "spares",
    )
    control_loop.links[node] = agent.receive
    if settings.predict == "ftio":
        from penstock.live.daemon.prediction import ftio_predictor  # noqa: PLC0415 - an extra

        predictor = ftio_predictor(control_loop.coordinator.expect)
        control_loop.predict = await stack.enter_async_context(predictor)
    if settings.listen:
        from penstock.live.daemon.zeromq import listen  # noqa: PLC0415 - needs ZeroMQ

        await stack.enter_async_context(listen(settings, home, control_loop))
    if settings.metrics:
        from penstock.live.daemon.metrics import publish  # noqa: PLC0415 - its own library

        stack.enter_context(publish(settings.metrics, control_loop.status_reader()))
    control_loop.note_alive()
    for period_s, action in (
        (_SAVE_S, control_loop.save),
        (_ARCHIVE_S, control_loop.save_operations),
        (_ALIVE_S, control_loop.note_alive),
        (_RETRY_S, control_loop.retry_folders),
        (_CLOSE_S, control_loop.close_days),
    ):
        task = asyncio.create_task(_repeat(period_s, action))
        stack.callback(task.cancel)
    if control_loop.folders:
        control_loop.folders.start()
        stack.callback(control_loop.folders.close)
    # Measure last: it blocks the event loop, and wrong settings are reported before.
    if settings.bandwidth == MEASURE:
        _suggest_measured(settings, node, control_loop.coordinator)
    _log_start(settings, control_loop.coordinator)
    control_loop.start()
    return agent


def _suggest_measured(settings: Settings, node: str, coordinator: Coordinator) -> None:
    """Measure the first prefix or the working directory, where learning begins."""
    folder = Path(settings.prefixes[0] if settings.prefixes else Path.cwd())
    bandwidth = measure_bandwidth(folder)
    if bandwidth is None:
        _LOG.info("%s: somebody else uses the storage, nothing was measured", folder)
        return
    _LOG.info(
        "%s: measured a write bandwidth of %s", folder, format_bandwidth(bandwidth)
    )
    coordinator.suggest(node, storage_name(str(folder)), bandwidth)


def _log_start(settings: Settings, coordinator: Coordinator) -> None:
    controller, config = coordinator.controller, coordinator.agent_config
    fixed = isinstance(settings.bandwidth, float)
    _LOG.info(
        "mode %s: policy %s shares %s of %s",
        config.mode,
        controller.policy,
        format_bandwidth(controller.capacity) if fixed else "the learnt bandwidth",
        ":".join(config.prefixes) or "each job's working directory",
    )
    for prefix in config.prefixes:
        # A warning only: the folder may be mounted later.
        if not os.access(prefix, os.F_OK):
            _LOG.warning("prefix %s: this folder does not exist yet", prefix)


def _control_loop(settings: Settings) -> ControlLoop:
    """Return the control loop with all its parts; it holds open files."""
    from penstock.live.control.coordinator import Coordinator  # noqa: PLC0415

    controller = _controller(settings)
    partitioner = _partitioner(settings)
    stager = _stager(settings, _divided_targets(settings, partitioner))
    placer = _placer(settings, partitioner.names) if partitioner else None
    # Open the file last: nothing after it can fail and leave it open.
    state = settings.state_file
    history = History(state, kept_s=settings.history_age)
    learnt = LearntBandwidths(state.with_name(f"{state.stem}-bandwidth.json"))
    coordinator = Coordinator(
        controller,
        _agent_config(settings),
        history.recall,
        stager,
        None
        if _fixed_bandwidth(settings)
        else lambda name: BandwidthEstimator(learnt.known(name)),
    )
    coordinator.priorities, coordinator.placer = dict(settings.priorities), placer
    control_loop = ControlLoop(coordinator, history)
    if settings.archive_folder:
        retention = Retention(settings.archive_age, settings.archive_size)
        control_loop.archive = ArchiveRecorder(settings.archive_folder, retention)
    control_loop.learnt = learnt
    control_loop.limits = SavedLimits(state.with_name(f"{state.stem}-limits.json"))
    coordinator.kept_limit = control_loop.limits.recall
    if partitioner:
        control_loop.partitioner = partitioner
        coordinator.unmoved = partitioner.failures
    if partitioner and placer:
        watch = _folder_watch(settings)
        parts = (watch, placer, partitioner, history.recall, coordinator.has_key)
        control_loop.folders = JobFolders(*parts)
    return control_loop


def _fixed_bandwidth(settings: Settings) -> float | None:
    """Return the bandwidth that the settings state (bytes/s); None: it is learnt."""
    return settings.bandwidth if isinstance(settings.bandwidth, float) else None


def _controller(settings: Settings) -> Controller:
    """Return the controller with the policy of the settings."""
    # Agents need no compiler.
    from penstock.live.control.rates.controller import Controller  # noqa: PLC0415
    from penstock.live.control.storage.shared_storage import UNKNOWN_CAPACITY  # noqa: PLC0415
    from penstock.policies import get_policy  # noqa: PLC0415

    policy = get_policy(settings.policy)
    check_usable(policy)
    if not (settings.linger or can_compile()):
        _LOG.info(
            "policies are not compiled: about 100 jobs can be active at once "
            "(pip install 'penstock[controller]')"
        )
    fixed = _fixed_bandwidth(settings)
    return Controller(
        policy,
        UNKNOWN_CAPACITY if fixed is None else fixed,
        settings.node_bandwidth,
        lend=settings.lend,
        # A daemon that ends by itself has few jobs. Compiling would hold up the first
        # program of a new user for 5 to 30 s.
        compiled=not settings.linger,
    )


def _agent_config(settings: Settings) -> AgentConfig:
    """Return what the controller tells every agent."""
    return AgentConfig(
        mode=settings.mode,  # type: ignore[arg-type]
        prefixes=list(settings.prefixes),
        gap_s=settings.gap,
        report_s=settings.report,
        lease_s=settings.lease,
        floor=settings.floor,
        reads=settings.reads,
        free_cached_reads=settings.cached_reads == "free",
        free_absorbed_writes=settings.absorbed_writes == "free",
    )


def _folder_watch(settings: Settings) -> FolderWatch | UserFolderWatch:
    """Return what watches the folders of jobs: of all users, or of this one."""
    folders = JobFolder(settings.job_folder)
    if settings.users == "all":
        return UserFolderWatch(folders)
    return FolderWatch(folders.of_user(os.geteuid()))


def _divided_targets(
    settings: Settings, partitioner: Partitioner | None
) -> tuple[str, ...]:
    """Return the targets that the strategy divides; (): there are none."""
    return partitioner.names if partitioner and not settings.placement else ()


def _stager(settings: Settings, targets: tuple[str, ...]) -> Stager | None:
    """Return the stager for the strategy; None if the strategy is "none"."""
    if settings.strategy == "none":
        return None
    from penstock.staging import STRATEGIES, get_strategy  # noqa: PLC0415 - rarely used

    strategy, count = get_strategy(settings.strategy), len(targets) or 1
    if strategy.name in STRATEGIES and strategy.name != "auto":
        return Stager(strategy, count, targets)
    from penstock.live.daemon.placement import known_profile  # noqa: PLC0415 - NumPy
    from penstock.sim.forecast import live_forecast  # noqa: PLC0415 - NumPy

    profile = known_profile(settings)[:count]
    return Stager(
        strategy,
        count,
        targets,
        lambda bandwidth: live_forecast(bandwidth, count, profile),
    )


def _placer(settings: Settings, names: tuple[str, ...]) -> JobPlacer | None:
    """Return what gives jobs their storage targets when they join; None: nothing."""
    if not settings.placement:
        return None
    from penstock.live.daemon.placement import job_placer  # noqa: PLC0415 - NumPy

    return job_placer(settings, names)


def _partitioner(settings: Settings) -> Partitioner | None:
    if not settings.targets:
        return None
    all_users = settings.users == "all"
    if all_users and os.geteuid() != 0:
        raise InputError(
            "folders of other users can be assigned only by root",
            where="targets",
            remedy="run the controller as root, or set users = own",
        )
    from penstock.staging import REDIRECT_AGE_S  # noqa: PLC0415 - rarely used

    return Partitioner(
        settings.targets,
        settings.job_folder,
        _LOG,
        all_users=all_users,
        redirect_age_s=REDIRECT_AGE_S,
    )


async def _run_agent(settings: Settings, agent: Agent) -> None:
    """Run the agent until there was no job for `linger` seconds (0: forever)."""
    # Programs cannot connect earlier, however long the start has taken.
    ready_s = time.monotonic()
    while True:
        agent.update()
        idle_s = time.monotonic() - max(agent.last_job_s, ready_s)
        if settings.linger and idle_s > settings.linger:
            return
        await agent.wait_until_due()


async def _wait_for_first(*awaited: Coroutine[Any, Any, object]) -> None:
    """Wait until one of the coroutines ends, and cancel the others."""
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
