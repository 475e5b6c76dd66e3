# SPDX-License-Identifier: MIT
"""The process behind a mount: mount, serve requests and the control socket, unmount.

The process ends when the folder is unmounted, or on SIGINT, SIGTERM or SIGHUP. After a
signal it unmounts the folder. This fails while programs use the mount, so it serves
them for another `_GRACE_S` seconds; then it detaches the mount, and they get errors.
Acknowledged writes are in the backing files at that time.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

import pyfuse3
import trio

from penstock.errors import InputError, InternalError
from penstock.mount.control import (
    MAX_MESSAGE_BYTES,
    MountCommand,
    MountRefusal,
    MountStatus,
    Moved,
    SetLimits,
    SetSlo,
    Stop,
    decode_command,
    encode,
    limits_document,
    socket_path,
)
from penstock.mount.filesystem.backing import open_path
from penstock.mount.filesystem.passthrough import PassThrough
from penstock.mount.limiter import DATA_KINDS, Limits
from penstock.mount.points import mounted_at, raise_background_limit, unmount
from penstock.mount.service import MountService
from penstock.mount.slo_settings import SloSettings
from penstock.qos import Kind

__all__ = ["MountSpec", "Publish", "serve"]

#: Publishes the status of the mount, given a function that returns the status.
Publish: TypeAlias = Callable[[Callable[[], MountStatus]], AbstractContextManager[None]]

_LOG: Final = logging.getLogger("penstock.mount")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Most requests at a time, including those that wait.
_MAX_REQUESTS: Final = 4096
#: Idle tasks that stay; each keeps a buffer of 1 MiB.
_IDLE_TASKS: Final = 2
#: How long programs are served after a signal.
_GRACE_S: Final = 5.0
#: How long requests under way may take at the end.
_LAST_REQUESTS_S: Final = 5.0
#: Longest time for a client of the control socket.
_CLIENT_S: Final = 5.0
#: Time between two attempts to unmount.
_RETRY_S: Final = 0.05
#: Time between two signals that interrupt blocked reads.
_INTERRUPT_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class MountSpec:
    """The folders, limits and SLOs of a mount."""

    backing: str
    point: str
    limits: Limits
    folder: Path
    """Folder of the control socket; only its owner may enter."""
    slo_settings: SloSettings | None = None
    """None: no SLOs; requests go first come, first served."""


def serve(
    mount: MountSpec,
    ready: Callable[[], None] = lambda: None,
    publish: Publish = lambda _: nullcontext(),
) -> None:
    """Mount, call `ready`, and serve until the folder is unmounted.

    Raises InputError if the folder cannot be mounted, InternalError if a task fails.
    """
    # Every file that the kernel knows is an open descriptor of this process.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # pyfuse3 logs an error whenever a program ends before its answer.
    logging.getLogger("pyfuse3").setLevel(logging.CRITICAL)
    try:
        trio.run(_serve, mount, ready, publish)
    except ExceptionGroup as error:
        # A task of the session has failed. In the background only the log shows why.
        _LOG.exception("the mount at %s has failed", mount.point)
        raise InternalError(f"the mount at {mount.point} has failed") from error


async def _serve(mount: MountSpec, ready: Callable[[], None], publish: Publish) -> None:
    service = MountService(mount.limits, mount.slo_settings, trio.current_time())
    root = open_path(os.fsencode(mount.backing))
    files = PassThrough(root, service.gate, service.classify)
    try:
        with _mounted(files, mount), _listening(mount) as listener:
            # The kernel has already applied the umask of the program.
            os.umask(0)
            session = _Session(mount, service, files)
            with publish(session.status_from_thread):
                await session.run(listener, ready)
    finally:
        files.close()


@contextmanager
def _mounted(files: PassThrough, mount: MountSpec) -> Iterator[None]:
    """Mount the folder, and unmount it at the end."""
    options = {"default_permissions", "subtype=penstock"}
    options.add(f"fsname={quote(mount.backing)}")
    if os.geteuid() == 0:
        options.add("allow_other")
    try:
        pyfuse3.init(files, mount.point, options)
    except RuntimeError as error:
        raise InputError(
            f"cannot be mounted: {error}",
            where=mount.point,
            remedy="install fuse3 and allow access to /dev/fuse",
        ) from None
    try:
        yield
    finally:
        # This detaches the mount if it is still there.
        pyfuse3.close(unmount=True)


@contextmanager
def _listening(mount: MountSpec) -> Iterator[trio.SocketListener]:
    """Open the control socket of the mount; only its owner may use it."""
    mounted = mounted_at(mount.point)
    if mounted is None:
        raise InternalError(f"{mount.point} is not in the mount table after mounting")
    raise_background_limit(mounted.device, _MAX_REQUESTS)
    path = socket_path(mount.folder, mounted.device)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        mount.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.umask(0o177)
        listener.bind(str(path))
        listener.listen()
        yield trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    except OSError as error:
        raise InputError(
            f"cannot be created: {error.strerror or error}",
            where=str(path),
            remedy="give another folder with --folder",
        ) from None
    finally:
        listener.close()
        # An error here must not hide the error above.
        with suppress(OSError):
            path.unlink()


async def _interrupt_blocked_reads() -> None:
    """Interrupt reads from the kernel periodically.

    pyfuse3 waits until a request can be read, and then reads without a time limit. If
    the program that made the request is killed in between, the read blocks the event
    loop until the next request arrives. A signal interrupts the read.
    """
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, _INTERRUPT_S, _INTERRUPT_S)
    try:
        await trio.sleep_forever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


class _Session:
    """A mount while it is served."""

    def __init__(
        self, mount: MountSpec, service: MountService, files: PassThrough
    ) -> None:
        self._mount = mount
        self._service = service
        self._files = files
        self._loop = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        #: While this is not cancelled, programs are served after a signal.
        self._grace = trio.CancelScope()
        self._serving = trio.CancelScope()

    async def run(
        self, listener: trio.SocketListener, ready: Callable[[], None]
    ) -> None:
        """Serve until the folder is unmounted.

        Tasks: signals, the scheduler's wake-ups (`Gate.run`), reports between mounts,
        the control socket, and the requests of the kernel. trio does not define an
        order between tasks that are ready at the same time.
        """
        peers = self._service.open_peers()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_signals)
            nursery.start_soon(_interrupt_blocked_reads)
            nursery.start_soon(self._service.gate.run)
            if peers is not None:
                nursery.start_soon(peers.run)
            nursery.start_soon(self._end_when_stopped)
            nursery.start_soon(trio.serve_listeners, self._serve_client, [listener])
            ready()
            with self._serving:
                # Main loop of the mount: reads and answers the requests of the kernel.
                await pyfuse3.main(_IDLE_TASKS, _MAX_REQUESTS)
            nursery.cancel_scope.cancel()

    # --- Ending -------------------------------------------------------------------

    async def _watch_signals(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Stop at the first signal; at the second one, stop without a grace time."""
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            task_status.started()
            async for _ in signals:
                if self._stop.is_set():
                    self._grace.cancel()
                self._stop.set()

    async def _end_when_stopped(self) -> None:
        """Unmount after a stop; detach the mount if programs use it for too long."""
        await self._stop.wait()
        self._grace.deadline = trio.current_time() + _GRACE_S
        with self._grace:
            while not await self._try_unmount():
                await trio.sleep(_RETRY_S)
            return
        _LOG.warning(
            "%s is detached: programs that still use it get errors", self._mount.point
        )
        await self._abort()

    async def _try_unmount(self, *, lazy: bool = False) -> bool:
        """Return True if the folder could be unmounted."""
        with suppress(OSError):
            # In a thread, because the kernel may wait for an answer of this process.
            await trio.to_thread.run_sync(
                partial(unmount, self._mount.point, lazy=lazy), abandon_on_cancel=True
            )
            return True
        return False

    async def _abort(self) -> None:
        """End now: no new requests, and errors for requests that wait."""
        self._serving.deadline = trio.current_time() + _LAST_REQUESTS_S
        await self._try_unmount(lazy=True)
        self._service.gate.close()
        pyfuse3.terminate()

    # --- The control socket -------------------------------------------------------

    async def _serve_client(self, stream: trio.SocketStream) -> None:
        """Read one command and answer it."""
        with suppress(trio.BrokenResourceError), trio.move_on_after(_CLIENT_S):
            line = b""
            while not line.endswith(b"\n") and len(line) < MAX_MESSAGE_BYTES:
                part = await stream.receive_some(MAX_MESSAGE_BYTES)
                if not part:
                    return
                line += part
            await stream.send_all(encode(self._answer(line)))

    def _answer(self, line: bytes) -> MountStatus | MountRefusal:
        """Execute the command in a line; return the status or the refusal."""
        try:
            self._execute(decode_command(line))
        except InputError as error:
            return MountRefusal(str(error))
        return self._status()

    def _execute(self, command: MountCommand) -> None:
        if isinstance(command, SetLimits):
            limits = command.applied_to(self._service.limiter.limits)
            self._service.set_limits(limits)
        elif isinstance(command, SetSlo):
            settings = self._service.set_slo(command.document)
            self._files.reassign(settings.known_or_default)
        elif isinstance(command, Stop):
            self._grace.cancel()
            self._stop.set()

    def status_from_thread(self) -> MountStatus:
        """Return the status; called from a thread outside of the event loop."""
        status: MountStatus = trio.from_thread.run_sync(
            self._status, trio_token=self._loop
        )
        return status

    def _status(self) -> MountStatus:
        moved = {kind: self._moved(kind) for kind in DATA_KINDS}
        counts = self._files.counts
        return MountStatus(
            backing=self._mount.backing,
            point=self._mount.point,
            pid=os.getpid(),
            limits=limits_document(self._service.limiter.limits),
            waiting=self._service.gate.waiting,
            metadata={
                name: counts[name] for name in sorted(counts.keys() - set(DATA_KINDS))
            },
            scheduling=self._service.scheduler_status(),
            **moved,
        )

    def _moved(self, kind: Kind) -> Moved:
        tally = self._service.gate.tallies[kind]
        return Moved(tally.requests, tally.moved_bytes, tally.held_up_s)
