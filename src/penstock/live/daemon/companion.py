# SPDX-License-Identifier: MIT
"""A process beside the daemon, which is started again if it ends.

The process reads its standard input to the end and then stops: the daemon closes it, or
was killed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

from penstock.live.daemon.killing import kill_process, start_process

__all__ = ["companion"]

_LOG: Final = logging.getLogger("penstock.serve")
#: Time until the process is started again: the first time, and at most (s).
_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
#: A process that ran for this long has not failed at its start (s).
_STABLE_S: Final = 60.0
#: How long the process may take to stop (s).
_STOP_S: Final = 5.0


@asynccontextmanager
async def companion(
    name: str, command: Sequence[str], descriptors: Sequence[int] = ()
) -> AsyncIterator[None]:
    """Keep a process running during the block.

    Parameters
    ----------
    name
        What the log calls it.
    descriptors
        Open files that it inherits.
    """
    task = asyncio.create_task(_keep_running(name, command, descriptors))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep_running(
    name: str, command: Sequence[str], descriptors: Sequence[int]
) -> None:
    pause_s = _PAUSE_S
    while True:
        begun_s = time.monotonic()
        try:
            outcome = f"has ended with status {await _run(command, descriptors)}"
        except OSError as error:
            outcome = f"cannot be started: {error.strerror}"
        if time.monotonic() - begun_s > _STABLE_S:
            pause_s = _PAUSE_S
        _LOG.warning("%s %s; next start in %g s", name, outcome, pause_s)
        await asyncio.sleep(pause_s)
        pause_s = min(2.0 * pause_s, _LONGEST_PAUSE_S)


async def _run(command: Sequence[str], descriptors: Sequence[int]) -> int:
    """Run the process to its end; stop it if the task is cancelled."""
    process = await start_process(
        *command,
        stdin=PIPE,
        pass_fds=descriptors,
        # Ctrl-C is for the daemon, which then stops the process.
        start_new_session=True,
    )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            if process.stdin is not None:
                process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), _STOP_S)
            except TimeoutError:
                await kill_process(process)
