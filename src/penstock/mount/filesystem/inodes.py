# SPDX-License-Identifier: MIT
"""The files that the kernel knows: a number, and a descriptor that holds each.

The descriptor (``O_PATH``) stays with the file whatever happens to its names: renamed,
linked twice, deleted while open. Two names of one file have one number, because files
are told apart by (device, inode). The kernel counts how often it was given a number; it
forgets as often.

Only the event loop touches the table.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["ROOT", "Inode", "InodeTable"]

#: Number of the mounted folder: the kernel's choice.
ROOT: Final = 1
#: Files on other devices below the backing folder are numbered from here on.
_FOREIGN: Final = 1 << 62


@dataclass(slots=True)
class Inode:
    """A file that the kernel knows."""

    number: int
    fd: int
    key: tuple[int, int]
    """Device and inode number on the backing file system."""
    lookups: int = 0


class InodeTable:
    """All files that the kernel knows; owns their descriptors."""

    def __init__(self, root_fd: int) -> None:
        status = os.fstat(root_fd)
        self._device = status.st_dev
        self._foreign = _FOREIGN
        root = Inode(ROOT, root_fd, (status.st_dev, status.st_ino), lookups=1)
        self._by_number = {ROOT: root}
        self._by_key = {root.key: root}

    def __len__(self) -> int:
        return len(self._by_number)

    def fd(self, number: int) -> int:
        """Return the descriptor of a file."""
        try:
            return self._by_number[number].fd
        except KeyError:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE)) from None

    def remember(self, fd: int, status: os.stat_result) -> int:
        """Count a look-up; take over the descriptor, return the file's number."""
        key = status.st_dev, status.st_ino
        inode = self._by_key.get(key)
        if inode is None:
            inode = Inode(self._number(key), fd, key)
            self._by_key[key] = self._by_number[inode.number] = inode
        else:
            os.close(fd)
        inode.lookups += 1
        return inode.number

    def forget(self, number: int, lookups: int) -> None:
        """Count look-ups back; a file that the kernel no longer knows is let go."""
        inode = self._by_number.get(number)
        if inode is None or number == ROOT:
            return
        inode.lookups -= lookups
        if inode.lookups <= 0:
            self._drop([inode])

    def close(self) -> None:
        """Let all files go."""
        self._drop(list(self._by_number.values()))

    def _drop(self, inodes: Iterable[Inode]) -> None:
        for inode in inodes:
            del self._by_number[inode.number], self._by_key[inode.key]
            os.close(inode.fd)

    def _number(self, key: tuple[int, int]) -> int:
        """Return the backing inode number where it is free, so that users see it."""
        device, number = key
        if device == self._device and ROOT < number < _FOREIGN:
            return number
        self._foreign += 1
        return self._foreign
