# SPDX-License-Identifier: MIT
"""Notice the end of processes: one descriptor (pidfd) per process.

A process may belong to several jobs, and may ask to be attached many times; it has one
descriptor nevertheless. Processes count for the budget of their user (`budgets`).

To end a job takes a millisecond or two, and hundreds may end at once. So they end in
turns with pauses, in which the loop serves others. A turn is long enough for many jobs,
because a decision follows on each turn.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Final

from penstock.live.node.budgets import Budgets, Holding
from penstock.live.wire.identity import process_start_ticks

__all__ = ["WatchedProcesses"]

#: How long ends are told, and how long others are served then (s).
_TURN_S: Final = 0.02
_PAUSE_S: Final = 0.02


@dataclass
class _WatchedProcess:
    """A process of one or more jobs."""

    descriptor: int
    """Its pidfd."""
    start: int
    """When it started (clock ticks after boot)."""
    user: int
    """User id."""
    job_keys: set[str]


class WatchedProcesses:
    """The processes of all jobs of a node; the running loop watches them.

    Parameters
    ----------
    budgets
        What each user may have watched.
    on_end
        Called with the key of a job, a process of this job that has ended, and when the
        process started (clock ticks after boot).
    """

    def __init__(
        self, budgets: Budgets, on_end: Callable[[str, int, int], None]
    ) -> None:
        self._budgets = budgets
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._watched: dict[int, _WatchedProcess] = {}
        #: Key of a job, and a process that could not be watched with its start -> user.
        self._unwatched: dict[tuple[str, int, int], int] = {}
        #: Ends to be told: arguments of `on_end`.
        self._ends: deque[tuple[str, int, int]] = deque()
        #: True if `_tell_ends` will be called.
        self._will_tell = False

    def may_add(self, user: int, pid: int, now_s: float) -> bool:
        """Return False if the process is a new one and its user has too many."""
        return pid in self._watched or self._budgets.may_hold(
            user, Holding.PROCESSES, now_s
        )

    def add(self, job_key: str, user: int, pid: int, start: int) -> None:
        """Watch a process of a job; `start`: see `process_start_ticks`."""
        watched = self._watched.get(pid)
        if watched is not None:
            if watched.start == start:
                watched.job_keys.add(job_key)
                return
            # Another process has the number now: the watched one has ended.
            self._note_end(pid)
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            self._on_end(job_key, pid, start)
            return
        except OSError:
            # For example too many open files: the process may still live.
            self._unwatched[job_key, pid, start] = user
            return
        # The descriptor may be that of a process that has got the number since.
        if process_start_ticks(pid) != start:
            os.close(descriptor)
            self._on_end(job_key, pid, start)
            return
        self._watched[pid] = _WatchedProcess(descriptor, start, user, {job_key})
        self._budgets.keep(user, Holding.PROCESSES)
        self._loop.add_reader(descriptor, self._note_end, pid)

    def retry(self, job_keys: Container[str]) -> None:
        """Try again to watch processes of these jobs that could not be watched."""
        unwatched, self._unwatched = self._unwatched, {}
        for (job_key, pid, start), user in unwatched.items():
            if job_key in job_keys:
                self.add(job_key, user, pid, start)

    def remove(self, job_key: str, processes: Iterable[int]) -> None:
        """Note that processes do not belong to a job any more."""
        for pid in processes:
            if watched := self._watched.get(pid):
                watched.job_keys.discard(job_key)
                if not watched.job_keys:
                    self._forget(pid)

    def close(self) -> None:
        """Watch nothing any more."""
        for pid in list(self._watched):
            self._forget(pid)
        self._ends.clear()

    def _note_end(self, pid: int) -> None:
        watched = self._forget(pid)
        self._ends.extend((key, pid, watched.start) for key in watched.job_keys)
        if not self._will_tell:
            self._will_tell = True
            self._loop.call_soon(self._tell_ends)

    def _tell_ends(self) -> None:
        """Tell ends for one turn; the others have the next turn."""
        until_s = self._loop.time() + _TURN_S
        try:
            while self._ends:
                self._on_end(*self._ends.popleft())
                if self._loop.time() >= until_s:
                    break
        finally:
            self._will_tell = bool(self._ends)
            if self._will_tell:
                self._loop.call_later(_PAUSE_S, self._tell_ends)

    def _forget(self, pid: int) -> _WatchedProcess:
        watched = self._watched.pop(pid)
        self._loop.remove_reader(watched.descriptor)
        os.close(watched.descriptor)
        self._budgets.release(watched.user, Holding.PROCESSES)
        return watched
