# SPDX-License-Identifier: MIT
"""Drive a scheduler that is written in Python from the data path, by callbacks.

The data path calls four functions (``native/mount/gate.h``) with numbers. This module
turns them into the methods of `penstock.qos.Scheduler`: slots into `Request` objects,
and indices into names of applications. Every call takes the lock of Python, so such a
scheduler handles some ten thousand requests per second; compiled schedulers are called
directly.

If a scheduler raises an exception, the error is logged and the mount goes on without
it: requests pass first come, first served.
"""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from ctypes import CFUNCTYPE, c_double, c_int64, c_void_p
from math import inf
from types import TracebackType
from typing import Any, Final

from penstock.mount.data_path import SchedulerPointers
from penstock.qos import Kind, QosScheduler, Request
from penstock.qos.interface import KINDS, URGENT_KIND

__all__ = ["ErrorLog", "SchedulerCallbacks", "scheduler_pointers"]

_LOG: Final = logging.getLogger("penstock.mount")
_ARRIVE: Final = CFUNCTYPE(c_int64, c_void_p, c_int64, c_int64, c_int64, c_double)
_NEXT: Final = CFUNCTYPE(c_int64, c_void_p, c_double)
_COMPLETE: Final = CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_double)
_WAKE: Final = CFUNCTYPE(c_double, c_void_p)
#: No slot: the table is full, or there is nothing to send.
_NONE: Final = -1


class ErrorLog:
    """A block whose errors are logged and end there: C must not see an exception."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.failed = False

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> bool:
        if kind is not None and not self.failed:
            self.failed = True
            _LOG.error("%s failed", self._what, exc_info=error)
        return kind is not None


class SchedulerCallbacks:
    """A scheduler as functions for the data path."""

    def __init__(self, scheduler: QosScheduler) -> None:
        self._scheduler = scheduler
        self._errors = ErrorLog("the scheduler of the mount")
        self._names: list[str] = []
        self._requests: dict[int, Request] = {}
        #: Slots of the requests that the scheduler has not sent, in order of arrival.
        self._waiting: dict[Request, int] = {}
        self._free: list[int] = []
        self._to_send: deque[Request] = deque()
        self._has_dispatched = False
        self._functions = (
            _ARRIVE(self._arrive),
            _NEXT(self._next),
            _COMPLETE(self._complete),
            _WAKE(self._wake_s),
        )

    def pointers(self) -> tuple[int, int, int, int, int]:
        """Return the addresses of state, arrive, next, complete and wake_s."""
        arrive, next_, complete, wake_s = (
            ctypes.cast(function, c_void_p).value or 0 for function in self._functions
        )
        return 0, arrive, next_, complete, wake_s

    def index_of(self, application: str) -> int:
        """Return the index of an application; a new name gets a new index."""
        if application not in self._names:
            self._names.append(application)
        return self._names.index(application)

    def _arrive(
        self, _: Any, application: int, kind: int, size_bytes: int, now: float
    ) -> int:
        if self._errors.failed:
            return _NONE
        with self._errors:
            name: Kind = "metadata" if kind == URGENT_KIND else KINDS[kind]
            request = Request(
                *(name, size_bytes, self._names[application]),
                is_urgent=kind == URGENT_KIND,
            )
            self._scheduler.arrive(request, now)
            slot = self._free.pop() if self._free else len(self._requests)
            self._requests[slot], self._waiting[request] = request, slot
            return slot
        return _NONE

    def _next(self, _: Any, now: float) -> int:
        with self._errors:
            if not self._errors.failed:
                return self._next_scheduled(now)
        # Without the scheduler: first come, first served.
        request = next(iter(self._waiting), None)
        return _NONE if request is None else self._waiting.pop(request)

    def _next_scheduled(self, now: float) -> int:
        """Return the next slot; the data path asks until there is none.

        `dispatch` is called once per round.
        """
        if not self._has_dispatched:
            self._to_send.extend(self._scheduler.dispatch(now))
        self._has_dispatched = bool(self._to_send)
        return self._waiting.pop(self._to_send.popleft()) if self._to_send else _NONE

    def _complete(self, _: Any, slot: int, moved_bytes: int, now: float) -> None:
        with self._errors:
            request = self._requests.pop(slot)
            self._free.append(slot)
            if not self._errors.failed:
                self._scheduler.complete(request, moved_bytes, now)

    def _wake_s(self, _: Any) -> float:
        with self._errors:
            if not self._errors.failed:
                # ctypes takes no other number, e.g. of NumPy.
                return float(self._scheduler.wake_s)
        return 0.0 if self._waiting else inf


def scheduler_pointers(scheduler: Any) -> SchedulerPointers:
    """Return the function pointers of a scheduler, for the data path."""
    return SchedulerPointers(*scheduler.pointers())
