# SPDX-License-Identifier: MIT
"""Apply the partitions of a strategy: put the folders of jobs on storage targets.

Folders of the user who runs this process are assigned here. Those of other users are
assigned by processes of these users (`assigner`), if jobs of all users have folders.

The tools of a file system may take seconds, so they run in other threads. The folders
of one user are assigned one after the other, those of several users at the same time:
nobody waits for another one. A process of another user assigns all folders that wait;
the next one of this user begins after a pause, so that a user who starts jobs without
a pause takes a part of one processor. If several partitions of one job wait, only the
last is applied. When one is applied, `Partitioner.on_moved` is told, so that files that
are open can be redirected to the new targets.

A folder that could not be assigned is tried again by `retry`: after `FIRST_RETRY_S`,
and each time after twice as long, `_LONGEST_RETRY_S` at most.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Final, NamedTuple
from zlib import crc32

from penstock.errors import PenstockError
from penstock.live.staging.assigner import (
    AssignedFolder,
    FolderAssigner,
    FolderOrder,
    assign_as,
)
from penstock.live.staging.user_workers import UserWorkers
from penstock.live.wire.frames import WarningLog
from penstock.live.wire.messages import Partition
from penstock.live.wire.subordinates import owner_of

__all__ = ["FIRST_RETRY_S", "Partitioner"]

_NOT_OWN: Final = (
    "only jobs of the user who runs the controller have folders on storage targets"
)
_UNEXPECTED: Final = "penstock has failed: the log of the controller says why"
#: Number of users whose folders are assigned at the same time.
_USERS_AT_ONCE: Final = 16
#: Most folders that one process of another user assigns.
_MOST_FOLDERS: Final = 20
#: Most folders of which is remembered that they were made here.
_MOST_MADE: Final = 10_000
#: Pause after a process of a user, relative to the time that it took, and at most (s).
_PAUSE, _LONGEST_PAUSE_S = 3.0, 1.0

#: Time between a failure and the next attempt: at first, and at most (s).
FIRST_RETRY_S: Final = 5.0
_LONGEST_RETRY_S: Final = 300.0
_AGAIN: Final = f"; tried again, in {_LONGEST_RETRY_S / 60.0:.0f} minutes at the latest"
#: Sets of targets have numbers from 1 to this one.
_NUMBERS: Final = 2**32 - 2

#: Job key -> numbers of its targets.
_Waiting = dict[str, tuple[int, ...]]


class _Retry(NamedTuple):
    """A folder that could not be assigned."""

    numbers: tuple[int, ...]
    """Numbers of its targets."""
    due_s: float
    """When to try again."""
    pause_s: float
    """Time between the last attempt and the next one."""


class Partitioner:
    """Puts the folders of jobs on storage targets, in the background.

    Parameters
    ----------
    targets, folder
        As the settings `targets` and `job_folder`.
    all_users
        True: jobs of all users have folders. This process runs as root.
    redirect_age_s
        Younger open files are not redirected (s).
    """

    def __init__(
        self,
        targets: str,
        folder: str,
        log: logging.Logger,
        *,
        all_users: bool = False,
        redirect_age_s: float = 0.0,
        owner_of: Callable[[int], int] = owner_of,
    ) -> None:
        self._assigner = FolderAssigner(targets, folder, all_users=all_users)
        self.names = self._assigner.names
        """Names of the targets."""
        self.failures: dict[str, str] = {}
        """Job key -> why its folder is not on its targets."""
        self.on_moved: Callable[[str, Partition], object] | None = None
        """Called in another thread when the folder of a job is on its targets."""
        self._all_users = all_users
        self._redirect_age_s = redirect_age_s
        self._owner_of = owner_of
        self._complaints = WarningLog(log)
        #: Owner -> what waits. A thread serves each owner that is here.
        self._waiting: dict[int, _Waiting] = {}
        #: Keys of jobs that were moved and have not left.
        self._present: set[str] = set()
        #: Keys of jobs whose folders this object has made, the oldest first.
        self._made: dict[str, None] = {}
        #: Job key -> its next attempt.
        self._retries: dict[str, _Retry] = {}
        #: What the targets are on, without their names.
        self._storage = targets.rpartition(":")[0]
        #: Number of a set of targets -> what has this number.
        self._numbered: dict[int, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._workers = UserWorkers(_USERS_AT_ONCE, self._work, self._complaints)

    def move(self, partitions: Mapping[str, tuple[int, ...]]) -> None:
        """Queue new targets for the folders of these jobs, and return at once.

        Jobs are named by their keys. Those of other users may be refused.
        """
        for job_key, numbers in partitions.items():
            user = _user_of(job_key)
            if not self._all_users and user != os.geteuid():
                self.failures[job_key] = _NOT_OWN
                continue
            with self._lock:
                self._present.add(job_key)
                self._retries.pop(job_key, None)
                self._queue(job_key, numbers)

    def _queue(self, job_key: str, numbers: tuple[int, ...]) -> None:
        """Queue new targets for the folder of a job; the caller holds the lock."""
        owner = self._owner_of(_user_of(job_key))
        is_served = owner in self._waiting
        self._waiting.setdefault(owner, {})[job_key] = numbers
        if not is_served:
            self._workers.start(owner)

    def retry(self, now_s: float) -> None:
        """Queue the folders that are to be tried again by now, and return at once."""
        with self._lock:
            for job_key, retry in self._retries.items():
                if retry.due_s <= now_s:
                    # Not again before this attempt has ended.
                    self._retries[job_key] = retry._replace(due_s=inf)
                    self._queue(job_key, retry.numbers)

    def forget(self, job_key: str) -> None:
        """Forget the failure of a job that has left, and the targets it waits for."""
        with self._lock:
            self.failures.pop(job_key, None)
            self._retries.pop(job_key, None)
            self._present.discard(job_key)
            self._waiting.get(self._owner_of(_user_of(job_key)), {}).pop(job_key, None)

    def take_made(self, job_key: str) -> bool:
        """Return True, once, if this object has made the folder of a job."""
        with self._lock:
            is_made = job_key in self._made
            self._made.pop(job_key, None)
        return is_made

    def close(self) -> None:
        """Apply no further partition."""
        self._closed.set()
        self._workers.close()

    # --- In a thread for each user ----------------------------------------------------

    def _work(self, owner: int) -> None:
        """Assign the folders of a user until none waits."""
        while not self._closed.is_set():
            user, waiting = self._take(owner)
            if not waiting:
                return
            begun_s = time.monotonic()
            self._workers.show_life()
            self._assign(user, waiting)
            if user != os.geteuid():
                took_s = time.monotonic() - begun_s
                self._closed.wait(min(_PAUSE * took_s, _LONGEST_PAUSE_S))

    def _take(self, owner: int) -> tuple[int, _Waiting]:
        """Return folders of one user id that wait, and this id; {}: none waits."""
        with self._lock:
            waiting = self._waiting[owner]
            if not waiting:
                del self._waiting[owner]
                return owner, {}
            user = _user_of(next(iter(waiting)))
            most = 1 if user == os.geteuid() else _MOST_FOLDERS
            keys = [key for key in waiting if _user_of(key) == user][:most]
            return user, {key: waiting.pop(key) for key in keys}

    def _assign(self, user: int, waiting: _Waiting) -> None:
        orders = [
            FolderOrder(_name_of(key), tuple(self.names[number] for number in numbers))
            for key, numbers in waiting.items()
        ]
        missing = [key for key in waiting if self._will_be_made(user, key)]
        with self._lock:
            self._made |= dict.fromkeys(missing)
            while len(self._made) > _MOST_MADE:
                del self._made[next(iter(self._made))]
        # Valid if there is an error that nobody expects.
        answers = [AssignedFolder(failure=_UNEXPECTED)] * len(orders)
        try:
            if user == os.geteuid():
                answers = [self._assigner.assign(user, order) for order in orders]
            else:
                answers = assign_as(user, self._assigner, orders, self._closed)
        except (PenstockError, OSError, ValueError) as error:
            answers = [AssignedFolder(failure=str(error))] * len(orders)
        finally:
            for key, order, answer in zip(waiting, orders, answers, strict=True):
                self._note_retry(key, waiting[key], answer)
                self._report(key, order.targets, answer)

    def _will_be_made(self, user: int, job_key: str) -> bool:
        """Return True if there is no folder of a job yet."""
        with suppress(PenstockError, OSError, ValueError):
            return not self._assigner.folders.is_there(user, _name_of(job_key))
        return False

    def _note_retry(
        self, job_key: str, numbers: tuple[int, ...], answer: AssignedFolder
    ) -> None:
        """Note when to try again, if that has failed and the job has not left."""
        with self._lock:
            last = self._retries.pop(job_key, None)
            # Other targets that wait already count instead.
            owner = self._owner_of(_user_of(job_key))
            is_last_order = job_key not in self._waiting.get(owner, {})
            if answer.failure and job_key in self._present and is_last_order:
                pause_s = 2.0 * last.pause_s if last else FIRST_RETRY_S
                pause_s = min(pause_s, _LONGEST_RETRY_S)
                due_s = time.monotonic() + pause_s
                self._retries[job_key] = _Retry(numbers, due_s, pause_s)

    def _report(
        self, job_key: str, targets: Sequence[str], answer: AssignedFolder
    ) -> None:
        """Note a failure, or tell the new targets."""
        user = _user_of(job_key)
        whose = None if user == os.geteuid() else user
        if answer.failure:
            with self._lock:
                self._made.pop(job_key, None)
                if job_key in self._present:
                    self.failures[job_key] = answer.failure + _AGAIN
            what = f"the folder of job {job_key!r} was not moved: {answer.failure}"
            self._complaints.add(what, whose)
            return
        if answer.left_out:
            what = f"the folder of job {job_key!r} was moved in part: {answer.left_out}"
            self._complaints.add(what, whose)
        self.failures.pop(job_key, None)
        if self.on_moved is not None:
            self.on_moved(job_key, self._partition(targets, answer))

    def _partition(self, targets: Sequence[str], answer: AssignedFolder) -> Partition:
        """Return what the preload library needs to redirect open files of a job.

        The number is 0, and nothing is redirected, if a path has a colon.
        """
        roots, slots = tuple(answer.roots), self._assigner.driver.slots
        number = 0 if any(":" in root for root in roots) else self._number_of(targets)
        age_s = self._redirect_age_s
        return Partition(number, answer.folder, slots, roots, tuple(targets), age_s)

    def _number_of(self, targets: Sequence[str]) -> int:
        """Return a number for these targets, 1 to 2^32 - 2, in any order.

        It is the same after a restart of the daemon: open files are redirected only if
        the targets have changed. Targets of the same names on another storage are
        others. No two sets that this object has numbered share a number: a change
        between them would redirect nothing. None is forgotten: processes keep the
        number of their targets for as long as they run. A set takes less than 1 kB, and
        only the strategy or the placement makes one: users name no targets.
        """
        names = (self._storage, *sorted(targets))
        with self._lock:
            number = 1 + crc32("\0".join(names).encode()) % _NUMBERS
            while self._numbered.setdefault(number, names) != names:
                number = 1 + number % _NUMBERS
        return number


def _user_of(job_key: str) -> int:
    """Return the user id in a job key; -1, which is nobody's, if there is none."""
    number = job_key.partition(":")[0]
    return int(number) if number.isdecimal() else -1


def _name_of(job_key: str) -> str:
    return job_key.partition(":")[2]
