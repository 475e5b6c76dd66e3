# SPDX-License-Identifier: MIT
"""Table of the files that the kernel knows: inode number and open descriptor.

An ``O_PATH`` descriptor stays valid when the file is renamed, linked or deleted. Two
names of one file have one number, because files are identified by (device, inode). The
kernel counts its look-ups of each number and later tells how many it forgets; a file
with no look-ups left is removed from the table.

Only the event loop uses the table.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["ROOT", "Inode", "InodeTable"]

#: Number of the mounted folder, defined by FUSE.
ROOT: Final = 1
#: Numbers of files on other devices below the backing folder start here.
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
    """The files that the kernel knows; owns their descriptors."""

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
        """Return the descriptor of a file; raise OSError (ESTALE) if it is unknown."""
        try:
            return self._by_number[number].fd
        except KeyError:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE)) from None

    def remember(self, fd: int, status: os.stat_result) -> int:
        """Count a look-up, take over the descriptor, and return the file's number."""
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
        """Subtract look-ups; close a file that has none left."""
        inode = self._by_number.get(number)
        if inode is None or number == ROOT:
            return
        inode.lookups -= lookups
        if inode.lookups <= 0:
            self._drop([inode])

    def close(self) -> None:
        """Close all files."""
        self._drop(list(self._by_number.values()))

    def _drop(self, inodes: Iterable[Inode]) -> None:
        for inode in inodes:
            del self._by_number[inode.number], self._by_key[inode.key]
            os.close(inode.fd)

    def _number(self, key: tuple[int, int]) -> int:
        """Return the backing inode number if possible, so that programs see it."""
        device, number = key
        if device == self._device and ROOT < number < _FOREIGN:
            return number
        self._foreign += 1
        return self._foreign
