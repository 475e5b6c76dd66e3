# SPDX-License-Identifier: MIT
"""Other users, for tests that root runs."""

from __future__ import annotations

import json
import os
import pwd
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

__all__ = [
    "NEEDS_ROOT",
    "NOBODY",
    "SOMEBODY",
    "as_user",
    "become",
    "open_for_all",
    "strangers",
    "two_known_users",
]

#: Two users who are not root.
NOBODY, SOMEBODY = 65534, 54321

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs several users")


#: Above all users that a user database knows, and those of containers.
_FIRST_STRANGER = 2_000_000_000
_MOST_STRANGERS = 8


def strangers(count: int) -> range:
    """Return users without a name who belong to this process of the tests alone.

    What they leave in places that all users share, and the processes that they run,
    are not those of a test that runs at the same time.
    """
    assert count <= _MOST_STRANGERS
    first = _FIRST_STRANGER + _MOST_STRANGERS * os.getpid()
    return range(first, first + count)


def become(user: int) -> None:
    """Change to another user."""
    if user != os.geteuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def as_user(user: int, act: Callable[[], Any]) -> Any:
    """Return the result of `act` in a process of another user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(user)
            answer = [True, act()]
        except BaseException:  # noqa: BLE001 - the parent tells of it
            answer = [False, traceback.format_exc()]
        os.write(writing, json.dumps(answer).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        succeeded, result = json.load(stream)
    os.waitpid(child, 0)
    assert succeeded, result
    return result


def open_for_all(folder: Path) -> None:
    """Give other users access to a folder of pytest."""
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)


def two_known_users() -> tuple[pwd.struct_passwd, pwd.struct_passwd]:
    """Return two users of this machine who have names and are not root."""
    first, second, *_ = sorted(
        (entry for entry in pwd.getpwall() if entry.pw_uid not in (0, NOBODY)),
        key=lambda entry: entry.pw_uid,
    )
    return first, second
