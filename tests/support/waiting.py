# SPDX-License-Identifier: MIT
"""Wait for a condition, without a guess of the speed of this machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["LIMIT_S", "processes_of", "until", "until_async"]

LIMIT_S = 300.0
"""After which a test fails instead of hanging; no test expects to be this fast.

A busy machine takes a minute to compile the kernels of a daemon or of a mount.
"""


def until(condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Wait until `condition` holds; fail if it never does."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s} s"
        time.sleep(0.01)


async def until_async(
    condition: Callable[[], object], limit_s: float = LIMIT_S
) -> None:
    """Do the same in an event loop, which goes on meanwhile."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s} s"
        await asyncio.sleep(0.01)


def processes_of(session: int) -> list[str]:
    """Return the processes that still belong to a session, zombies left out."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        state, _, _, its_session = text.rpartition(")")[2].split()[:4]
        if int(its_session) == session and state != "Z":
            processes.append(text)
    return processes
