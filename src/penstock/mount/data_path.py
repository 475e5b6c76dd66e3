# SPDX-License-Identifier: MIT
"""The data path of a mount, in C: load it, start it, and read its counts.

The C code is in ``native/mount``; ``mount.h`` there is the map. Python waits for the
mutex of the data path without holding its own lock, and the data path needs Python only
to ask for the application of an unknown process and for schedulers written in Python.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_uint32,
    c_void_p,
)
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError, InternalError, UnavailableError
from penstock.live.wire.subordinates import owner_of
from penstock.mount.limits import Limits
from penstock.native.files import mount_library_path
from penstock.qos import KINDS, Kind

__all__ = [
    "MAX_APPLICATIONS",
    "ApplicationService",
    "DataPath",
    "SchedulerPointers",
    "Totals",
    "load_library",
]

#: Most applications, of the whole life of a mount.
MAX_APPLICATIONS: Final = 1024
#: Part of the allowed descriptors that the table of inodes may use.
_INODE_SHARE: Final = 0.5

#: Returns the index of the application of a process, a user and a path.
_Ask: Final = ctypes.CFUNCTYPE(c_int32, c_int64, c_int64, c_char_p)
#: Called when the first request is served.
_Ready: Final = ctypes.CFUNCTYPE(None)
#: Returns the user whose budget a user id has.
_AskOwner: Final = ctypes.CFUNCTYPE(c_uint32, c_uint32)


class SchedulerPointers(Structure):
    """The scheduler as function pointers; see ``native/mount/gate.h``."""

    _fields_ = [
        ("state", c_void_p),
        ("arrive", c_void_p),
        ("next", c_void_p),
        ("complete", c_void_p),
        ("wake_s", c_void_p),
    ]


class _Totals(Structure):
    _fields_ = [
        ("requests", c_int64 * 4),
        ("moved_bytes", c_int64 * 4),
        ("held_up_s", c_double * 4),
        ("waiting", c_int64),
        ("waiting_metadata", c_int64),
    ]


class _Service(Structure):
    _fields_ = [
        ("requests", c_int64),
        ("moved_bytes", c_int64),
        ("windows", c_int64),
        ("kept_windows", c_int64),
        ("p95_s", c_double),
        ("bytes_per_s", c_double),
        ("queued", c_int64),
        ("operations", c_int64),
        ("queued_operations", c_int64),
    ]


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of one kind of requests."""

    requests: int
    moved_bytes: int
    held_up_s: float


@dataclass(frozen=True, slots=True)
class ApplicationService:
    """Service of an application; the window is the last complete one."""

    requests: int
    moved_bytes: int
    windows: int
    kept_windows: int
    p95_s: float | None
    """95th percentile of the response times in the window; None: no answers."""
    bytes_per_s: float
    queued: int
    """Number of requests that wait now."""
    operations: int
    """Number of metadata requests."""
    queued_operations: int
    """Number of metadata requests that wait now."""


def load_library(path: Path) -> ctypes.CDLL:
    """Load the library of mounts and declare its functions.

    Raises `InputError` if it cannot be loaded: one that was compiled in a checkout
    needs libfuse of the system.
    """
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise InputError(
            f"the library of mounts cannot be loaded: {error}", remedy="install fuse3"
        ) from None
    mount, scheduler = c_void_p, POINTER(SchedulerPointers)
    functions: dict[str, tuple[Any, ...]] = {
        # Result, parameters.
        "message": (c_char_p,),
        "new": (c_void_p, c_int, c_int64),
        "attach": (c_bool, mount, c_char_p, c_char_p),
        "serve": (c_bool, mount, _Ready),
        "stop": (None, mount),
        "detach": (None, mount),
        "lock": (None, mount),
        "unlock": (None, mount),
        "dispatch": (None, mount),
        "set_schedulers": (None, mount, scheduler, scheduler),
        "set_limits": (None, mount, c_double, c_double, c_double),
        "measure": (None, mount, c_int, c_double, c_double),
        "replace": (None, mount, c_int, c_int),
        "set_rules": (
            *(None, mount, _Ask, c_bool, c_bool, c_int),
            POINTER(c_char_p),
        ),
        "set_owners": (None, mount, _AskOwner),
        "totals": (None, mount, POINTER(_Totals)),
        "service": (None, mount, c_int, POINTER(_Service)),
        "operation_name": (c_char_p, c_int),
        "operation_count": (c_int64, mount, c_int),
    }
    for name, (result, *parameters) in functions.items():
        function = getattr(library, f"penstock_mount_{name}")
        function.restype, function.argtypes = result, parameters
    return library


class DataPath:
    """The data path of one mount.

    Parameters
    ----------
    backing
        The folder to mount.

    Raises InputError if there is no library or the folder cannot be opened.
    """

    def __init__(self, backing: str) -> None:
        # Every file that a program has open is a descriptor of this process.
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._library = load_library(mount_library_path())
        try:
            root = os.open(backing, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(
                f"cannot be opened: {error.strerror}", where=backing
            ) from None
        self._mount = self._library.penstock_mount_new(root, int(most * _INODE_SHARE))
        if not self._mount:
            raise InternalError("the data path of the mount cannot be started")
        ask_owner = _AskOwner(owner_of)
        self._library.penstock_mount_set_owners(self._mount, ask_owner)
        #: Objects that the data path refers to.
        self._kept: list[object] = [ask_owner]

    # --- The session --------------------------------------------------------------

    def attach(self, point: str, options: Sequence[str]) -> None:
        """Mount at a folder; raise InputError if that fails."""
        text = ",".join(options).encode(errors="surrogateescape")
        if not self._library.penstock_mount_attach(
            self._mount, os.fsencode(point), text
        ):
            reason = os.fsdecode(self._library.penstock_mount_message())
            raise InputError(
                f"cannot be mounted: {reason.removeprefix('fuse: ') or 'no reason'}",
                where=point,
                remedy="install fuse3 and allow access to /dev/fuse",
            )

    def serve(self, ready: Callable[[], None]) -> None:
        """Serve until the folder is unmounted or `stop` is called; this blocks.

        Calls `ready` at the first request. Raises `UnavailableError` if requests cannot
        be served.
        """
        if not self._library.penstock_mount_serve(self._mount, _Ready(ready)):
            reason = os.fsdecode(self._library.penstock_mount_message())
            raise UnavailableError(
                f"requests cannot be served: {reason.removeprefix('fuse: ')}",
                remedy="allow more threads (ulimit -u, pids.max of the control group), "
                "and mount again",
            )

    def stop(self) -> None:
        """End `serve`; requests that wait fail."""
        self._library.penstock_mount_stop(self._mount)

    def detach(self) -> None:
        """Unmount the folder, if it is still mounted."""
        self._library.penstock_mount_detach(self._mount)

    # --- Scheduler and limits -----------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the mutexes under which the schedulers are called.

        Hold it for microseconds only: all programs wait meanwhile.
        """
        self._library.penstock_mount_lock(self._mount)
        try:
            yield
        finally:
            self._library.penstock_mount_unlock(self._mount)

    def dispatch(self) -> None:
        """Send what may go; call this in `locked`, after a change of a scheduler."""
        self._library.penstock_mount_dispatch(self._mount)

    def set_schedulers(
        self,
        data: SchedulerPointers,
        metadata: SchedulerPointers,
        owners: Sequence[object],
    ) -> None:
        """Set the schedulers of data and of metadata requests, before `serve`.

        `owners` stay alive with the mount.
        """
        self._kept += owners
        self._library.penstock_mount_set_schedulers(
            self._mount, ctypes.byref(data), ctypes.byref(metadata)
        )

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits; they also hold for requests that already wait."""
        rates = limits.total, limits.read, limits.write
        self._library.penstock_mount_set_limits(self._mount, *rates)

    # --- Applications -------------------------------------------------------------

    def measure(
        self, application: int, latency_s: float, operations_per_s: float | None
    ) -> None:
        """Measure an application against its latency bound, and limit its metadata."""
        self._library.penstock_mount_measure(
            self._mount, application, latency_s, operations_per_s or 0.0
        )

    def replace(self, application: int, by: int) -> None:
        """Give the open files of one application to another."""
        self._library.penstock_mount_replace(self._mount, application, by)

    def set_rules(
        self,
        ask: Callable[[int, int, bytes], int],
        paths: Sequence[str],
        *,
        by_process: bool,
        by_program: bool,
    ) -> None:
        """Let `ask` decide which application a process, a user and a path belong to.

        Its answers are kept for a second, by the given facts.
        """
        callback = _Ask(ask)
        self._kept.append(callback)
        array = (c_char_p * len(paths))(*map(os.fsencode, paths))
        self._library.penstock_mount_set_rules(
            self._mount, callback, by_process, by_program, len(paths), array
        )

    # --- Counts -------------------------------------------------------------------

    def totals(self) -> tuple[dict[Kind, Totals], int, int]:
        """Return the totals by kind, and how many requests wait now.

        The numbers are those of data requests and of metadata requests.
        """
        raw = _Totals()
        self._library.penstock_mount_totals(self._mount, ctypes.byref(raw))
        by_kind = {
            kind: Totals(raw.requests[n], raw.moved_bytes[n], raw.held_up_s[n])
            for n, kind in enumerate(KINDS)
        }
        return by_kind, raw.waiting, raw.waiting_metadata

    def service(self, application: int) -> ApplicationService:
        """Return the service of an application."""
        raw = _Service()
        self._library.penstock_mount_service(
            self._mount, application, ctypes.byref(raw)
        )
        values = {field[0]: getattr(raw, field[0]) for field in raw._fields_}
        values["p95_s"] = None if raw.p95_s < 0 else raw.p95_s
        return ApplicationService(**values)

    def operation_counts(self) -> dict[str, int]:
        """Return the number of metadata requests, by name; without zeros."""
        counts = {}
        number = 0
        while name := self._library.penstock_mount_operation_name(number):
            counts[name.decode()] = self._library.penstock_mount_operation_count(
                self._mount, number
            )
            number += 1
        return {name: count for name, count in sorted(counts.items()) if count}
