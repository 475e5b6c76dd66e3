# SPDX-License-Identifier: MIT
"""Which users are trusted, what is known of one, and which process has a number.

The number of a process may be that of another one later. A number and a start together
name one process since boot.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import InputError, UnavailableError
from penstock.live.ending import end_process

__all__ = [
    "KnownUser",
    "is_operator",
    "known_user",
    "parse_start_ticks",
    "process_start_ticks",
    "user_id",
    "user_name",
]


#: The program that tells the groups of a user, and the time that it has (s).
_PROGRAM: Final = "id"
_LIMIT_S: Final = 60.0


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
    """Return what the user database knows of a user id; None: nothing.

    The answer can take long. Other threads go on meanwhile.

    Raises
    ------
    UnavailableError
        If the database does not tell the groups of the user.
    """
    entry = _entry(user)
    if entry is None:
        return None
    return KnownUser(entry.pw_name, entry.pw_gid, _groups(entry.pw_name))


def _groups(name: str) -> tuple[int, ...]:
    """Return all groups of a user.

    `os.getgrouplist` would stop all threads until the database has answered: it does
    not release Python's lock.
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        raise InputError(f"there is no program `{_PROGRAM}`", remedy="check PATH")
    answer = _printed([program, "-G", "--", name])
    if answer is None:
        raise UnavailableError(
            f"the user database does not tell the groups of {name!r}",
            remedy=f"check that `{_PROGRAM} -G {name}` answers within {_LIMIT_S:g} s",
        )
    return tuple(map(int, answer.split()))


def _printed(command: list[str]) -> bytes | None:
    """Return what a program prints within `_LIMIT_S`; None: it fails, or is slower.

    A program that cannot be killed is abandoned; `subprocess.run` would wait for it.
    """
    process = subprocess.Popen(  # noqa: S603 - a fixed program, no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        printed, _ = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        end_process(process)
        return None
    return None if process.returncode else printed


def is_operator(user: int) -> bool:
    """Return True for root and the user who runs this process.

    Operators may do everything and have no budget.
    """
    return user in (0, os.geteuid())


def process_start_ticks(pid: int) -> int | None:
    """Return the start of a process (clock ticks after boot); None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return parse_start_ticks(text)


def parse_start_ticks(text: bytes) -> int | None:
    """Return the start of a process (clock ticks after boot); None if it has ended.

    `text` is the content of ``/proc/PID/stat``.
    """
    # The second field, the name in brackets, may have any bytes, brackets among them.
    fields = text.rpartition(b")")[2].split()
    return None if fields[0] in b"ZX" else int(fields[19])
