# SPDX-License-Identifier: MIT
"""A thread that calls functions one after the other, and never delays the end.

A file system that does not answer can hold a function up for ever. The threads of a
`concurrent.futures.ThreadPoolExecutor` would be waited for when the process ends. This
one is a daemon thread, and `Worker.end` waits for a limited time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

__all__ = ["Worker"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Worker:
    """Calls functions in a thread, in the order in which they were submitted.

    Parameters
    ----------
    name
        Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        #: What is called next; None: the thread ends.
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._waiting: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_ended = False

    def submit(
        self, function: Callable[_P, _T], /, *arguments: _P.args, **rest: _P.kwargs
    ) -> Future[_T]:
        """Have a function called; return its future result.

        After `end`, the result is cancelled at once. Raises `RuntimeError` if there are
        too many threads; the next call tries again.
        """
        done: Future[_T] = Future()
        call = partial(function, *arguments, **rest)
        with self._lock:
            if self._is_ended:
                done.cancel()
                return done
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, name=self._name, daemon=True
                )
                thread.start()
                self._thread = thread
            self._waiting.add(done)
            self._queue.put(partial(self._call, done, call))
        return done

    def end(self, limit_s: float, *, drops: bool = False) -> bool:
        """Call nothing more but what was submitted; wait for it for `limit_s` at most.

        Return True if all is done and the thread has ended.

        Parameters
        ----------
        drops
            Cancel what waits, too.
        """
        with self._lock:
            if not self._is_ended:
                self._queue.put(None)
            self._is_ended = True
            waiting = list(self._waiting) if drops else []
        for each in waiting:
            each.cancel()
        if self._thread is None:
            return True
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (call := self._queue.get()) is not None:
            call()

    def _call(self, done: Future[_T], function: Callable[[], _T]) -> None:
        with self._lock:
            self._waiting.discard(done)
        if done.set_running_or_notify_cancel():
            with _Failure(done):
                done.set_result(function())


class _Failure:
    """Passes an error inside the block on to a future."""

    def __init__(self, done: Future[Any]) -> None:
        self._done = done

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is not None:
            self._done.set_exception(error)
        return True
