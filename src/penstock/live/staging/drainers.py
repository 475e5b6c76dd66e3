# SPDX-License-Identifier: MIT
"""Drains that the agent starts, in the background.

A `Drainer` drains the journals of one job while its programs run, and draws on the
job's page. A `Sweeper` drains journals that programs have left behind, without a limit.
Both start processes (`drain_process`) that run as the user who owns the journals, with
the rights of that user and nothing of the agent's environment: a journal decides which
file is written. The drainer of a job of another user is in the cgroups of that job, and
ends with them. Without them there is none: programs also drain by themselves.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import inf
from pathlib import Path
from typing import Final

from penstock.errors import PenstockError, UnavailableError
from penstock.live.ending import end_process
from penstock.live.staging.cgroups import open_cgroups
from penstock.live.staging.drain_process import start_drainer
from penstock.live.staging.journal import drained_so_far, journal_paths, named_writers
from penstock.live.staging.user_workers import UserWorkers
from penstock.live.wire.frames import WarningLog
from penstock.live.wire.identity import process_start_ticks
from penstock.live.wire.places import Places
from penstock.live.wire.subordinates import owner_of

__all__ = ["MEMORY", "Drainer", "Leftover", "Sweeper", "drain_beside", "left_behind"]

_LOG: Final = logging.getLogger("penstock.drain")
_COMPLAINTS: Final = WarningLog(_LOG)
#: Folder of the journals in memory, without the number of the user at its end.
MEMORY: Final = "/dev/shm/penstock-"  # noqa: S108
#: Least time between two starts of a drainer for one job (s).
_RETRY_S: Final = 5.0
#: Most drainers of another user at the same time. Each is a thread of this process.
_MOST_OF_USER: Final = 32
#: Number of users whose journals are swept at the same time.
_SWEEPS: Final = 4
#: Longest time for one folder before the next one has its turn (s).
_SWEEP_S: Final = 600.0
#: Pause after a sweep, as a multiple of the processor time that it took here.
_REST: Final = 10.0
#: Time between two looks whether a sweep is done (s).
_LOOK_S: Final = 0.2
#: Journals of a folder that are looked at to see whether anything was drained.
_MOST_COMPARED: Final = 1000
#: Most folders of one user that wait to be swept.
_MOST_WAITING: Final = 1000
_FAILURES: Final = (
    PenstockError,
    OSError,
    RuntimeError,
    ValueError,
    subprocess.SubprocessError,
)
_PLACES: Final = Places(inf, _MOST_OF_USER, "the user has too many drainers")


class Drainer:
    """Drains the journals of one job beside its programs, at the job's rate.

    Parameters
    ----------
    page
        The page of the job.
    user, group
        Numbers of the user who owns the job, and of its group.
    """

    def __init__(self, page: Path, user: int, group: int) -> None:
        self._page = page
        self._user, self._group = user, group
        self._started = -inf
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """True if the process runs, or is being started."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def may_start(self) -> bool:
        """True if the process does not run, and no other one was started just now."""
        return not self.is_running and time.monotonic() - self._started >= _RETRY_S

    def keep(self, folder: Path, processes: Mapping[int, int] | None = None) -> None:
        """Start the process for the journals in `folder`, unless it runs.

        After a start there is none for `_RETRY_S` seconds.

        Parameters
        ----------
        processes
            Process id -> start (clock ticks after boot): processes of the job. Those
            that write its journals need not be among them.
        """
        if not self.may_start:
            return
        self._started = time.monotonic()
        try:
            _PLACES.take(self._user)
        except UnavailableError:
            return
        # In a thread, which waits for the process.
        arguments = (folder, processes or {})
        thread = threading.Thread(target=self._run, args=arguments, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            _PLACES.release(self._user)
        else:
            self._thread = thread

    def _run(self, folder: Path, processes: Mapping[int, int]) -> None:
        try:
            # Without a limit: the process may live as long as the job. This thread does
            # nothing else, and the daemon does not wait for it.
            self._start(folder, processes).wait()
        except _FAILURES as error:
            _COMPLAINTS.add(f"no drainer for user {self._user}: {error}", self._user)
        finally:
            _PLACES.release(self._user)

    def _start(
        self, folder: Path, processes: Mapping[int, int]
    ) -> subprocess.Popen[bytes]:
        if self._user == os.geteuid():
            return drain_beside(self._page, folder, self._user, self._group)
        status = self._page.stat()
        writers = named_writers(folder, (status.st_dev, status.st_ino))
        cgroups = open_cgroups({**processes, **writers}, self._user)
        try:
            return drain_beside(self._page, folder, self._user, self._group, cgroups)
        finally:
            for descriptor in cgroups:
                os.close(descriptor)


def drain_beside(
    page: Path, folder: Path, user: int, group: int, cgroups: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start to drain the journals of the job that has this page, at its rate.

    The process joins `cgroups` (`open_cgroups`).
    """
    variables = {"PENSTOCK_PAGE": str(page)}
    return start_drainer(folder, user, group, variables, cgroups)


# --- Journals that are left behind ----------------------------------------------------


@dataclass(frozen=True)
class Leftover:
    """A folder in which programs that have ended may have left journals.

    Parameters
    ----------
    folder
        The folder of the journals.
    user, group
        Numbers of the owner and of its group; None: the group is not known for sure.
    page
        Device and inode of the page of the job whose journals are meant; None: of any
        job.
    only_orphans
        Look first, and start no process unless a journal names a writer that has ended.
    merges_living
        Merge the parts of programs that live, too, and drain nothing else.
    """

    folder: Path
    user: int
    group: int | None = None
    page: tuple[int, int] | None = None
    only_orphans: bool = False
    merges_living: bool = False

    @property
    def is_orphaned(self) -> bool:
        """True if a journal of the job names a writer that has ended."""
        writers = named_writers(self.folder, self.page) if self.page else {}
        return any(process_start_ticks(pid) != start for pid, start in writers.items())


def left_behind(patterns: Iterable[str]) -> list[Leftover]:
    """Return the folders with journals, in memory and those that match `patterns`.

    Root finds the folders of all users; other users find their own.
    """
    leftovers = []
    for place in (f"{MEMORY}*", *patterns):
        for folder in Path("/").glob(place.lstrip("/")):
            with contextlib.suppress(OSError):
                user = _owner(folder)
                # Any user may make folders in /dev/shm: the name must match the owner.
                named = not place.startswith(MEMORY) or folder == _in_memory(user)
                if named and os.geteuid() in (0, user) and _has_journals(folder):
                    leftovers.append(Leftover(folder, user))
    return leftovers


def _in_memory(user: int) -> Path:
    return Path(f"{MEMORY}{user}")


def _owner(folder: Path) -> int:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(str(folder))
    return status.st_uid


def _has_journals(folder: Path) -> bool:
    return any(True for _ in journal_paths(folder))


def _progress(folder: Path) -> dict[str, int]:
    """Return the bytes drained so far, by name of the journal, of some journals."""
    some = islice(journal_paths(folder), _MOST_COMPARED)
    return {path.name: drained_so_far(path) for path in some}


class Sweeper:
    """Drains folders of journals that were left behind.

    Several users are served at the same time; the folders of one user, and of the ids
    of its containers (`owner_of`), one by one.
    """

    def __init__(self, owner_of: Callable[[int], int] = owner_of) -> None:
        self._owner_of = owner_of
        self._workers = UserWorkers(_SWEEPS, self._work, _COMPLAINTS)
        self._waiting: dict[int, deque[Leftover]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def search(self, patterns: Sequence[str]) -> None:
        """Look for folders with journals as `left_behind` does, and queue them.

        In a thread: a link of a user may lead to a file system that does not answer.
        """
        thread = threading.Thread(target=self._search, args=[patterns], daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            _COMPLAINTS.add(f"journals are not looked for: {error}")

    def _search(self, patterns: Sequence[str]) -> None:
        try:
            self.sweep(left_behind(patterns))
        except OSError as error:
            _COMPLAINTS.add(f"journals are not looked for: {error}")

    def sweep(self, leftovers: Iterable[Leftover]) -> None:
        """Queue these folders to be drained, and return at once."""
        for leftover in leftovers:
            owner = self._owner_of(leftover.user)
            with self._lock:
                queue = self._waiting.get(owner)
                if queue is not None:
                    if leftover not in queue and len(queue) < _MOST_WAITING:
                        queue.append(leftover)
                    continue
                self._waiting[owner] = deque([leftover])
            self._workers.start(owner)

    def close(self) -> None:
        """Start no further sweep; processes that run go on by themselves."""
        self._closed.set()
        self._workers.close()

    def _work(self, owner: int) -> None:
        while not self._closed.is_set():
            with self._lock:
                if not self._waiting[owner]:
                    del self._waiting[owner]
                    return
                leftover = self._waiting[owner].popleft()
            self._workers.show_life()
            begun_s = time.thread_time()
            try:
                self._drain(leftover)
            except _FAILURES as error:
                shown = repr(str(leftover.folder))
                _COMPLAINTS.add(f"{shown} is not drained: {error}", leftover.user)
            # A user may have filled the folder with files.
            self._closed.wait(_REST * (time.thread_time() - begun_s))

    def _drain(self, leftover: Leftover) -> None:
        if leftover.only_orphans and not leftover.is_orphaned:
            return
        variables = {"PENSTOCK_DRAIN_PARTS": "1"} if leftover.merges_living else {}
        if leftover.page is not None:
            variables["PENSTOCK_DRAIN_OF"] = f"{leftover.page[0]}:{leftover.page[1]}"
        before = _progress(leftover.folder)
        process = start_drainer(
            leftover.folder, leftover.user, leftover.group, variables
        )
        deadline = time.monotonic() + _SWEEP_S
        while process.poll() is None and not self._closed.wait(_LOOK_S):
            if time.monotonic() > deadline:
                if end_process(process).is_abandoned:
                    raise UnavailableError(
                        f"process {process.pid} cannot be killed; its storage does not "
                        "answer"
                    )
                if _progress(leftover.folder) == before:
                    raise UnavailableError(f"nothing was drained in {_SWEEP_S:g} s")
                self.sweep([leftover])
                return
