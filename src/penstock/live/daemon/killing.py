# SPDX-License-Identifier: MIT
"""How processes of an event loop are killed without waiting for ever.

A process that is inside a system call of a file system whose servers do not answer
(state "D" of ``ps``) ends only when the call returns. It is abandoned: nobody waits for
it any more, and the event loop reaps it when it has ended.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Final

from penstock.live.ending import KILL_S

__all__ = ["kill_process"]

_LOG: Final = logging.getLogger("penstock.serve")


async def kill_process(process: Process) -> None:
    """Kill a process, and wait for its end for `KILL_S` at most."""
    with suppress(ProcessLookupError):
        process.kill()
    try:
        await asyncio.wait_for(process.wait(), KILL_S)
    except TimeoutError:
        _LOG.warning("process %d cannot be killed and is abandoned", process.pid)
