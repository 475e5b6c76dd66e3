# SPDX-License-Identifier: MIT
"""Folders of users in places that an operator has chosen.

Below such a place, users can put links where a folder is expected. A link may lead to
what belongs to somebody else, or to a file system that does not answer. So no link
below the place is followed, neither by the user who makes folders there nor by root who
looks at them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = ["make_own", "open_below"]

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
#: Needs no permission to read the folder.
_OPEN: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def open_below(above: Path, parts: Iterable[str]) -> int:
    """Open a folder below `above`, to look at it and at what is in it.

    Raises `OSError` if it is not there, or a link is on the way from `above`.
    """
    opened = os.open(above, _OPEN)
    for part in parts:
        parent = opened
        try:
            opened = os.open(part, _OPEN | os.O_NOFOLLOW, dir_fd=parent)
        finally:
            os.close(parent)
    return opened


def make_own(above: Path, folder: Path, remedy: str) -> None:
    """Make `folder`, and those between it and `above`, for this user.

    Raises `InputError` if another user has made one of them, or could put a folder or a
    link of its own in the place of one.

    Parameters
    ----------
    remedy
        What can be done if a folder is refused.
    """
    own = os.geteuid()
    if above.lstat().st_uid not in (0, own) or above.stat().st_uid not in (0, own):
        raise _refused(above, "belongs neither to root nor to you", remedy)
    with ExitStack() as stack:
        place, parent = above, os.open(above, _OPEN)
        stack.callback(os.close, parent)
        for part in folder.relative_to(above).parts:
            mode = os.fstat(parent).st_mode
            if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
                raise _refused(place, "lets other users replace folders", "chmod +t it")
            place /= part
            parent = _make_one(parent, part, place, remedy)
            stack.callback(os.close, parent)


def _make_one(parent: int, part: str, place: Path, remedy: str) -> int:
    """Make a folder of this user in an open one, and open it; follow no link."""
    with suppress(FileExistsError):
        os.mkdir(part, mode=0o700, dir_fd=parent)
    try:
        opened = os.open(part, _OPEN | os.O_NOFOLLOW, dir_fd=parent)
    except NotADirectoryError:
        raise _refused(place, "is not a folder that belongs to you", remedy) from None
    if os.fstat(opened).st_uid != os.geteuid():
        os.close(opened)
        raise _refused(place, "is not a folder that belongs to you", remedy)
    return opened


def _refused(place: Path, what: str, remedy: str) -> InputError:
    return InputError(what, where=str(place), remedy=remedy)
