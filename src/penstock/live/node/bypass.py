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
from math import inf
from typing import Final, NamedTuple

__all__ = ["ROUNDING_BYTES", "ProcessIo", "WrittenBytes", "with_descendants"]

#: A call may begin and end inside a page.
ROUNDING_BYTES: Final = 2 * os.sysconf("SC_PAGE_SIZE")


class ProcessIo(NamedTuple):
    """What the kernel has counted of a process, or of several."""

    written_bytes: int = 0
    """Written to storage."""
    called_bytes: int = 0
    """Moved by system calls, or to and from storage."""

    def plus(self, other: ProcessIo, sign: int = 1) -> ProcessIo:
        """Return the sum, or with the sign -1 the difference."""
        return ProcessIo(
            self.written_bytes + sign * other.written_bytes,
            self.called_bytes + sign * other.called_bytes,
        )


class WrittenBytes:
    """Sums the bytes that processes and their descendants have written."""

    def __init__(self) -> None:
        self._by_process: dict[int, ProcessIo] = {}
        self._before: dict[int, ProcessIo] = {}
        #: Sum over the processes that have ended.
        self._ended = ProcessIo()
        self.called_bytes = 0
        """Bytes that they have moved by system calls, at the last measurement."""
        self.is_complete = False
        """False if some processes were not measured."""

    def add(self, pid: int) -> None:
        """Ignore what a process has written so far: it was not controlled then."""
        if pid not in self._by_process:
            self._before.setdefault(pid, _process_io(pid) or ProcessIo())

    def measure(self, processes: Iterable[int], most: float = inf) -> int:
        """Return the bytes written so far by `processes` and all their descendants.

        A process that has ended counts with its bytes at the last measurement. After
        `most` processes, others are not looked at.
        """
        measured: dict[int, ProcessIo] = {}
        self.is_complete = True
        for number, pid in enumerate(with_descendants(processes)):
            if number >= most:
                # The others may live: they count with their last values.
                measured = self._by_process | measured
                self.is_complete = False
                break
            counted = _process_io(pid)
            if counted is None:
                self.is_complete = False
            else:
                measured[pid] = counted.plus(self._before.get(pid, ProcessIo()), -1)
        for pid in self._by_process.keys() - measured.keys():
            self._ended = self._ended.plus(self._by_process[pid])
            self._before.pop(pid, None)
        self._by_process = measured
        total = self._ended
        for counted in measured.values():
            total = total.plus(counted)
        self.called_bytes = total.called_bytes
        return total.written_bytes


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


def _process_io(pid: int) -> ProcessIo | None:
    """Return what a process has done; None if it cannot be read."""
    try:
        text = _read(f"/proc/{pid}/io")
    except OSError:
        return None
    fields = {
        name: int(value)
        for name, value in (line.split(b": ") for line in text.splitlines())
    }
    written_bytes = fields[b"write_bytes"] - fields[b"cancelled_write_bytes"]
    names = (b"rchar", b"wchar", b"read_bytes", b"write_bytes")
    return ProcessIo(written_bytes, sum(fields[name] for name in names))


def _read(path: str) -> bytes:
    # A third of the cost of Path.read_text: this runs for every process of every job.
    with open(path, "rb", buffering=0) as stream:  # noqa: PTH123
        return stream.read()
