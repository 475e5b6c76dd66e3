# SPDX-License-Identifier: MIT
"""Measure the bytes that the processes of a job write, controlled or not.

Static programs, io_uring and mapped files bypass the preload library. The kernel counts
the bytes that each process writes to storage (``write_bytes`` in ``/proc/PID/io``; it
does not count writes to tmpfs). Bytes that the kernel has counted and control has not
bypassed control, or went to files that are not controlled. The result is a lower bound:
a process that starts and ends between two measurements is missed. The kernel counts
whole pages of memory, so that a controlled call may count for up to `ROUNDING_BYTES`
more than it writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["ROUNDING_BYTES", "WrittenBytes", "with_descendants"]

#: A call may begin and end inside a page.
ROUNDING_BYTES: Final = 2 * os.sysconf("SC_PAGE_SIZE")


class WrittenBytes:
    """Sums the bytes that processes and their descendants have written."""

    def __init__(self) -> None:
        self._by_process: dict[int, int] = {}
        self._before: dict[int, int] = {}

    def add(self, pid: int) -> None:
        """Ignore what a process has written so far: it was not controlled then."""
        if pid not in self._by_process:
            self._before.setdefault(pid, _written_bytes(pid) or 0)

    def measure(self, processes: Iterable[int]) -> int:
        """Return the bytes written so far by `processes` and all their descendants.

        A process that has ended counts with its bytes at the last measurement.
        """
        for pid in with_descendants(processes):
            written_bytes = _written_bytes(pid)
            if written_bytes is not None:
                self._by_process[pid] = written_bytes - self._before.get(pid, 0)
        return sum(self._by_process.values())


def with_descendants(processes: Iterable[int]) -> Iterator[int]:
    """Yield the processes and all their descendants."""
    pending, seen = list(processes), set()
    while pending:
        pid = pending.pop()
        if pid not in seen:
            seen.add(pid)
            pending += _children(pid)
            yield pid


def _children(pid: int) -> list[int]:
    folder = f"/proc/{pid}/task"
    try:
        texts = [_read(f"{folder}/{task}/children") for task in os.listdir(folder)]  # noqa: PTH208
    except OSError:
        return []
    return [int(child) for text in texts for child in text.split()]


def _written_bytes(pid: int) -> int | None:
    """Return the bytes that a process has written; None if it cannot be read."""
    try:
        text = _read(f"/proc/{pid}/io")
    except OSError:
        return None
    fields = dict(line.split(b": ") for line in text.splitlines())
    return int(fields[b"write_bytes"]) - int(fields[b"cancelled_write_bytes"])


def _read(path: str) -> bytes:
    # A third of the cost of Path.read_text: this runs for every process of every job.
    with open(path, "rb", buffering=0) as stream:  # noqa: PTH123
        return stream.read()
