# SPDX-License-Identifier: MIT
"""I/O that control does not see: what the kernel counts for the processes of a job.

Static programs, io_uring and mapped files move bytes past the preload library. The
kernel counts what a process has written to storage (``write_bytes`` in
``/proc/PID/io``; on tmpfs it counts nothing). What is more than control has counted
went past it, or to files that are not controlled. Processes that live for less than a
look are missed: the figure is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["WrittenBytes"]


class WrittenBytes:
    """Adds up what processes and their descendants have written (bytes)."""

    def __init__(self) -> None:
        self._by_process: dict[int, int] = {}

    def look(self, members: Iterable[int]) -> int:
        """Return what is known now; those that have ended count as last seen."""
        for pid in _family(members):
            written = _written(pid)
            if written is not None:
                self._by_process[pid] = written
        return sum(self._by_process.values())


def _family(members: Iterable[int]) -> Iterator[int]:
    waiting, seen = list(members), set()
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            waiting += _children(pid)
            yield pid


def _children(pid: int) -> list[int]:
    try:
        lists = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(child) for text in lists for child in text.split()]


def _written(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return None
    facts = dict(line.split(": ") for line in text.splitlines())
    return int(facts["write_bytes"]) - int(facts["cancelled_write_bytes"])
