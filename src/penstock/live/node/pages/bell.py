# SPDX-License-Identifier: MIT
"""The bell of a user: how the processes of all jobs of the user wake the agent.

A bell is a file beside the pages that all processes of the user's jobs map
(``native/shim/bell.h``). A page refers to it by the user id and a slot. A process that
begins an operation counts up its slot and the word `rings`, on which the agent sleeps
(`bells`). After a ring, the agent reads this one file to find the pages that it must
look at. The bell also holds the lease of all its pages: one write renews it for all
jobs of the user.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from ctypes import Structure, c_uint16, c_uint32, c_uint64
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, Self

from penstock.errors import InputError, UnavailableError
from penstock.live.node.budgets import Spending, TokenBucket
from penstock.live.node.pages.page_layout import lease_end_ns
from penstock.live.node.pages.room import PageRoom
from penstock.live.node.pages.shared_file import SharedFile, SharedFileError
from penstock.live.wire.identity import is_operator

__all__ = ["MAGIC", "SIZE", "SLOTS", "VERSION", "Bell", "BellWords"]

MAGIC: Final = int.from_bytes(b"penbell\0", "little")
VERSION: Final = 1
SIZE: Final = 4096
#: Most pages that can refer to a bell. `budgets` allows fewer jobs.
SLOTS: Final = 1984


#: Time between two looks at the slots of a bell that nobody rings (s).
_READ_S: Final = 1.0


class BellWords(Structure):
    """``struct penstock_bell``: the whole bell."""

    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("size", c_uint32),
        ("lease_ns", c_uint64),
        ("unused", c_uint64 * 5),
        ("rings", c_uint32),
        ("unused_words", c_uint32 * 15),
        ("posts", c_uint16 * SLOTS),
    )


class Bell:
    """The bell of one user; get one with `Bell.get`.

    A thread of `Bells` calls `look` and `close`; all else is for the agent's thread.
    """

    def __init__(self, user: int, group: int, file: SharedFile) -> None:
        self.user, self.group = user, group
        self.path = file.path
        self.jobs: dict[int, str] = {}
        """Slot -> key of the job whose page has this slot."""
        self.is_damaged = False
        """True if the file cannot be used any more."""
        self.posts = None if is_operator(user) else TokenBucket.of(Spending.POSTS)
        """The budget of its user for posts; None: no limit."""
        self.late_posts = 0
        """How often posts were noticed late. The thread counts them."""
        self.noted_late_posts = 0
        """The part of these that the agent has noted."""
        self.file = file
        #: The value of `rings` at the last look.
        self._rings = file.read(ctypes.sizeof(c_uint32), BellWords.rings.offset)
        #: When the slots were read last (s).
        self._read_s = -inf
        # The first look finds what was posted after this moment.
        self._posts = file.read(BellWords.posts.size, BellWords.posts.offset)

    @classmethod
    def get(
        cls,
        folder: Path,
        user: int,
        group: int,
        room: PageRoom | None = None,
    ) -> Self:
        """Open the bell of a user; create it if there is none, or none of ours."""
        room = room or PageRoom.of_this_process()
        path = folder / f"{user}.bell"
        with suppress(InputError):
            return cls.open(path, user, group)
        room.remove(path)
        file = SharedFile.create(path, SIZE, "bell", partial(room.take_spare, user))
        try:
            if user != os.geteuid():
                os.chown(path, user, group)
            file.write(0, BellWords(version=VERSION, size=SIZE))
            # The magic number last: until then, a process does not take it for a bell.
            file.write(BellWords.magic.offset, c_uint64(MAGIC))
            return cls(user, group, file)
        except (OSError, SharedFileError):
            file.close()
            room.remove(path)
            raise

    @classmethod
    def open(cls, path: Path, user: int, group: int) -> Self:
        """Open the bell that a former agent has left; raise `InputError` if it cannot.

        Processes have mapped it, so it must remain the same file.
        """
        file = SharedFile.open(path, SIZE, "bell")
        try:
            words = BellWords.from_buffer_copy(file.read(SIZE))
            found = (words.magic, words.version, words.size, file.status.st_uid)
            if found != (MAGIC, VERSION, SIZE, user):
                raise file.damaged(f"not a bell of version {VERSION} of user {user}")
            return cls(user, group, file)
        except SharedFileError:
            file.close()
            raise

    def take_slot(self, job_key: str) -> int:
        """Return a free slot, which from now on belongs to a job."""
        if len(self.jobs) >= SLOTS:
            raise UnavailableError(
                f"user {self.user} has {len(self.jobs)} jobs on this node already",
                remedy="wait until one of them ends",
            )
        slot = next(slot for slot in range(1, SLOTS + 1) if slot not in self.jobs)
        self.jobs[slot] = job_key
        return slot

    def renew(self, duration_s: float) -> None:
        """Let the grants of all pages of this bell hold for `duration_s` from now."""
        words = c_uint64(lease_end_ns(duration_s))
        self.file.write(BellWords.lease_ns.offset, words)

    def look(self, now_s: float = inf) -> tuple[tuple[int, int], list[int] | None]:
        """Return the futex to wait for, and the slots counted up since the last look.

        The slots are None if nobody has rung since then: then they are read once in
        `_READ_S` only. The futex is the address and the value of `rings`. That word is
        read first: a process that counts up its slot after this also changes the value.
        """
        place = BellWords.rings.offset
        rings = self.file.read(ctypes.sizeof(c_uint32), place)
        futex = self.file.address + place, int.from_bytes(rings, sys.byteorder)
        has_rung, self._rings = rings != self._rings, rings
        if not has_rung and now_s - self._read_s < _READ_S:
            return futex, None
        self._read_s = now_s
        posts = self.file.read(len(self._posts), BellWords.posts.offset)
        moved = _moved(self._posts, posts)
        self._posts = posts
        return futex, moved if has_rung or moved else None

    def pause_s(self, now_s: float) -> float:
        """Return for how long not to look, because the user has posted too much (s)."""
        return self.posts.wait_s(now_s) if self.posts else 0.0

    def charge(self, now_s: float, posts: int) -> None:
        """Charge the user for a look that found this many posts."""
        if self.posts is None:
            return
        self.posts.spend(now_s, 1.0 + posts)
        if self.posts.wait_s(now_s):
            self.late_posts += 1

    def close(self) -> None:
        """Close the bell; the file stays, and its lease ends by itself."""
        self.file.close()


def _moved(before: bytes, after: bytes) -> list[int]:
    """Return the slots, from 1, whose counters differ."""
    bits = 8 * ctypes.sizeof(c_uint16)
    differences = int.from_bytes(before, "little") ^ int.from_bytes(after, "little")
    slots: list[int] = []
    while differences:
        skipped = ((differences & -differences).bit_length() - 1) // bits
        slots.append((slots[-1] if slots else 0) + skipped + 1)
        differences >>= bits * (skipped + 1)
    return slots
