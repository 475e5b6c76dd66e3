# SPDX-License-Identifier: MIT
"""Processes that drain journals, started by the agent; nobody waits for them.

Beside a job that stages runs a `Drainer`, which draws on the job's page. What jobs have
left behind a `Sweeper` has drained, without a page: nobody holds that up. Both are the
preload library (``native/stage/stage_drainer.c``) in a small program that every system
has
and that never begins; and both run as the user whose journals they drain, with the
rights of that user and nothing of the agent's: a journal says which file is written.
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
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final

from penstock.errors import PenstockError, UnavailableError
from penstock.live.staging.drain_process import start_drainer
from penstock.live.staging.journal import drained_so_far

__all__ = ["MEMORY", "Drainer", "Leftover", "Sweeper", "drain_beside", "left_behind"]

_LOG: Final = logging.getLogger("penstock.drain")
#: Before the number of a user: the folder of its journals in memory.
MEMORY: Final = "/dev/shm/penstock-"  # noqa: S108
#: No two starts for one job are closer (s).
_RETRY_S: Final = 5.0
#: Users whose leftovers are drained at the same time,
_SWEEPS: Final = 4
#: how long that may take for one folder before others have their turn (s),
_SWEEP_S: Final = 600.0
#: how often it is looked whether it is done (s),
_LOOK_S: Final = 0.2
#: and how many folders of one user may wait for it.
_MOST_WAITING: Final = 1000
_FAILURES: Final = (PenstockError, OSError, RuntimeError, subprocess.SubprocessError)


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
        self._failed = False
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether it is there, or is being started."""
        return self._thread is not None and self._thread.is_alive()

    def keep(self, folder: Path) -> None:
        """See to it that it runs, or is started soon, for the journals in `folder`."""
        now = time.monotonic()
        if self.is_running or now - self._started < _RETRY_S:
            return
        self._started = now
        # A library that is not there yet is compiled, which takes seconds.
        thread = threading.Thread(target=self._run, args=(folder,), daemon=True)
        with contextlib.suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def _run(self, folder: Path) -> None:
        try:
            drain_beside(self._page, folder, self._user, self._group).wait()
        except _FAILURES as error:
            if not self._failed:
                _LOG.warning("no drainer for user %d: %s", self._user, error)
            self._failed = True


def drain_beside(
    page: Path, folder: Path, user: int, group: int
) -> subprocess.Popen[bytes]:
    """Start to drain the journals of the job that has this page."""
    return start_drainer(folder, user, group, {"PENSTOCK_PAGE": str(page)})


# --- What is left behind --------------------------------------------------------------


@dataclass(frozen=True)
class Leftover:
    """Journals that programs which have ended may have left behind.

    Parameters
    ----------
    page
        Device and inode of the page of the job they were of; None: of any.
    group
        Of the user, if it is known for sure.
    """

    folder: Path
    user: int
    group: int | None = None
    page: tuple[int, int] | None = None


def left_behind(patterns: Iterable[str]) -> list[Leftover]:
    """Return the folders, in memory and where patterns say, that have journals.

    Those of all users whose files this process may write.
    """
    found = []
    for place in (f"{MEMORY}*", *patterns):
        for folder in Path("/").glob(place.lstrip("/")):
            with contextlib.suppress(OSError):
                user = _owner(folder)
                # Others may make folders there, as many as they like.
                theirs = not place.startswith(MEMORY) or folder == _in_memory(user)
                if theirs and os.geteuid() in (0, user) and _has_journals(folder):
                    found.append(Leftover(folder, user))
    return found


def _in_memory(user: int) -> Path:
    return Path(f"{MEMORY}{user}")


def _owner(folder: Path) -> int:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(str(folder))
    return status.st_uid


def _has_journals(folder: Path) -> bool:
    return any(folder.glob("*.journal"))


def _progress(folder: Path) -> dict[str, int]:
    """Return the journals of a folder and how much of each was drained."""
    return {path.name: drained_so_far(path) for path in folder.glob("*.journal")}


class Sweeper:
    """Drains what is left behind: for some users at a time, for each one by one."""

    def __init__(self) -> None:
        self._workers = ThreadPoolExecutor(_SWEEPS, "sweep")
        self._waiting: dict[int, deque[Leftover]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def sweep(self, leftovers: Iterable[Leftover]) -> None:
        """Have these drained, by and by."""
        for it in leftovers:
            with self._lock:
                queue = self._waiting.get(it.user)
                if queue is not None:
                    if it not in queue and len(queue) < _MOST_WAITING:
                        queue.append(it)
                    continue
                self._waiting[it.user] = deque([it])
            # At the agent's end there are no threads any more.
            with contextlib.suppress(RuntimeError):
                self._workers.submit(self._work, it.user)

    def close(self) -> None:
        """Begin nothing more; what has begun goes on by itself."""
        self._closed.set()
        self._workers.shutdown(wait=False, cancel_futures=True)

    def _work(self, user: int) -> None:
        while not self._closed.is_set():
            with self._lock:
                if not self._waiting[user]:
                    del self._waiting[user]
                    return
                it = self._waiting[user].popleft()
            try:
                self._drain(it)
            except _FAILURES as error:
                _LOG.warning("%s is not drained: %s", it.folder, error)

    def _drain(self, it: Leftover) -> None:
        variables = {}
        if it.page is not None:
            variables["PENSTOCK_DRAIN_OF"] = f"{it.page[0]}:{it.page[1]}"
        before = _progress(it.folder)
        process = start_drainer(it.folder, it.user, it.group, variables)
        deadline = time.monotonic() + _SWEEP_S
        while process.poll() is None and not self._closed.wait(_LOOK_S):
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                if _progress(it.folder) == before:
                    raise UnavailableError(
                        f"nothing of it was drained in {_SWEEP_S:g} s"
                    )
                self.sweep([it])
                return
