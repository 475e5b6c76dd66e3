# SPDX-License-Identifier: MIT
"""Run calls to the backing file system without blocking the event loop for long.

Calls that may take long run in threads. A thread costs several times as much as a call
whose data is in memory. So calls that are usually short run in the event loop, until
one of them had to sleep. After that they run in threads for `_FIRST_PAUSE_S` seconds;
then one is tried in the event loop again. If it sleeps too, the next pause is twice as
long, up to `_MAX_PAUSE_S`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from resource import RUSAGE_THREAD, getrusage
from typing import Final, ParamSpec, TypeVar

import trio

__all__ = ["CallRunner"]

#: Most calls in threads at a time.
_MAX_THREADS: Final = 64
#: Time without calls in the event loop after a call that slept.
_FIRST_PAUSE_S: Final = 1.0
_MAX_PAUSE_S: Final = 8.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


class CallRunner:
    """Runs calls that may block, in the event loop or in threads."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_MAX_THREADS)
        self._paused_until_s = -inf
        self._pause_s = _FIRST_PAUSE_S

    async def in_thread(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run a call in a thread."""
        return await trio.to_thread.run_sync(
            partial(function, *args, **kwargs),
            abandon_on_cancel=True,
            limiter=self._limiter,
        )

    async def inline(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run a call in the event loop, or in a thread if one has slept recently."""
        if trio.current_time() < self._paused_until_s:
            return await self.in_thread(function, *args, **kwargs)
        sleeps = getrusage(RUSAGE_THREAD).ru_nvcsw
        try:
            return function(*args, **kwargs)
        finally:
            if getrusage(RUSAGE_THREAD).ru_nvcsw != sleeps:
                self._pause_inline_calls()

    def _pause_inline_calls(self) -> None:
        """Start a pause, twice as long if the last pause ended recently."""
        now = trio.current_time()
        recent = now < self._paused_until_s + self._pause_s
        pause_s = 2 * self._pause_s if recent else _FIRST_PAUSE_S
        self._pause_s = min(pause_s, _MAX_PAUSE_S)
        self._paused_until_s = now + self._pause_s
