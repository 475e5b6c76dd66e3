# SPDX-License-Identifier: MIT
"""Which users are trusted, what is known of one, and which process has a number.

The number of a process may be that of another one later. A number and a start together
name one process since boot.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "KnownUser",
    "is_operator",
    "known_user",
    "parse_start_ticks",
    "process_start_ticks",
    "user_id",
    "user_name",
]


class KnownUser(NamedTuple):
    """A user as the user database of this node has it."""

    name: str
    group: int
    """Its main group."""
    groups: tuple[int, ...]
    """All its groups."""


def _entry(user: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(user)
    except (KeyError, OverflowError):
        return None


def user_name(user: int) -> str:
    """Return the name of a user id in the user database; "" if it has none.

    The database may be a server on the network: the answer can take long.
    """
    entry = _entry(user)
    return "" if entry is None else entry.pw_name


def user_id(word: str) -> int | None:
    """Return the user id that a name or a number means; None: no user has the name."""
    try:
        return int(word) if word.isdecimal() else pwd.getpwnam(word).pw_uid
    except (KeyError, ValueError):  # ValueError: the name has a null character.
        return None


def known_user(user: int) -> KnownUser | None:
    """Return what the user database knows of a user id; None: nothing."""
    entry = _entry(user)
    if entry is None:
        return None
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return KnownUser(entry.pw_name, entry.pw_gid, tuple(groups))


def is_operator(user: int) -> bool:
    """Return True for root and the user who runs this process.

    Operators may do everything and have no budget.
    """
    return user in (0, os.geteuid())


def process_start_ticks(pid: int) -> int | None:
    """Return the start of a process (clock ticks after boot); None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return parse_start_ticks(text)


def parse_start_ticks(text: str) -> int | None:
    """Return the start of a process (clock ticks after boot); None if it has ended.

    `text` is the content of ``/proc/PID/stat``.
    """
    # The second field, the name in brackets, may contain blanks and brackets.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])
