# SPDX-License-Identifier: MIT
"""Where calls to the backing file system run: so that a slow one holds up nobody.

Calls that may take long run in threads. Going there and back costs several times what
a call costs that finds all in memory; so calls that are mostly short run at once, in
the event loop, until one of them had to sleep. Then they, too, run in threads, and
after `_CAUTION_S` seconds one is tried again; if that sleeps as well, after twice the
time, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from resource import RUSAGE_THREAD, getrusage
from typing import Final, ParamSpec, TypeVar

import trio

__all__ = ["Calls"]

#: Calls under way at a time.
_THREADS: Final = 64
#: How long after a call that slept the next may not run in the loop (s): first, most.
_CAUTION_S: Final = 1.0
_CAUTION_MOST_S: Final = 8.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Calls:
    """Runs calls that may block."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._careful_until = -inf
        self._caution_s = _CAUTION_S

    async def long(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run a call in a thread."""
        return await trio.to_thread.run_sync(
            partial(function, *args, **kwargs),
            abandon_on_cancel=True,
            limiter=self._limiter,
        )

    async def short(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """Run a call at once; in a thread if one has slept of late."""
        if trio.current_time() < self._careful_until:
            return await self.long(function, *args, **kwargs)
        sleeps = getrusage(RUSAGE_THREAD).ru_nvcsw
        try:
            return function(*args, **kwargs)
        finally:
            if getrusage(RUSAGE_THREAD).ru_nvcsw != sleeps:
                self._take_care()

    def _take_care(self) -> None:
        """Run no call in the loop for a while, longer if one has slept of late."""
        now = trio.current_time()
        recent = now < self._careful_until + self._caution_s
        wanted = 2 * self._caution_s if recent else _CAUTION_S
        self._caution_s = min(wanted, _CAUTION_MOST_S)
        self._careful_until = now + self._caution_s
