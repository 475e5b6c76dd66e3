# SPDX-License-Identifier: MIT
"""Keeps users from filling the file system of the pages with their pages.

The user of a page or a bell can make it longer, as long as a process has it open, also
after its name is gone: nothing in the kernel limits that. Therefore

1. the agent cuts such files back to their size, several times per lease: all of them
   if their file system has lost room, else some of them in turn;
2. a file that is removed while its user has it open, or a link to it, stays open here,
   is cut back, too, and counts as a job of its user until the user has closed it;
3. a file of a new job comes from a store of spare files if the file system is full
   nevertheless: to rename a file needs no room. Each user may take a few.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from penstock.live.node.budgets import Budgets, Holding
from penstock.live.node.pages.shared_file import SharedFile

__all__ = ["SPARE_BYTES", "PageRoom"]

#: Size of a spare file: that of a page, and of a bell.
SPARE_BYTES: Final = 4096
_SPARES: Final = 64
#: Most spare files that one user takes until the store is full again.
_MOST_SPARES_OF_USER: Final = 4
#: One of so many files is looked at, unless room was lost or the files are few.
_TURNS: Final = 10
_FEW: Final = 100
#: Less room than this is not a loss: other programs use the file system, too.
_LOSS_BYTES: Final = 1 << 20


class PageRoom:
    """The spare files, and the removed files that users still have open.

    Parameters
    ----------
    budgets
        Note whose files were cut back, and whose removed files are open.
    spares
        Folder of the spare files, on the file system of the pages; None: no spares.
        A daemon of one user has none.
    """

    def __init__(self, budgets: Budgets, spares: Path | None) -> None:
        self._budgets = budgets
        self._folder = spares if os.geteuid() == 0 else None
        self._spares: list[Path] = []
        #: Owner of user ids -> spare files taken since the store was full.
        self._taken: Counter[int] = Counter()
        #: Users and their removed files.
        self._removed: list[tuple[int, SharedFile]] = []
        #: Room when all files were last looked at, or since then if there was more.
        self._room_bytes = 0
        self._turn = 0
        #: True if the last look has cut files: they may be made longer at once.
        self._has_cut = False
        self._looked_s = 0.0

    @classmethod
    def of_this_process(cls) -> Self:
        """Return the room of a process that has no spare files."""
        return cls(Budgets.of_this_process(), None)

    def prepare(self) -> None:
        """Make the spare files that are missing, as far as there is room."""
        if self._folder is None or len(self._spares) == _SPARES:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for number in range(_SPARES):
                path = self._folder / str(number)
                if path not in self._spares:
                    _make_spare(path)
                    self._spares.append(path)
            self._taken.clear()

    def take_spare(self, user: int, path: Path, size_bytes: int) -> bool:
        """Give a spare file this name, for a user; return False if it gets none.

        There are none for who has filled the file system, and few for each other user.
        """
        owner = self._budgets.owner(user)
        if (
            size_bytes != SPARE_BYTES
            or not self._spares
            or self._taken[owner] >= _MOST_SPARES_OF_USER
            or self._budgets.was_refused(user, Holding.BYTES, self._looked_s)
        ):
            return False
        with suppress(OSError):
            self._spares.pop().rename(path)
            self._taken[owner] += 1
            return True
        return False

    def may_keep(self, user: int, now_s: float) -> bool:
        """Return False, and note it, if one more removed file is too much of a user."""
        return self._budgets.may_hold(user, Holding.JOBS, now_s)

    def remove(self, path: Path) -> None:
        """Remove a page or a bell of any contents, and watch it if it is open."""
        file = SharedFile.open_to_remove(path, SPARE_BYTES)
        try:
            user = os.geteuid() if file is None else file.status.st_uid
            path.unlink(missing_ok=True)
            if file is not None:
                self.keep_removed(user, file)
        finally:
            if file is not None:
                file.close()

    def keep_removed(self, user: int, file: SharedFile) -> None:
        """Watch a removed file, if its user has it open. The caller closes it.

        A user who runs the daemon is not watched.
        """
        if user == os.geteuid():
            return
        with suppress(OSError):
            file.take_from_user()
            if file.is_open_elsewhere:
                self._removed.append((user, file.duplicate()))
                self._budgets.keep(user, Holding.JOBS)

    def cut(self, files: Sequence[tuple[int, SharedFile]], now_s: float) -> None:
        """Cut back files of users, and the removed ones; then refill the store."""
        self._looked_s = now_s
        looked_at = (*self._to_look_at(files), *self._removed)
        longer = [user for user, file in looked_at if file.cut()]
        self._has_cut = bool(longer)
        for user in longer:
            self._budgets.refuse(user, Holding.BYTES, now_s)
        for user, file in [
            each for each in self._removed if not each[1].is_open_elsewhere
        ]:
            self._removed.remove((user, file))
            self._budgets.release(user, Holding.JOBS)
            file.close()
        self.prepare()

    def _to_look_at(
        self, files: Sequence[tuple[int, SharedFile]]
    ) -> Sequence[tuple[int, SharedFile]]:
        """Return all files if they are few or room was lost, else some in turn.

        Room that a file takes again between two looks is not seen as a loss: after a
        look that has cut files, the next one is at all files, too.
        """
        if self._has_lost_room() or self._has_cut or len(files) <= _FEW:
            return files
        self._turn = (self._turn + 1) % _TURNS
        return files[self._turn :: _TURNS]

    def _has_lost_room(self) -> bool:
        """Return True if there is less room than before, or that is not known."""
        if self._folder is None:
            return False
        try:
            status = os.statvfs(self._folder)
        except OSError:
            return True
        room_bytes = status.f_bfree * status.f_frsize
        is_lost = room_bytes < self._room_bytes - _LOSS_BYTES
        self._room_bytes = room_bytes if is_lost else max(room_bytes, self._room_bytes)
        return is_lost

    def close(self) -> None:
        """Remove the spare files, and close the removed files."""
        for path in self._spares:
            with suppress(OSError):
                path.unlink()
        for _, file in self._removed:
            file.close()
        self._spares, self._removed = [], []


def _make_spare(path: Path) -> None:
    """Make a file of zeros whose blocks are allocated."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, SPARE_BYTES)
    finally:
        os.close(descriptor)
