# SPDX-License-Identifier: MIT
"""How processes of an event loop are started, and killed without waiting for ever.

A process that is inside a system call of a file system whose servers do not answer
(state "D" of ``ps``) ends only when the call returns. It is abandoned: nobody waits for
it any more, and the event loop reaps it when it has ended.

Only asyncio's watcher of child processes may read an exit status. asyncio itself breaks
this rule: when a start is cancelled, and before it sends a signal (until Python 3.12).
If the process has just ended, the watcher finds no status then. It warns, and reports
255.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Any, Final

from penstock.live.ending import KILL_S

__all__ = ["kill_process", "start_process"]

_LOG: Final = logging.getLogger("penstock.serve")


async def start_process(*command: str, **options: Any) -> Process:
    """Start a process; kill it as soon as it has started if that is cancelled.

    Parameters
    ----------
    options
        As `asyncio.create_subprocess_exec` takes them.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*command, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await kill_process(starting.result())
        raise


async def kill_process(process: Process) -> None:
    """Kill a process, and wait for its end for `KILL_S` at most."""
    if process.returncode is None:
        _send_kill(process.pid)
    try:
        await asyncio.wait_for(process.wait(), KILL_S)
    except TimeoutError:
        _LOG.warning("process %d cannot be killed and is abandoned", process.pid)


def _send_kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
