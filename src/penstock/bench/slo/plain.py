# SPDX-License-Identifier: MIT
"""A minimal pass-through file system without a scheduler, as the baseline of a mount.

``python -m penstock.bench.slo.plain BACKING MNT`` shows the plain files of a folder. It
does the same as the example of pyfuse3, in the event loop, and nothing that costs more
time. It does have extended attributes, because then the kernel asks for one before
every write, as it does at a penstock mount.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import pyfuse3
import trio

__all__ = ["main"]


class _Plain:
    """The handlers; pyfuse3 looks them up by name, and missing ones give ENOSYS."""

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = False

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._paths = {pyfuse3.ROOT_INODE: folder}

    def __getattr__(self, name: str) -> Any:
        async def missing(*_: object) -> None:
            raise pyfuse3.FUSEError(errno.ENOSYS)

        return missing

    def init(self) -> None:
        """Do nothing at the start."""

    async def lookup(self, _parent: int, name: bytes, _ctx: Any) -> Any:
        """Return the attributes of a name in the folder."""
        return self._entry(self._path(name))

    async def getattr(self, inode: int, _ctx: Any) -> Any:
        """Return the attributes of an inode."""
        return self._entry(self._paths[inode])

    async def create(
        self, _parent: int, name: bytes, mode: int, flags: int, _ctx: Any
    ) -> Any:
        """Create and open a file."""
        path = self._path(name)
        fd = os.open(path, flags | os.O_CREAT, mode)
        return pyfuse3.FileInfo(fh=fd), self._entry(path)

    async def open(self, inode: int, flags: int, _ctx: Any) -> Any:
        """Open a file, without O_DIRECT."""
        return pyfuse3.FileInfo(fh=os.open(self._paths[inode], flags & ~os.O_DIRECT))

    async def read(self, fh: int, off: int, size: int) -> bytes:
        """Read up to `size` bytes at offset `off`."""
        return os.pread(fh, size, off)

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        """Write `buf` at offset `off`; return the number of bytes written."""
        return os.pwrite(fh, buf, off)

    async def release(self, fh: int) -> None:
        """Close a file."""
        os.close(fh)

    async def getxattr(self, inode: int, name: bytes, _ctx: Any) -> bytes:
        """Return an extended attribute."""
        try:
            return os.getxattr(self._paths[inode], name)
        except OSError as error:
            raise pyfuse3.FUSEError(error.errno or errno.EIO) from None

    async def forget(self, _inodes: Any) -> None:
        """Keep all entries."""

    def _path(self, name: bytes) -> str:
        return f"{self._folder}/{os.fsdecode(name)}"

    def _entry(self, path: str) -> Any:
        """Return the attributes of a file; note its inode."""
        try:
            status = os.lstat(path)
        except OSError as error:
            raise pyfuse3.FUSEError(error.errno or errno.EIO) from None
        entry = pyfuse3.EntryAttributes()
        root = path == self._folder
        entry.st_ino = pyfuse3.ROOT_INODE if root else status.st_ino
        self._paths[entry.st_ino] = path
        entry.st_mode, entry.st_nlink = status.st_mode, status.st_nlink
        entry.st_uid, entry.st_gid = status.st_uid, status.st_gid
        entry.st_size, entry.st_blocks = status.st_size, status.st_blocks
        entry.st_mtime_ns = status.st_mtime_ns
        entry.entry_timeout = entry.attr_timeout = 1.0
        return entry


def main() -> None:
    """Mount, and serve until unmounted."""
    backing, point = sys.argv[1:]
    plain: Any = _Plain(backing)
    pyfuse3.init(plain, point, {"fsname=plain", "subtype=plain"})
    try:
        trio.run(pyfuse3.main)
    finally:
        pyfuse3.close(unmount=True)


if __name__ == "__main__":
    main()
