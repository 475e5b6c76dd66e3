# SPDX-License-Identifier: MIT
"""The bells of all users of a node, and the thread that waits for them.

One thread sleeps until a process of any job rings its user's bell (`bell`); idle jobs
cost nothing. A bell that its user has damaged is replaced when the leases are renewed,
and one that is rung too often is not looked at for a while (`budgets`); other users are
not affected. Whoever wakes the thread pays for that, also without a ring; whose bell is
only looked at because others ring pays nothing. The thread takes `_PART` of a processor
at most.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from ctypes import c_uint32
from pathlib import Path
from typing import Final

from penstock.errors import PenstockError, UnavailableError
from penstock.live.node.budgets import TokenBucket
from penstock.live.node.pages.bell import Bell
from penstock.live.node.pages.room import PageRoom
from penstock.live.node.pages.shared_file import (
    MOST_FUTEXES,
    SharedFile,
    SharedFileError,
    wait_for_any,
    wake,
)
from penstock.live.wire.subordinates import owner_of

__all__ = ["Bells"]

#: How long a thread sleeps at most (s).
_SLEEP_S: Final = 1.0
#: Least time between two looks at the bells, whatever users write into them (s).
_LOOK_GAP_S: Final = 0.001
#: Part of a processor that looks may take.
_PART: Final = 0.2


class Bells:
    """The bells of the users who have jobs.

    Where the kernel cannot wait for several words (before Linux 5.16), each bell has a
    thread of its own; elsewhere so have each 127 bells.

    Parameters
    ----------
    folder
        Folder of the pages and bells.
    on_ring
        Called in a thread with a bell and the slots that have moved.
    owner_of
        Returns the user whose budget a user id has; see `subordinates`.
    room
        The room for files that users can make longer; None: nobody does.
    """

    def __init__(
        self,
        folder: Path,
        on_ring: Callable[[Bell, list[int]], None],
        owner_of: Callable[[int], int] = owner_of,
        room: PageRoom | None = None,
    ) -> None:
        self._folder = folder
        self._room = room or PageRoom.of_this_process()
        self._owner_of = owner_of
        self._on_ring = on_ring
        self._bells: dict[int, Bell] = {}
        #: Owner of user ids -> budget for posts. It outlives the bells: a user whose
        #: last job leaves does not get a full one.
        self._posts: dict[int, TokenBucket] = {}
        self._threads: list[_BellThread] = []

    def get(self, user: int, group: int) -> Bell:
        """Return the bell of a user; open or create it if there is none."""
        if user not in self._bells:
            self._bells[user] = self._open(user, group)
        return self._bells[user]

    def _open(self, user: int, group: int) -> Bell:
        bell = Bell.get(self._folder, user, group, self._room)
        now_s = time.monotonic()
        owners = {self._owner_of(each) for each in self._bells}
        self._posts = {
            owner: bucket
            for owner, bucket in self._posts.items()
            if owner in owners or not bucket.is_full(now_s)
        }
        if bell.posts:
            bell.posts = self._posts.setdefault(self._owner_of(user), bell.posts)
        if not any(thread.add(bell) for thread in self._threads):
            self._threads.append(_BellThread(bell, self._on_ring))
        return bell

    def free(self, user: int, slot: int) -> None:
        """Free the slot of a job that has left; remove a bell without jobs."""
        bell = self._bells[user]
        bell.jobs.pop(slot, None)
        if not bell.jobs:
            del self._bells[user]
            bell.path.unlink(missing_ok=True)
            self._stop_waiting(bell)

    def files(self) -> list[tuple[int, SharedFile]]:
        """Return users and the files of their bells."""
        return [(user, bell.file) for user, bell in self._bells.items()]

    def take_late_posts(self) -> dict[int, int]:
        """Return how often posts were noticed late since the last call, by user."""
        late = {}
        for user, bell in self._bells.items():
            if times := bell.late_posts - bell.noted_late_posts:
                late[user] = times
                bell.noted_late_posts += times
        return late

    def remove_unused(self) -> None:
        """Remove the bells that former agents have left and no job uses."""
        used = {bell.path for bell in self._bells.values()}
        for path in self._folder.glob("*.bell"):
            if path not in used:
                self._room.remove(path)

    def renew(self, duration_s: float) -> list[tuple[int, str]]:
        """Renew all leases and replace damaged bells; return users and problems."""
        problems = []
        for user, bell in list(self._bells.items()):
            try:
                if bell.is_damaged:
                    problems.append((user, f"user {user} has damaged {bell.path}"))
                    self._replace(bell)
                self._bells[user].renew(duration_s)
            except (PenstockError, OSError) as error:
                problem = f"the jobs of user {user} have no lease: {error}"
                problems.append((user, problem))
        return problems

    def _replace(self, bell: Bell) -> None:
        """Give a user a new bell, for new processes.

        The old one stays damaged if the user has too many files open already.
        """
        if not self._room.may_keep(bell.user, time.monotonic()):
            raise UnavailableError("damaged, and too many removed files are open")
        # Its user may have repaired it by now: the new one is another file.
        bell.path.unlink(missing_ok=True)
        fresh = self._open(bell.user, bell.group)
        self._stop_waiting(bell)
        fresh.jobs = bell.jobs
        self._bells[bell.user] = fresh

    def _stop_waiting(self, bell: Bell) -> None:
        """Have a bell, whose file has no name any more, closed by its thread."""
        self._room.keep_removed(bell.user, bell.file)
        for thread in self._threads:
            thread.remove(bell)
        self._threads = [thread for thread in self._threads if not thread.is_stopped]

    def close(self) -> None:
        """Close all bells and end all threads; the files stay."""
        for thread in self._threads:
            thread.stop()
        self._threads.clear()
        self._bells.clear()


class _BellThread:
    """A thread and the bells that it waits for; it closes them, for it uses them."""

    def __init__(self, bell: Bell, on_ring: Callable[[Bell, list[int]], None]) -> None:
        self.is_stopped = False
        self._on_ring = on_ring
        self._lock = threading.Lock()
        self._bells = [bell]
        self._removed: list[Bell] = []
        #: Futex on which the thread sleeps besides the bells: changes of the lists.
        self._changes = c_uint32(0)
        self._thread = threading.Thread(target=self._run, name="bells", daemon=True)
        self._thread.start()

    def add(self, bell: Bell) -> bool:
        """Wait for one more bell; return False if the thread has no room for it."""
        with self._lock:
            # One futex is that of the changes.
            if len(self._bells) + 1 >= MOST_FUTEXES:
                return False
            self._bells.append(bell)
        self._wake()
        return True

    def remove(self, bell: Bell) -> None:
        """Have a bell closed, if it is one of this thread; without bells, stop."""
        with self._lock:
            if bell in self._bells:
                self._bells.remove(bell)
                self._removed.append(bell)
                self.is_stopped = not self._bells
        self._wake()

    def stop(self) -> None:
        """Have all bells closed, and end."""
        with self._lock:
            self._removed += self._bells
            self._bells = []
            self.is_stopped = True
        self._wake()
        self._thread.join()

    def _wake(self) -> None:
        self._changes.value += 1
        wake(ctypes.addressof(self._changes))

    def _run(self) -> None:
        #: The bell that has woken the thread.
        woken: Bell | None = None
        while True:
            # Read first: a change after this ends the wait for this value.
            change = ctypes.addressof(self._changes), self._changes.value
            if self.is_stopped:
                break
            now_s, sleep_s = time.monotonic(), _SLEEP_S
            begun_s = time.thread_time()
            futexes, waiting = [], []
            for bell in self._current_bells():
                if pause_s := bell.pause_s(now_s):
                    sleep_s = min(sleep_s, pause_s)
                elif futex := self._look(bell, now_s, has_woken=bell is woken):
                    futexes.append(futex)
                    waiting.append(bell)
            # Where only one word can be waited for, changes are seen after `_SLEEP_S`.
            if MOST_FUTEXES > 1 or not futexes:
                futexes.append(change)
            spent_s = time.thread_time() - begun_s
            time.sleep(max(_LOOK_GAP_S, spent_s * (1.0 / _PART - 1.0)))
            index = wait_for_any(futexes, sleep_s)
            has_rung = index is not None and index < len(waiting)
            woken = waiting[index] if index is not None and has_rung else None
        self._current_bells()

    def _current_bells(self) -> list[Bell]:
        """Close the bells that were removed; return the others."""
        with self._lock:
            removed, self._removed = self._removed, []
            bells = [bell for bell in self._bells if not bell.is_damaged]
        for bell in removed:
            bell.close()
        return bells

    def _look(
        self, bell: Bell, now_s: float, *, has_woken: bool
    ) -> tuple[int, int] | None:
        """Report what has moved; return the futex to wait for, None if damaged.

        Its user pays if a process has rung it, or has woken the thread by it.
        """
        try:
            futex, slots = bell.look(now_s)
        except SharedFileError:
            # The agent replaces it when it renews the leases.
            bell.is_damaged = True
            return None
        if slots is not None or has_woken:
            bell.charge(now_s, len(slots or ()))
        if slots:
            self._on_ring(bell, slots)
        return futex
