# SPDX-License-Identifier: MIT
"""Questions to the daemon, from an event loop.

The client of the daemon's socket blocks: it is called in threads. The number of
questions that wait for a thread is bounded (`places`).
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from penstock.live.wire.frames import Client
from penstock.live.wire.messages import ControllerRequest, SetPolicy
from penstock.live.wire.places import Places
from penstock.web.identity.readers import OPERATOR, Reader

__all__ = ["DaemonLink"]

#: How long the daemon may take for an answer (s).
_LIMIT_S: Final = 5.0
_COMPILE_S: Final = 120.0
#: Questions that may be asked or wait at a time, of all readers and of one user.
_MOST: Final = 32
_MOST_OF_USER: Final = 4


class DaemonLink:
    """Asks the daemon at a Unix socket.

    Parameters
    ----------
    path
        The socket of all users; see `Client`.
    threads
        How many questions are asked at a time.
    """

    def __init__(self, path: Path, threads: int) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(threads, "daemon")
        refusal = "too many requests wait for the daemon"
        self._places = Places(_MOST, _MOST_OF_USER, refusal)

    async def ask(self, request: ControllerRequest, reader: Reader = OPERATOR) -> Any:
        """Return the answer that a reader may see.

        Raises
        ------
        UnavailableError
            If there is no answer now, or too many questions wait already.
        InputError
            If the daemon refuses.
        """
        loop = asyncio.get_running_loop()
        with self._places.taken(reader.user):
            return await loop.run_in_executor(self._threads, self._ask, request, reader)

    def _ask(self, request: ControllerRequest, reader: Reader) -> Any:
        # A policy may have to be compiled first.
        limit_s = _COMPILE_S if isinstance(request, SetPolicy) else _LIMIT_S
        with Client(self._path, limit_s) as client:
            return client.ask(reader.request(request))

    def close(self) -> None:
        """End the threads when their questions are answered."""
        self._threads.shutdown(wait=False, cancel_futures=True)
