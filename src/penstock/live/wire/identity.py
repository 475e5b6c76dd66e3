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
]


class KnownUser(NamedTuple):
    """A user as the user database of this node has it."""

    name: str
    group: int
    """Its main group."""
    groups: tuple[int, ...]
    """All its groups."""


def known_user(user: int) -> KnownUser | None:
    """Return what the user database knows of a user id; None: nothing."""
    try:
        entry = pwd.getpwuid(user)
    except (KeyError, OverflowError):
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
