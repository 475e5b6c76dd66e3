# SPDX-License-Identifier: MIT
"""Processes in process namespaces, known by their numbers and starts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from penstock.live.wire.identity import process_start_ticks

__all__ = ["are_gone", "processes_in"]


def processes_in(namespace: str) -> dict[int, int]:
    """Return the processes in a namespace, and when they started."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/ns/pid"):
        with suppress(OSError):
            if str(entry.readlink()) == namespace:
                pid = int(entry.parts[2])
                found[pid] = process_start_ticks(pid) or 0
    return found


def are_gone(processes: dict[int, int]) -> bool:
    """Return True if these processes have ended.

    The number of their namespace says nothing: the next namespace may have it.
    """
    return not any(process_start_ticks(pid) == at for pid, at in processes.items())
