# SPDX-License-Identifier: MIT
"""Where calls to the backing file system run: so that a slow one holds up nobody.

Calls that may take long run in threads. Going there and back costs several times what
a call costs that finds all in memory; so calls that are short by nature run at once, in
the event loop, until one of them had to sleep. Then they, too, run in threads, and
after `_CAUTION_S` seconds one is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from resource import RUSAGE_THREAD, getrusage
from typing import Final, ParamSpec, TypeVar

import trio

__all__ = ["Calls"]

#: Calls under way at a time.
_THREADS: Final = 64
#: How long after a call that slept the next may not run in the loop (s).
_CAUTION_S: Final = 1.0

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Calls:
    """Runs calls that may block."""

    def __init__(self) -> None:
        self._limiter = trio.CapacityLimiter(_THREADS)
        self._careful_until = 0.0

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
                self._careful_until = trio.current_time() + _CAUTION_S
