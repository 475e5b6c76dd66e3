# SPDX-License-Identifier: MIT
"""The process behind a mount: mount, serve requests and the control socket, unmount.

The data path serves requests in threads of its own; the event loop here serves
the control socket, signals and reports. The process ends when the folder is unmounted,
or on SIGINT, SIGTERM or SIGHUP. After a signal it unmounts the folder. This fails while
programs use the mount, so it serves them for another `_GRACE_S` seconds; then it
detaches the mount, and they get errors. Acknowledged writes are in the backing files at
that time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import (
    AbstractContextManager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import quote

from penstock.errors import InputError, InternalError, UnavailableError
from penstock.live.wire.folder import own_folder
from penstock.live.worker import Worker
from penstock.mount.backing_watch import BackingWatch
from penstock.mount.control import (
    CHANGE_S,
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
from penstock.mount.data_path import DataPath, Totals
from penstock.mount.limits import Limits
from penstock.mount.points import mounted_at, unmount
from penstock.mount.service import MountService
from penstock.mount.slo_settings import SloSettings

__all__ = ["MountSpec", "Publish", "serve"]

#: Publishes the status of the mount, given a function that returns the status.
Publish: TypeAlias = Callable[[Callable[[], MountStatus]], AbstractContextManager[None]]

_LOG: Final = logging.getLogger("penstock.mount")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: How long programs are served after a signal.
_GRACE_S: Final = 5.0
#: How long requests under way may take at the end.
_LAST_REQUESTS_S: Final = 5.0
#: Longest time for a client of the control socket.
_CLIENT_S: Final = 5.0
#: Time between two attempts to unmount.
_RETRY_S: Final = 0.05


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
    backing_id: str = ""
    """`penstock.mount.points.folder_id` of the backing folder; "": not known."""


def serve(
    mount: MountSpec,
    ready: Callable[[], None] = lambda: None,
    publish: Publish = lambda _: nullcontext(),
) -> None:
    """Mount, call `ready`, and serve until the folder is unmounted.

    Raises InputError if the folder cannot be mounted, InternalError if a task fails.
    """
    data_path = DataPath(mount.backing)
    service = MountService(data_path, mount.limits, mount.slo_settings)
    link = service.open_link()
    with _mounted(data_path, mount), _listening(mount) as listener:
        session = _Session(mount, service, data_path)
        try:
            watch = BackingWatch(mount.backing, mount.backing_id)
            with publish(session.status), link or nullcontext(), watch:
                asyncio.run(session.run(listener, ready))
        except ExceptionGroup as error:
            # A task has failed. In the background only the log shows why.
            _LOG.exception("the mount at %s has failed", mount.point)
            raise InternalError(f"the mount at {mount.point} has failed") from error


@contextmanager
def _mounted(data_path: DataPath, mount: MountSpec) -> Iterator[None]:
    """Mount the folder, and unmount it at the end."""
    options = ["default_permissions", "subtype=penstock"]
    options.append(f"fsname={quote(mount.backing)}")
    if os.geteuid() == 0:
        options.append("allow_other")
    data_path.attach(mount.point, options)
    try:
        yield
    finally:
        # This detaches the mount if it is still there.
        data_path.detach()


@contextmanager
def _listening(mount: MountSpec) -> Iterator[socket.socket]:
    """Open the control socket of the mount; only its owner may use it."""
    mounted = mounted_at(mount.point)
    if mounted is None:
        raise InternalError(f"{mount.point} is not in the mount table after mounting")
    path = socket_path(mount.folder, mounted.device)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        own_folder(mount.folder)
        path.unlink(missing_ok=True)
        umask = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(umask)
        yield listener
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


class _Session:
    """A mount while it is served."""

    def __init__(
        self, mount: MountSpec, service: MountService, data_path: DataPath
    ) -> None:
        self._mount = mount
        self._service = service
        self._data_path = data_path
        self._stop = asyncio.Event()
        #: Set: programs are not served any longer after a stop.
        self._now = asyncio.Event()
        self._ended = asyncio.Event()
        #: Replaces SLOs, one change after the other.
        self._changes = Worker("settings")
        #: The first request has been served, or serving has ended.
        self._begun = asyncio.Event()
        #: Why requests could not be served; None: they were.
        self._failure: UnavailableError | None = None

    async def run(
        self,
        listener: socket.socket,
        ready: Callable[[], None],
    ) -> None:
        """Serve until the folder is unmounted.

        Tasks: the control socket, and the end after a signal. The data path serves the
        requests of the kernel in a thread. Raises `UnavailableError` if it cannot.
        """
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._handle_signal)
        server = await asyncio.start_unix_server(
            self._serve_client, sock=listener, limit=MAX_MESSAGE_BYTES
        )
        threading.Thread(
            target=self._serve_requests, args=[loop], daemon=True, name="data path"
        ).start()
        async with server, asyncio.TaskGroup() as group:
            ending = group.create_task(self._end_when_stopped())
            await self._begun.wait()
            if self._failure is None:
                ready()
            await self._ended.wait()
            ending.cancel()
        self._changes.end(0.0, drops=True)
        if self._failure is not None:
            _LOG.error("%s", self._failure)
            raise self._failure

    def _serve_requests(self, loop: asyncio.AbstractEventLoop) -> None:
        """Serve the requests of the kernel; runs in a thread."""

        def tell(*events: asyncio.Event) -> None:
            with suppress(RuntimeError):  # The event loop has already ended.
                for event in events:
                    loop.call_soon_threadsafe(event.set)

        try:
            self._data_path.serve(lambda: tell(self._begun))
        except UnavailableError as error:
            self._failure = error.at(f"{self._mount.point}: ")
        finally:
            tell(self._begun, self._ended)

    # --- Ending -------------------------------------------------------------------

    def _handle_signal(self) -> None:
        """Stop at the first signal; at the second one, stop without a grace time."""
        if self._stop.is_set():
            self._now.set()
        self._stop.set()

    async def _end_when_stopped(self) -> None:
        """Unmount after a stop; detach the mount if programs use it for too long."""
        await self._stop.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                if await self._unmounted_in_time():
                    return
        _LOG.warning(
            "%s is detached: programs that still use it get errors", self._mount.point
        )
        await self._abort()

    async def _unmounted_in_time(self) -> bool:
        """Return True if the folder could be unmounted before a second signal."""
        while not self._now.is_set():
            if await self._try_unmount():
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self._now.wait(), _RETRY_S)
        return False

    async def _try_unmount(self, *, lazy: bool = False) -> bool:
        """Return True if the folder could be unmounted."""
        # In a thread, because the kernel may wait for an answer of this process; in a
        # new one, because an earlier try may hang. The end does not wait for it.
        worker = Worker("unmount")
        done = worker.submit(unmount, self._mount.point, lazy=lazy)
        worker.end(0.0)
        with suppress(OSError):
            await asyncio.wrap_future(done)
            return True
        return False

    async def _abort(self) -> None:
        """End now: no new requests, and errors for requests that wait."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._try_unmount(lazy=True), _LAST_REQUESTS_S)
        self._data_path.stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _LAST_REQUESTS_S)
        self._begun.set()
        self._ended.set()

    # --- The control socket -------------------------------------------------------

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Read one command and answer it."""
        try:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(_CLIENT_S):
                    line = await reader.readuntil(b"\n")
                answer = await self._answer(line)
                async with asyncio.timeout(_CLIENT_S):
                    writer.write(encode(answer))
                    await writer.drain()
        except asyncio.LimitOverrunError:
            writer.write(encode(MountRefusal("the command is too long")))
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> MountStatus | MountRefusal:
        """Execute the command in a line; return the status or the refusal."""
        try:
            command = decode_command(line)
            if isinstance(command, SetSlo):
                await self._set_slo(command)
            else:
                self._execute(command)
        except (InputError, UnavailableError) as error:
            return MountRefusal(str(error))
        return self.status()

    def _execute(self, command: MountCommand) -> None:
        if isinstance(command, SetLimits):
            self._service.set_limits(command.applied_to(self._service.limits))
        elif isinstance(command, Stop):
            self._now.set()
            self._stop.set()

    async def _set_slo(self, command: SetSlo) -> None:
        """Replace the SLOs, in a thread: the storage may be asked, and may be slow."""
        done = self._changes.submit(self._service.set_slo, command.document)
        try:
            async with asyncio.timeout(CHANGE_S):
                await asyncio.wrap_future(done)
        except TimeoutError:
            raise UnavailableError(
                f"the change takes longer than {CHANGE_S:g} s; it may still be made",
                remedy="give a number of mounts instead of auto, and numbers of users "
                "and groups instead of names",
            ) from None

    def status(self) -> MountStatus:
        """Return the status; this may be called from any thread."""
        totals, waiting, waiting_metadata = self._data_path.totals()
        return MountStatus(
            backing=self._mount.backing,
            backing_id=self._mount.backing_id,
            point=self._mount.point,
            pid=os.getpid(),
            limits=limits_document(self._service.limits),
            waiting=waiting,
            waiting_metadata=waiting_metadata,
            metadata_waited_s=totals["metadata"].held_up_s,
            metadata=self._data_path.operation_counts(),
            scheduling=self._service.scheduler_status(),
            read=_moved(totals["read"]),
            write=_moved(totals["write"]),
        )


def _moved(totals: Totals) -> Moved:
    return Moved(totals.requests, totals.moved_bytes, totals.held_up_s)
