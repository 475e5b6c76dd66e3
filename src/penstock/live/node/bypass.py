# SPDX-License-Identifier: MIT
"""Measure the bytes that the processes of a job write, controlled or not.

Static programs, io_uring and mapped files bypass the preload library. The kernel counts
the bytes that each process writes to storage (``write_bytes`` in ``/proc/PID/io``; it
does not count writes to tmpfs). Bytes that the kernel has counted and control has not
bypassed control, or went to files that are not controlled. The result is a lower bound:
a process that starts and ends between two measurements is missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["WrittenBytes"]


class WrittenBytes:
    """Sums the bytes that processes and their descendants have written."""

    def __init__(self) -> None:
        self._by_process: dict[int, int] = {}

    def measure(self, processes: Iterable[int]) -> int:
        """Return the bytes written so far by `processes` and all their descendants.

        A process that has ended counts with its bytes at the last measurement.
        """
        for pid in _with_descendants(processes):
            written_bytes = _written_bytes(pid)
            if written_bytes is not None:
                self._by_process[pid] = written_bytes
        return sum(self._by_process.values())


def _with_descendants(processes: Iterable[int]) -> Iterator[int]:
    pending, seen = list(processes), set()
    while pending:
        pid = pending.pop()
        if pid not in seen:
            seen.add(pid)
            pending += _children(pid)
            yield pid


def _children(pid: int) -> list[int]:
    try:
        lists = [p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [int(child) for text in lists for child in text.split()]


def _written_bytes(pid: int) -> int | None:
    """Return the bytes that a process has written; None if it cannot be read."""
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:
        return None
    fields = dict(line.split(": ") for line in text.splitlines())
    return int(fields["write_bytes"]) - int(fields["cancelled_write_bytes"])
