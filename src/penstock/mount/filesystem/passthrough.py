# SPDX-License-Identifier: MIT
# ruff: noqa: ARG002 - the arguments of the handlers are pyfuse3's
"""Answers the kernel's requests from the backing folder; reads and writes pass a gate.

Every request is a task of the event loop; `calls` sees to it that a slow call to the
backing file system holds up nobody else. The kernel checks permissions by the
attributes that it is told (``default_permissions``), access control lists included, and
keeps locks itself. Writes come at once, not through its write-back cache: whoever
writes feels the limit. Pages that were read stay in its cache until the next open().

A file belongs to an application from the moment it is opened: later requests come
without a process. Reads, writes and syncs take their turn in the queue of that
application. Requests for names and attributes do not queue, but for threads of their
own: the kernel locks a folder meanwhile, for all applications, and whoever waited there
for its share would hold up the others.

Errors of the backing file system are passed on as they are.
"""

from __future__ import annotations

import errno
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FileInfo, RequestContext, SetattrFields

from penstock.mount.filesystem import backing
from penstock.mount.filesystem.backing import Changes, DirectoryEntry, Owner
from penstock.mount.filesystem.calls import Calls
from penstock.mount.filesystem.inodes import ROOT, InodeTable
from penstock.mount.gate import Gate
from penstock.mount.rules import FileOpener
from penstock.qos import Request

__all__ = ["PassThrough"]

_LOG: Final = logging.getLogger("penstock.mount")
#: How long the kernel may use names and attributes without asking again (s).
_TIMEOUT_S: Final = 1.0
#: Entries of a folder that are looked up in one go.
_BATCH: Final = 32
#: Errors for which no name is to blame: it is this process that can have no more.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_STATFS: Final = (
    *("bsize", "frsize", "blocks", "bfree", "bavail"),
    *("files", "ffree", "favail", "namemax"),
)
_CAPABILITY: Final = b"security.capability"

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(slots=True)
class _Folder:
    """An open folder: what was in it when it was read from its beginning."""

    number: int
    fd: int
    names: list[bytes] = field(default_factory=list)


def _answer(
    handler: Callable[_P, Coroutine[Any, Any, _T]],
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Count a request; answer errors with their number, and our own bugs with EIO."""
    name = handler.__name__

    @wraps(handler)
    async def answered(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        mount: Any = args[0]
        mount.counts[name] += 1
        try:
            return await handler(*args, **kwargs)
        except OSError as error:
            raise pyfuse3.FUSEError(error.errno or errno.EIO) from None
        except Exception:  # noqa: BLE001 - it would end the mount for everybody
            _LOG.exception("%s failed", name)
            raise pyfuse3.FUSEError(errno.EIO) from None

    return answered


class PassThrough(pyfuse3.Operations):
    """The file system: a folder, seen through a gate.

    Parameters
    ----------
    bind
        Returns the application of whoever opens a file.
    """

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = True

    def __init__(
        self, root_fd: int, gate: Gate, bind: Callable[[FileOpener], Awaitable[str]]
    ) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        """Requests so far, by name."""
        self._inodes = InodeTable(root_fd)
        self._gate = gate
        self._bind = bind
        #: Open file -> its application.
        self._applications: dict[int, str] = {}
        self._folders: dict[int, _Folder] = {}
        #: Files that have no capabilities, and until when that is believed: the kernel
        #: asks before every write.
        self._plain: dict[int, float] = {}
        self._calls = Calls()
        self._data = Calls()

    def rebind(self, renamed: Callable[[str], str]) -> None:
        """Give open files to other applications."""
        for fh, name in self._applications.items():
            self._applications[fh] = renamed(name)

    def close(self) -> None:
        """Close all files."""
        self._inodes.close()
        for fd in (*self._applications, *self._folders):
            os.close(fd)
        self._applications.clear()
        self._folders.clear()

    # --- Names --------------------------------------------------------------------

    @_answer
    async def lookup(
        self, parent_inode: int, name: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        """Find a name in a folder."""
        parent = self._inodes.fd(parent_inode)
        return self._entry(await self._calls.short(backing.find, parent, name))

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        """Let files go that the kernel no longer knows."""
        for number, lookups in inode_list:
            self._plain.pop(number, None)
            self._inodes.forget(number, lookups)

    @_answer
    async def readlink(self, inode: int, ctx: RequestContext) -> bytes:
        """Return where a symbolic link points."""
        return await self._calls.short(backing.read_symlink, self._inodes.fd(inode))

    @_answer
    async def mknod(
        self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: RequestContext
    ) -> EntryAttributes:
        """Make a file, a pipe, a socket or a device."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        return self._entry(
            await self._calls.short(backing.make_node, parent, name, mode, rdev, owner)
        )

    @_answer
    async def mkdir(
        self, parent_inode: int, name: bytes, mode: int, ctx: RequestContext
    ) -> EntryAttributes:
        """Make a folder."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        return self._entry(
            await self._calls.short(backing.make_folder, parent, name, mode, owner)
        )

    @_answer
    async def symlink(
        self, parent_inode: int, name: bytes, target: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        """Make a symbolic link."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        return self._entry(
            await self._calls.short(backing.make_symlink, parent, name, target, owner)
        )

    @_answer
    async def link(
        self, inode: int, new_parent_inode: int, new_name: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        """Give a file one more name."""
        fd, parent = self._inodes.fd(inode), self._inodes.fd(new_parent_inode)
        return self._entry(await self._calls.short(backing.link, fd, parent, new_name))

    @_answer
    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        """Remove a name."""
        await self._calls.long(os.unlink, name, dir_fd=self._inodes.fd(parent_inode))

    @_answer
    async def rmdir(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        """Remove an empty folder."""
        await self._calls.long(os.rmdir, name, dir_fd=self._inodes.fd(parent_inode))

    @_answer
    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: RequestContext,
    ) -> None:
        """Rename, over another file, beside it (flag) or in exchange (flag)."""
        old, new = self._inodes.fd(parent_inode_old), self._inodes.fd(parent_inode_new)
        await self._calls.long(backing.rename, old, name_old, new, name_new, flags)

    # --- Attributes ---------------------------------------------------------------

    @_answer
    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        """Return the attributes of a file."""
        status = await self._calls.short(os.fstat, self._inodes.fd(inode))
        return _attributes(inode, status)

    @_answer
    async def setattr(
        self,
        inode: int,
        attr: EntryAttributes,
        fields: SetattrFields,
        fh: int | None,
        ctx: RequestContext,
    ) -> EntryAttributes:
        """Set mode, owner, size and times."""
        fd = self._inodes.fd(inode)
        run = self._calls.long if fields.update_size else self._calls.short
        status = await run(backing.change, fd, fh, _changes(attr, fields))
        return _attributes(inode, status)

    @_answer
    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        """Return an extended attribute."""
        if name == _CAPABILITY and trio.current_time() < self._plain.get(inode, 0.0):
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        path = backing.way_to(self._inodes.fd(inode))
        try:
            return await self._calls.short(os.getxattr, path, name)
        except OSError:
            if name == _CAPABILITY:
                self._plain[inode] = trio.current_time() + _TIMEOUT_S
            raise

    @_answer
    async def setxattr(
        self, inode: int, name: bytes, value: bytes, ctx: RequestContext
    ) -> None:
        """Set an extended attribute."""
        path = backing.way_to(self._inodes.fd(inode))
        self._plain.pop(inode, None)
        await self._calls.short(os.setxattr, path, name, value)

    @_answer
    async def listxattr(self, inode: int, ctx: RequestContext) -> Sequence[bytes]:
        """Return the names of all extended attributes."""
        path = backing.way_to(self._inodes.fd(inode))
        return [
            os.fsencode(name) for name in await self._calls.short(os.listxattr, path)
        ]

    @_answer
    async def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> None:
        """Remove an extended attribute."""
        path = backing.way_to(self._inodes.fd(inode))
        await self._calls.short(os.removexattr, path, name)

    @_answer
    async def statfs(self, ctx: RequestContext) -> pyfuse3.StatvfsData:
        """Return size and free space of the backing file system."""
        found = await self._calls.short(os.statvfs, self._inodes.fd(ROOT))
        answer = pyfuse3.StatvfsData()
        for name in _STATFS:
            setattr(answer, f"f_{name}", getattr(found, f"f_{name}"))
        return answer

    # --- Open files ---------------------------------------------------------------

    @_answer
    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        """Open a file."""
        fh = await self._calls.short(backing.open_file, self._inodes.fd(inode), flags)
        await self._settle(fh, ctx)
        return FileInfo(fh=fh, keep_cache=False)

    @_answer
    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        """Make a file and open it."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        fh, found = await self._calls.short(
            backing.create, parent, name, flags, mode, owner
        )
        with backing.closed_on_error(found.fd):
            await self._settle(fh, ctx)
        return FileInfo(fh=fh, keep_cache=False), self._entry(found)

    @_answer
    async def read(self, fh: int, off: int, size: int) -> bytes:
        """Read from a file, when the gate lets it."""
        request = Request("read", size, self._applications[fh])
        came = await self._gate.enter(request)
        data = b""
        try:
            data = await self._data.short(backing.read, fh, size, off)
        finally:
            self._gate.leave(request, len(data), came)
        return data

    @_answer
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        """Write to a file, when the gate lets it."""
        request = Request("write", len(buf), self._applications[fh])
        came = await self._gate.enter(request)
        moved = 0
        try:
            moved = await self._data.short(backing.write, fh, buf, off)
        finally:
            self._gate.leave(request, moved, came)
        return moved

    @_answer
    async def flush(self, fh: int) -> None:
        """Tell errors that the backing file system keeps for close()."""
        await self._calls.short(backing.flush, fh)

    @_answer
    async def fsync(self, fh: int, datasync: bool) -> None:  # noqa: FBT001 - pyfuse3's
        """Return when a file is on stable storage; begin when the gate lets it."""
        request = Request("sync", 0, self._applications[fh])
        came = await self._gate.enter(request)
        try:
            await self._data.long(backing.sync, fh, data_only=datasync)
        finally:
            self._gate.leave(request, 0, came)

    @_answer
    async def release(self, fh: int) -> None:
        """Close a file."""
        del self._applications[fh]
        await self._calls.long(os.close, fh)

    # --- Open folders -------------------------------------------------------------

    @_answer
    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        """Open a folder."""
        fd = await self._calls.short(backing.open_folder, self._inodes.fd(inode))
        self._folders[fd] = _Folder(inode, fd)
        return fd

    @_answer
    async def readdir(
        self, fh: int, start_id: int, token: pyfuse3.ReaddirToken
    ) -> None:
        """Tell names and attributes in a folder, as they were at its first entry."""
        folder = self._folders[fh]
        if start_id == 0:
            names = await self._calls.short(backing.list_names, fh)
            folder.names = [b".", b"..", *names]
        for start in range(start_id, len(folder.names), _BATCH):
            names = folder.names[start : start + _BATCH]
            try:
                batch = await self._calls.short(_find_all, fh, names)
            except OSError:
                if start == start_id:
                    raise
                # Those told before are counted: the kernel must get them. It asks on.
                return
            if not self._tell(token, folder, start, batch):
                return

    @_answer
    async def fsyncdir(self, fh: int, datasync: bool) -> None:  # noqa: FBT001
        """Return when a folder is on stable storage."""
        await self._calls.long(backing.sync, fh, data_only=datasync)

    @_answer
    async def releasedir(self, fh: int) -> None:
        """Close a folder."""
        del self._folders[fh]
        await self._calls.long(os.close, fh)

    def _tell(
        self,
        token: pyfuse3.ReaddirToken,
        folder: _Folder,
        start: int,
        batch: list[DirectoryEntry | None],
    ) -> bool:
        """Tell the kernel some entries; return whether it can take more."""
        more = True
        for index, found in enumerate(batch, start):
            if found is None:
                continue
            name = folder.names[index]
            # The number of ".." serves nobody: its own folder's is as good.
            dots = name in (b".", b"..")
            number = folder.number if dots else self._inodes.remember(*found)
            if dots:
                os.close(found.fd)
            entry = _attributes(number, found.status)
            more = more and pyfuse3.readdir_reply(token, name, entry, index + 1)
            if not more and not dots:
                self._inodes.forget(number, 1)
        return more

    async def _settle(self, fh: int, ctx: RequestContext) -> None:
        """Give a file that has just been opened to its application, or close it."""
        with backing.closed_on_error(fh):
            caller = FileOpener(ctx.pid, ctx.uid, fh, self._inodes.fd(ROOT))
            self._applications[fh] = await self._bind(caller)

    def _entry(self, found: DirectoryEntry) -> EntryAttributes:
        """Return a file as the answer to a look-up, and count it."""
        return _attributes(self._inodes.remember(*found), found.status)


def _find_all(folder: int, names: list[bytes]) -> list[DirectoryEntry | None]:
    """Return the files of some names; None for those that are gone or broken."""
    with ExitStack() as on_error:
        found = [_find(folder, name, on_error) for name in names]
        on_error.pop_all()
    return found


def _find(folder: int, name: bytes, on_error: ExitStack) -> DirectoryEntry | None:
    try:
        found = backing.find(folder, name)
    except OSError as error:
        if error.errno in _EXHAUSTED:
            raise
        return None
    on_error.callback(os.close, found.fd)
    return found


def _owner(ctx: RequestContext) -> Owner:
    return Owner(ctx.uid, ctx.gid)


def _changes(attr: EntryAttributes, fields: SetattrFields) -> Changes:
    return Changes(
        mode=attr.st_mode if fields.update_mode else None,
        uid=attr.st_uid if fields.update_uid else None,
        gid=attr.st_gid if fields.update_gid else None,
        size=attr.st_size if fields.update_size else None,
        atime_ns=attr.st_atime_ns if fields.update_atime else None,
        mtime_ns=attr.st_mtime_ns if fields.update_mtime else None,
    )


def _attributes(number: int, status: os.stat_result) -> EntryAttributes:
    entry = EntryAttributes()
    entry.st_ino = number
    entry.generation = 0
    entry.entry_timeout = entry.attr_timeout = _TIMEOUT_S
    entry.st_mode = status.st_mode
    entry.st_nlink = status.st_nlink
    entry.st_uid = status.st_uid
    entry.st_gid = status.st_gid
    entry.st_rdev = status.st_rdev
    entry.st_size = status.st_size
    entry.st_blksize = status.st_blksize
    entry.st_blocks = status.st_blocks
    entry.st_atime_ns = status.st_atime_ns
    entry.st_mtime_ns = status.st_mtime_ns
    entry.st_ctime_ns = status.st_ctime_ns
    return entry
