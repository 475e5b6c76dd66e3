# SPDX-License-Identifier: MIT
"""The process behind a mount: mounts, serves, obeys its socket, and unmounts.

It ends when somebody unmounts, or on SIGINT, SIGTERM or SIGHUP: then it unmounts
itself. While programs use the mount that is not possible; they are served on for a
while (`_GRACE_S`), then the mount is detached and they get errors. What was
acknowledged before is in the backing files.
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

from penstock.errors import InputError, InternalError, PenstockError
from penstock.mount.control import (
    LARGEST,
    MountRefusal,
    MountStatus,
    Moved,
    Question,
    SetLimits,
    SetObjectives,
    Stop,
    decode_question,
    encode,
    limits_document,
    socket_path,
)
from penstock.mount.filesystem.backing import hold
from penstock.mount.filesystem.passthrough import PassThrough
from penstock.mount.limiter import KINDS, Limits
from penstock.mount.objectives import Objectives
from penstock.mount.points import mounted_at, unmount, widen
from penstock.mount.service import Service
from penstock.qos import Kind

__all__ = ["MountSpec", "Publish", "serve"]

#: Makes known how the mount stands, which it is given the way to ask.
Publish: TypeAlias = Callable[[Callable[[], MountStatus]], AbstractContextManager[None]]

_LOG: Final = logging.getLogger("penstock.mount")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Requests under way at a time, those who wait included.
_REQUESTS: Final = 4096
#: Tasks that stay when there is little to do; each keeps a buffer of 1 MiB.
_IDLE_TASKS: Final = 2
#: How long programs may go on after a signal (s).
_GRACE_S: Final = 5.0
#: How long calls under way may take at the end, and how long a client is heard (s).
_PATIENCE_S: Final = 5.0
_RETRY_S: Final = 0.05
_TICK_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class MountSpec:
    """What is mounted where, and how much may pass."""

    backing: str
    point: str
    limits: Limits
    folder: Path
    """Where the socket lies; only its owner may enter."""
    objectives: Objectives | None = None
    """What applications are promised; None: first come, first served."""


def serve(
    mount: MountSpec,
    ready: Callable[[], None] = lambda: None,
    publish: Publish = lambda _: nullcontext(),
) -> None:
    """Mount, call `ready`, and serve until it is unmounted."""
    # Every file that the kernel knows is an open descriptor here.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # It complains whenever a program has gone before its answer.
    logging.getLogger("pyfuse3").setLevel(logging.CRITICAL)
    try:
        trio.run(_serve, mount, ready, publish)
    except PenstockError:
        raise
    except Exception as error:
        # In the background nobody sees a traceback.
        _LOG.exception("%s has failed", mount.point)
        raise InternalError(f"the mount at {mount.point} has failed") from error


async def _serve(mount: MountSpec, ready: Callable[[], None], publish: Publish) -> None:
    service = Service(mount.limits, mount.objectives, trio.current_time())
    root = hold(os.fsencode(mount.backing))
    files = PassThrough(root, service.gate, service.application_of)
    try:
        with _mounted(files, mount), _listening(mount) as listener:
            # New files get exactly the mode that the kernel asks for.
            os.umask(0)
            session = _Session(mount, service, files)
            with publish(session.state_from_elsewhere):
                await session.run(listener, ready)
    finally:
        files.close()


@contextmanager
def _mounted(files: PassThrough, mount: MountSpec) -> Iterator[None]:
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
            remedy="fusermount3 and access to /dev/fuse are needed",
        ) from None
    try:
        yield
    finally:
        # Detaches the mount if it is still there.
        pyfuse3.close(unmount=True)


@contextmanager
def _listening(mount: MountSpec) -> Iterator[trio.SocketListener]:
    """Open the socket of the mount; only its owner may use it."""
    mounted = mounted_at(mount.point)
    if mounted is None:
        raise InternalError(f"{mount.point} is mounted and is not")
    widen(mounted.device, _REQUESTS)
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
            f"cannot be made: {error.strerror or error}",
            where=str(path),
            remedy="give --folder",
        ) from None
    finally:
        listener.close()
        # What has kept it from being made must not be hidden by this.
        with suppress(OSError):
            path.unlink()


async def _tick() -> None:
    """Interrupt reads from the kernel now and then.

    pyfuse3 waits until a request can be read, then reads without a time limit. If the
    program that made the request is killed in between, the read would last until the
    next request, and all that wait with it. A signal ends it.
    """
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)
    try:
        await trio.sleep_forever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


class _Session:
    """A mount while it is served."""

    def __init__(self, mount: MountSpec, service: Service, files: PassThrough) -> None:
        self._mount = mount
        self._service = service
        self._files = files
        self._loop = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        #: In which programs may leave by themselves.
        self._grace = trio.CancelScope()
        self._serving = trio.CancelScope()

    async def run(
        self, listener: trio.SocketListener, ready: Callable[[], None]
    ) -> None:
        """Serve until the mount is gone."""
        peers = self._service.peers()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_signals)
            nursery.start_soon(_tick)
            nursery.start_soon(self._service.gate.run)
            if peers is not None:
                nursery.start_soon(peers.run)
            nursery.start_soon(self._end_when_told)
            nursery.start_soon(trio.serve_listeners, self._serve_client, [listener])
            ready()
            with self._serving:
                await pyfuse3.main(_IDLE_TASKS, _REQUESTS)
            nursery.cancel_scope.cancel()

    # --- Ending -------------------------------------------------------------------

    async def _watch_signals(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Stop at a signal; at a second one, at once."""
        with trio.open_signal_receiver(*_SIGNALS) as signals:
            task_status.started()
            async for _ in signals:
                if self._stop.is_set():
                    self._grace.cancel()
                self._stop.set()

    async def _end_when_told(self) -> None:
        """Unmount when told to; by force if programs do not leave in time."""
        await self._stop.wait()
        self._grace.deadline = trio.current_time() + _GRACE_S
        with self._grace:
            while not await self._unmounted():
                await trio.sleep(_RETRY_S)
            return
        _LOG.warning("%s is detached: who still uses it gets errors", self._mount.point)
        await self._abort()

    async def _unmounted(self, *, lazy: bool = False) -> bool:
        with suppress(OSError):
            # In a thread: the kernel may have requests for this very process.
            await trio.to_thread.run_sync(
                partial(unmount, self._mount.point, lazy=lazy), abandon_on_cancel=True
            )
            return True
        return False

    async def _abort(self) -> None:
        """End now: no new requests, errors for those who wait."""
        self._serving.deadline = trio.current_time() + _PATIENCE_S
        await self._unmounted(lazy=True)
        self._service.gate.close()
        pyfuse3.terminate()

    # --- The socket ---------------------------------------------------------------

    async def _serve_client(self, stream: trio.SocketStream) -> None:
        """Answer one question."""
        with suppress(trio.BrokenResourceError), trio.move_on_after(_PATIENCE_S):
            line = b""
            while not line.endswith(b"\n") and len(line) < LARGEST:
                part = await stream.receive_some(LARGEST)
                if not part:
                    return
                line += part
            await stream.send_all(encode(self._answer(line)))

    def _answer(self, line: bytes) -> MountStatus | MountRefusal:
        try:
            self._obey(decode_question(line))
        except InputError as error:
            return MountRefusal(str(error))
        return self._state()

    def _obey(self, question: Question) -> None:
        if isinstance(question, SetLimits):
            self._service.limit(question.applied(self._service.limiter.limits))
        elif isinstance(question, SetObjectives):
            self._files.rebind(self._service.promise(question.document).present)
        elif isinstance(question, Stop):
            self._grace.cancel()
            self._stop.set()

    def state_from_elsewhere(self) -> MountStatus:
        """Return how the mount stands, to another thread."""
        state: MountStatus = trio.from_thread.run_sync(
            self._state, trio_token=self._loop
        )
        return state

    def _state(self) -> MountStatus:
        moved = {kind: self._moved(kind) for kind in KINDS}
        counts = self._files.counts
        return MountStatus(
            backing=self._mount.backing,
            point=self._mount.point,
            pid=os.getpid(),
            limits=limits_document(self._service.limiter.limits),
            waiting=self._service.gate.waiting,
            metadata={
                name: counts[name] for name in sorted(counts.keys() - set(KINDS))
            },
            order=self._service.order(),
            **moved,
        )

    def _moved(self, kind: Kind) -> Moved:
        tally = self._service.gate.tallies[kind]
        return Moved(tally.requests, tally.bytes, tally.waited_s)
