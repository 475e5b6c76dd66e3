# SPDX-License-Identifier: MIT
"""Measure the bytes that the processes of a job write, controlled or not.

Static programs, io_uring and mapped files bypass the preload library. The kernel counts
the bytes that each process writes to storage (``write_bytes`` in ``/proc/PID/io``; it
does not count writes to tmpfs). Bytes that the kernel has counted and control has not
bypassed control, or went to files that are not controlled. Linux adds the counts of a
child to its parent when the parent waits for it. The result is a lower bound: a process
that ends without a parent that waits for it may be missed. The kernel counts whole
pages of memory, so that a controlled call may count for up to `ROUNDING_BYTES` more
than it writes.

A process is known by its number and its start: what has the number of a process that
has ended is another one, and perhaps of another user.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from math import inf
from typing import Final, NamedTuple

__all__ = ["ROUNDING_BYTES", "ProcessIo", "WrittenBytes", "with_descendants"]

#: A call may begin and end inside a page.
ROUNDING_BYTES: Final = 2 * os.sysconf("SC_PAGE_SIZE")

#: Bytes of one read; more follow as long as there are any.
_READ_BYTES: Final = 1 << 14


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
        self._parents: dict[int, int] = {}
        #: Process id -> start, of the processes that were measured last.
        self._starts: dict[int, int] = {}
        #: Process id -> start of the process, and what it had done when it was added.
        self._before: dict[int, tuple[int, ProcessIo]] = {}
        #: Sum over the processes that have ended and do not count in their parents.
        self._ended = ProcessIo()
        self.called_bytes = 0
        """Bytes that all measured processes have moved by system calls."""
        self.is_complete = False
        """False if some processes were not measured."""
        self.process_count = 0
        """Processes at the last measurement, without those that have children: shells
        and launchers wait for the processes that do the work."""

    def add(self, pid: int, start: int) -> None:
        """Ignore what a process has written so far: it was not controlled then."""
        if self._starts.get(pid) != start:
            self._before[pid] = start, _process_io(pid) or ProcessIo()

    def measure(self, processes: Iterable[int], most: float = inf) -> int:
        """Return the bytes written so far by `processes` and all their descendants.

        A process that has ended counts with its bytes at the last measurement, unless
        they count in its parent. After `most` processes, others are not looked at.
        """
        starts = self._living()
        ended = {pid: c for pid, c in self._by_process.items() if pid not in starts}
        # They count with their last values unless they are measured.
        measured = {pid: self._by_process[pid] for pid in starts}
        self._by_process, living = dict(measured), list(starts)
        parents = {pid: self._parents.get(pid, 0) for pid in living}
        self.is_complete = True
        # Known processes may have lost their parent, so that no other one leads to
        # them. `processes` come first: the last ones are looked at first.
        for number, pid in enumerate(_walk([*living, *processes], parents)):
            if number >= most:
                self.is_complete = False
                break
            start = starts.get(pid) or _start_of(pid)
            counted = None if start is None else self._since_added(pid, start)
            if start is None or counted is None:
                self.is_complete = False
            else:
                measured[pid], starts[pid] = counted, start
        still_there = measured.keys() - ended.keys()
        for pid, counted in ended.items():
            if not self._counts_in_parent(pid, still_there):
                self._ended = self._ended.plus(counted)
        self._forget_ended(measured)
        self._by_process, self._parents, self._starts = measured, parents, starts
        self.process_count = len(
            measured.keys() - {parents.get(pid) for pid in measured}
        )
        total = self._ended
        for counted in measured.values():
            total = total.plus(counted)
        self.called_bytes = total.called_bytes
        return total.written_bytes

    def _living(self) -> dict[int, int]:
        """Return the starts of the measured processes whose numbers are still theirs.

        A process that has ended, and whose parent has not waited for it yet, has its
        number.
        """
        starts = self._starts.items()
        return {pid: start for pid, start in starts if _start_of(pid) == start}

    def _since_added(self, pid: int, start: int) -> ProcessIo | None:
        """Return what a process has done since it was added; None: cannot be read."""
        counted = _process_io(pid)
        if counted is None:
            return None
        added_start, before = self._before.get(pid, (start, ProcessIo()))
        return counted.plus(before, -1) if added_start == start else counted

    def _counts_in_parent(self, pid: int, living: Container[int]) -> bool:
        """Return True if a process that lives has waited for one that has ended.

        Its parent may have ended as well, and count in its own parent.
        """
        for _ in self._parents:
            pid = self._parents.get(pid, 0)
            if pid in living:
                return True
        return False

    def _forget_ended(self, living: Container[int]) -> None:
        # A copy: the agent's thread adds processes at the same time.
        for pid in list(self._before):
            start, _ = self._before.get(pid, (None, None))
            if pid not in living and _start_of(pid) != start:
                self._before.pop(pid, None)


def with_descendants(processes: Iterable[int]) -> Iterator[int]:
    """Yield the processes and all their descendants."""
    return _walk(processes, {})


def _walk(processes: Iterable[int], parents: dict[int, int]) -> Iterator[int]:
    """Yield the processes and all their descendants, and note their parents."""
    pending, seen = list(processes), set()
    while pending:
        pid = pending.pop()
        if pid not in seen:
            seen.add(pid)
            children = _children(pid)
            parents.update(dict.fromkeys(children, pid))
            pending += children
            yield pid


def _children(pid: int) -> list[int]:
    folder = f"/proc/{pid}/task"
    texts = []
    with suppress(OSError):
        for task in os.listdir(folder):  # noqa: PTH208
            # A thread that has just ended.
            with suppress(OSError):
                texts.append(_read(f"{folder}/{task}/children"))
    return [int(child) for text in texts for child in text.split()]


def _start_of(pid: int) -> int | None:
    """Return the start of a process (clock ticks after boot); None: there is none."""
    try:
        text = _read(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The second field, the name in brackets, may have any bytes, brackets among them.
    return int(text.rpartition(b")")[2].split()[19])


def _process_io(pid: int) -> ProcessIo | None:
    """Return what a process has done; None if it cannot be read."""
    try:
        text = _read(f"/proc/{pid}/io")
    except OSError:
        return None
    # Seven lines NAME: NUMBER in the order of proc(5).
    numbers = list(map(int, text.split()[1::2]))
    rchar, wchar, _, _, read_bytes, write_bytes, cancelled_bytes = numbers
    # What read and write move to and from storage is counted twice. Other calls, e.g.
    # splice, count only there.
    called_bytes = max(rchar, read_bytes) + max(wchar, write_bytes)
    return ProcessIo(write_bytes - cancelled_bytes, called_bytes)


def _read(path: str) -> bytes:
    # A fifth of the cost of Path.read_text: this runs for every process of every job.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while part := os.read(descriptor, _READ_BYTES):
            text += part
    finally:
        os.close(descriptor)
    return text
