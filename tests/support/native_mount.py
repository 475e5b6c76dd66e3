# SPDX-License-Identifier: MIT
"""The C parts of a mount for tests, with a clock that the test sets."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import (
    c_bool,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from penstock.mount.callbacks import SchedulerCallbacks, scheduler_pointers
from penstock.mount.data_path import SchedulerPointers
from penstock.mount.limits import Limits
from penstock.qos import QosScheduler, Request
from support.mounts import why_no_mount_library
from support.native_build import STRICT, build_variant

__all__ = ["NativeGate", "NativeLimiter", "driver", "set_time"]

_KINDS = ("read", "write", "sync", "metadata")


@cache
def driver() -> ctypes.CDLL:
    """Return the library of mounts with the entry points of ``mount_driver.c``."""
    if reason := why_no_mount_library():
        pytest.skip(reason)
    source = Path(__file__).with_name("mount_driver.c")
    with TemporaryDirectory() as folder:
        options = (STRICT, f"-DPENSTOCK_MOUNT_DRIVER={source}")
        library = ctypes.CDLL(str(build_variant(Path(folder), "mount", *options)))
    functions: dict[str, tuple[Any, ...]] = {
        "gate_new": (c_void_p, ctypes.POINTER(SchedulerPointers)),
        "gate_limit": (None, c_void_p, c_double, c_double, c_double),
        "gate_enter": (c_void_p, c_void_p, c_int, c_int, c_int64, c_bool),
        "gate_state": (c_int, c_void_p),
        "gate_leave": (None, c_void_p, c_void_p, c_int64),
        "gate_wake_s": (c_double, c_void_p),
        "gate_waiting": (c_int64, c_void_p, c_int),
        "limiter_new": (c_void_p, c_double, c_double, c_double),
        "limiter_set": (None, c_void_p, c_double, c_double, c_double),
        "limiter_arrive": (c_void_p, c_void_p, c_int, c_int64),
        "limiter_next": (c_void_p, c_void_p),
        "limiter_complete": (None, c_void_p, c_void_p, c_int64),
        "limiter_wake_s": (c_double, c_void_p),
        "limiter_waiting": (c_int64, c_void_p),
        "meter_new": (c_void_p, c_double),
        "meter_record": (None, c_void_p, c_double, c_int64),
        "meter_read": (None, c_void_p, c_void_p),
        "operations_new": (c_void_p, c_int, c_double),
        "folder_new": (c_void_p,),
        "operations_charge": (
            *(c_double, c_void_p, c_int, c_void_p, c_void_p, c_bool),
            ctypes.POINTER(c_bool),
        ),
        "inodes_new": (c_void_p,),
        "inodes_add": (c_void_p, c_void_p, c_void_p, c_char_p, c_uint64),
        "inodes_path": (None, c_void_p, c_void_p, c_char_p, c_char_p, c_size_t),
        "inodes_of": (c_void_p, c_char_p, c_size_t),
        "inodes_free": (None, c_void_p),
        "inodes_fds": (c_size_t, c_void_p),
        "inodes_look_up": (c_void_p, c_void_p, c_char_p),
        "inodes_use": (c_bool, c_void_p, c_void_p),
        "io_begin": (c_int,),
        "read_request": (c_int, c_int),
        "answer_at": (None, c_int, c_uint64, c_double),
        "opens_new": (c_void_p, c_int64, c_void_p),
        "opens_take": (c_bool, c_void_p, c_uint32),
        "opens_give_back": (None, c_void_p, c_uint32),
    }
    for name, (result, *parameters) in functions.items():
        function = getattr(library, f"driver_{name}")
        function.restype, function.argtypes = result, parameters
    plain: dict[str, tuple[Any, ...]] = {
        "gate_dispatch": (None, c_void_p),
        "gate_close": (None, c_void_p),
        "inodes_before_open": (c_uint64, c_void_p),
        "inodes_opened": (None, c_void_p, c_void_p, c_int, c_uint64),
        "inodes_closed": (None, c_void_p, c_void_p),
        "inodes_begin_change": (None, c_void_p),
        "inodes_end_change": (None, c_void_p),
    }
    for name, (result, *parameters) in plain.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


def set_time(now: float) -> None:
    """Set the clock of all C parts (s)."""
    c_double.in_dll(driver(), "driver_now_s").value = now


def _rates(limits: Limits) -> tuple[float, float, float]:
    return limits.total, limits.read, limits.write


class NativeGate:
    """A gate; requests that may go wait until the test completes them."""

    def __init__(
        self, scheduler: QosScheduler | None, limits: Limits, names: Sequence[str] = ()
    ) -> None:
        self._library = driver()
        pointers = SchedulerPointers()
        self.callbacks: Any = None
        if scheduler is not None:
            self.callbacks = scheduler
            if not hasattr(scheduler, "pointers"):
                self.callbacks = SchedulerCallbacks(scheduler)
            self._indices = {name: self.callbacks.index_of(name) for name in names}
            pointers = scheduler_pointers(self.callbacks)
        self._gate = self._library.driver_gate_new(ctypes.byref(pointers))
        self.set_limits(limits)
        self._passages: dict[Request, int] = {}
        #: Requests that wait.
        self.waiting: list[Request] = []

    @property
    def wake_s(self) -> float:
        wake_s: float = self._library.driver_gate_wake_s(self._gate)
        return wake_s

    def waiting_of(self, application: str | None) -> int:
        index = -1 if application is None else self._indices[application]
        count: int = self._library.driver_gate_waiting(self._gate, index)
        return count

    def arrive(self, request: Request) -> None:
        index = 0 if self.callbacks is None else self._indices[request.application]
        passage = self._library.driver_gate_enter(
            *(self._gate, _KINDS.index(request.kind), index),
            *(request.size_bytes, request.is_urgent),
        )
        self._passages[request] = passage
        self.waiting.append(request)

    def released(self) -> list[Request]:
        """Return the requests that may go since the last call."""
        released = [r for r in self.waiting if self.state(r)]
        self.waiting = [r for r in self.waiting if r not in released]
        return released

    def state(self, request: Request) -> int:
        """Return 0 for a request that waits, 1 if it may go, 2 if it was refused."""
        state: int = self._library.driver_gate_state(self._passages[request])
        return state

    def complete(self, request: Request, moved_bytes: int) -> None:
        passage = self._passages.pop(request)
        self._library.driver_gate_leave(self._gate, passage, moved_bytes)

    def dispatch(self) -> None:
        self._library.gate_dispatch(self._gate)

    def set_limits(self, limits: Limits) -> None:
        self._library.driver_gate_limit(self._gate, *_rates(limits))

    def close(self) -> None:
        self._library.gate_close(self._gate)


class NativeLimiter:
    """The limiter, for requests that are Python objects."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._library = driver()
        set_time(now)
        self._limiter = self._library.driver_limiter_new(*_rates(limits))
        self._pointers: dict[Request, int] = {}
        self._requests: dict[int, Request] = {}

    @property
    def wake_s(self) -> float:
        wake_s: float = self._library.driver_limiter_wake_s(self._limiter)
        return wake_s

    @property
    def waiting(self) -> int:
        waiting: int = self._library.driver_limiter_waiting(self._limiter)
        return waiting

    def set_limits(self, limits: Limits, now: float) -> None:
        set_time(now)
        self._library.driver_limiter_set(self._limiter, *_rates(limits))

    def arrive(self, request: Request, now: float) -> None:
        set_time(now)
        is_write = request.kind == "write"
        pointer = self._library.driver_limiter_arrive(
            self._limiter, is_write, request.size_bytes
        )
        self._pointers[request], self._requests[pointer] = pointer, request

    def dispatch(self, now: float) -> list[Request]:
        set_time(now)
        sent = []
        while pointer := self._library.driver_limiter_next(self._limiter):
            sent.append(self._requests[pointer])
        return sent

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        set_time(now)
        pointer = self._pointers[request]
        self._library.driver_limiter_complete(self._limiter, pointer, moved_bytes)
