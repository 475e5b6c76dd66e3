# SPDX-License-Identifier: MIT
# ruff: noqa: ARG002 - the arguments of the handlers are pyfuse3's
"""The FUSE file system: answers kernel requests from the backing folder.

Every request is a task of the event loop; `calls` prevents a slow call to the backing
file system from blocking other requests. The kernel checks permissions and access
control lists (``default_permissions``) and manages locks. The write-back cache is off,
so that a writing program is held up by the limit. Pages that were read stay in the
kernel's cache until the next open().

A file belongs to one application from open() to close(), because later requests carry
no process. Reads, writes and syncs wait in the gate, in the queue of that application.
Requests for names and attributes do not wait in the gate and have their own threads:
meanwhile the kernel locks the folder for all applications, so a request that waits for
its share would block the others.

Errors of the backing file system are returned to the program unchanged. Any other error
is a bug: it is logged and returned as EIO, and the mount goes on.
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

import outcome
import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FileInfo, RequestContext, SetattrFields

from penstock.mount.filesystem import backing
from penstock.mount.filesystem.backing import AttributeChanges, DirectoryEntry, Owner
from penstock.mount.filesystem.calls import CallRunner
from penstock.mount.filesystem.inodes import ROOT, InodeTable
from penstock.mount.gate import Gate
from penstock.mount.rules import FileOpener
from penstock.qos import Request

__all__ = ["PassThrough"]

_LOG: Final = logging.getLogger("penstock.mount")
#: How long the kernel may cache names and attributes.
_CACHE_S: Final = 1.0
#: Entries of a folder that are looked up in one call.
_BATCH: Final = 32
#: Errors that concern this process (out of descriptors or memory), not one name.
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})

_STATFS: Final = (
    *("bsize", "frsize", "blocks", "bfree", "bavail"),
    *("files", "ffree", "favail", "namemax"),
)
_CAPABILITY: Final = b"security.capability"

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(slots=True)
class _OpenFolder:
    """An open folder, and its names when it was read from the beginning."""

    number: int
    fd: int
    names: list[bytes] = field(default_factory=list)


def _answer(
    handler: Callable[_P, Coroutine[Any, Any, _T]],
) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Count a request, and turn its errors into error numbers for the kernel.

    The only exception that pyfuse3 allows is FUSEError; any other would end the mount
    for all programs. So the result of the handler is captured as a value.
    """
    name = handler.__name__

    @wraps(handler)
    async def answered(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        mount: Any = args[0]
        mount.counts[name] += 1
        result = await outcome.acapture(handler, *args, **kwargs)
        if isinstance(result, outcome.Value):
            return result.value
        raise _kernel_error(name, result.error) from None

    return answered


def _kernel_error(name: str, error: BaseException) -> BaseException:
    """Return the exception to raise for a failed request.

    OSError: its number. Another Exception: a bug, logged and answered with EIO. Signals
    to the event loop (cancellation, interrupt) are not errors and pass unchanged.
    """
    if not isinstance(error, Exception):
        return error
    number = errno.EIO
    if isinstance(error, OSError):
        number = error.errno or errno.EIO
    else:
        _LOG.error("request %s failed", name, exc_info=error)
    answer: BaseException = pyfuse3.FUSEError(number)
    return answer


class PassThrough(pyfuse3.Operations):
    """The file system of a mount.

    Parameters
    ----------
    root_fd
        Descriptor of the backing folder.
    gate
        Holds up reads, writes and syncs.
    classify
        Returns the application that owns an opened file.
    """

    supports_dot_lookup = False
    enable_writeback_cache = False
    enable_acl = True

    def __init__(
        self,
        root_fd: int,
        gate: Gate,
        classify: Callable[[FileOpener], Awaitable[str]],
    ) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        """Number of requests, by name."""
        self._inodes = InodeTable(root_fd)
        self._gate = gate
        self._classify = classify
        #: Open file -> its application.
        self._applications: dict[int, str] = {}
        self._folders: dict[int, _OpenFolder] = {}
        #: Files without capabilities, and until when this is cached: the kernel asks
        #: before every write.
        self._without_capability: dict[int, float] = {}
        self._calls = CallRunner()
        self._data_calls = CallRunner()

    def reassign(self, new_application: Callable[[str], str]) -> None:
        """Assign open files to other applications."""
        for fh, name in self._applications.items():
            self._applications[fh] = new_application(name)

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
        """Look up a name in a folder."""
        parent = self._inodes.fd(parent_inode)
        return self._entry(await self._calls.inline(backing.look_up, parent, name))

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        """Remove files that the kernel no longer knows."""
        for number, lookups in inode_list:
            self._without_capability.pop(number, None)
            self._inodes.forget(number, lookups)

    @_answer
    async def readlink(self, inode: int, ctx: RequestContext) -> bytes:
        """Return the target of a symbolic link."""
        return await self._calls.inline(backing.read_symlink, self._inodes.fd(inode))

    @_answer
    async def mknod(
        self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: RequestContext
    ) -> EntryAttributes:
        """Create a file, a pipe, a socket or a device."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        return self._entry(
            await self._calls.inline(backing.make_node, parent, name, mode, rdev, owner)
        )

    @_answer
    async def mkdir(
        self, parent_inode: int, name: bytes, mode: int, ctx: RequestContext
    ) -> EntryAttributes:
        """Create a folder."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        return self._entry(
            await self._calls.inline(backing.make_folder, parent, name, mode, owner)
        )

    @_answer
    async def symlink(
        self, parent_inode: int, name: bytes, target: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        """Create a symbolic link."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        return self._entry(
            await self._calls.inline(backing.make_symlink, parent, name, target, owner)
        )

    @_answer
    async def link(
        self, inode: int, new_parent_inode: int, new_name: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        """Create a hard link."""
        fd, parent = self._inodes.fd(inode), self._inodes.fd(new_parent_inode)
        return self._entry(await self._calls.inline(backing.link, fd, parent, new_name))

    @_answer
    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        """Remove a name."""
        await self._calls.in_thread(
            os.unlink, name, dir_fd=self._inodes.fd(parent_inode)
        )

    @_answer
    async def rmdir(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        """Remove an empty folder."""
        await self._calls.in_thread(
            os.rmdir, name, dir_fd=self._inodes.fd(parent_inode)
        )

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
        """Rename a file; flags are those of renameat2(2)."""
        old, new = self._inodes.fd(parent_inode_old), self._inodes.fd(parent_inode_new)
        await self._calls.in_thread(backing.rename, old, name_old, new, name_new, flags)

    # --- Attributes ---------------------------------------------------------------

    @_answer
    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        """Return the attributes of a file."""
        status = await self._calls.inline(os.fstat, self._inodes.fd(inode))
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
        run = self._calls.in_thread if fields.update_size else self._calls.inline
        status = await run(backing.set_attributes, fd, fh, _changes(attr, fields))
        return _attributes(inode, status)

    @_answer
    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        """Return an extended attribute."""
        if name == _CAPABILITY and trio.current_time() < self._without_capability.get(
            inode, 0.0
        ):
            raise OSError(errno.ENODATA, os.strerror(errno.ENODATA))
        path = backing.proc_path(self._inodes.fd(inode))
        try:
            return await self._calls.inline(os.getxattr, path, name)
        except OSError:
            if name == _CAPABILITY:
                self._without_capability[inode] = trio.current_time() + _CACHE_S
            raise

    @_answer
    async def setxattr(
        self, inode: int, name: bytes, value: bytes, ctx: RequestContext
    ) -> None:
        """Set an extended attribute."""
        path = backing.proc_path(self._inodes.fd(inode))
        self._without_capability.pop(inode, None)
        await self._calls.inline(os.setxattr, path, name, value)

    @_answer
    async def listxattr(self, inode: int, ctx: RequestContext) -> Sequence[bytes]:
        """Return the names of all extended attributes."""
        path = backing.proc_path(self._inodes.fd(inode))
        return [
            os.fsencode(name) for name in await self._calls.inline(os.listxattr, path)
        ]

    @_answer
    async def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> None:
        """Remove an extended attribute."""
        path = backing.proc_path(self._inodes.fd(inode))
        await self._calls.inline(os.removexattr, path, name)

    @_answer
    async def statfs(self, ctx: RequestContext) -> pyfuse3.StatvfsData:
        """Return size and free space of the backing file system."""
        status = await self._calls.inline(os.statvfs, self._inodes.fd(ROOT))
        answer = pyfuse3.StatvfsData()
        for name in _STATFS:
            setattr(answer, f"f_{name}", getattr(status, f"f_{name}"))
        return answer

    # --- Open files ---------------------------------------------------------------

    @_answer
    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        """Open a file."""
        fh = await self._calls.inline(backing.open_file, self._inodes.fd(inode), flags)
        await self._assign(fh, ctx)
        return FileInfo(fh=fh, keep_cache=False)

    @_answer
    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        """Create and open a file."""
        parent, owner = self._inodes.fd(parent_inode), _owner(ctx)
        fh, entry = await self._calls.inline(
            backing.create, parent, name, flags, mode, owner
        )
        with backing.closed_on_error(entry.fd):
            await self._assign(fh, ctx)
        return FileInfo(fh=fh, keep_cache=False), self._entry(entry)

    @_answer
    async def read(self, fh: int, off: int, size: int) -> bytes:
        """Read from a file, after the gate."""
        request = Request("read", size, self._applications[fh])
        admitted = await self._gate.admit(request)
        data = b""
        try:
            data = await self._data_calls.inline(backing.read, fh, size, off)
        finally:
            admitted.complete(len(data))
        return data

    @_answer
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        """Write to a file, after the gate."""
        request = Request("write", len(buf), self._applications[fh])
        admitted = await self._gate.admit(request)
        moved_bytes = 0
        try:
            moved_bytes = await self._data_calls.inline(backing.write, fh, buf, off)
        finally:
            admitted.complete(moved_bytes)
        return moved_bytes

    @_answer
    async def flush(self, fh: int) -> None:
        """Return errors that the backing file system reports at close()."""
        await self._calls.inline(backing.flush, fh)

    @_answer
    async def fsync(self, fh: int, datasync: bool) -> None:  # noqa: FBT001 - pyfuse3's
        """Wait until a file is on stable storage, after the gate."""
        request = Request("sync", 0, self._applications[fh])
        admitted = await self._gate.admit(request)
        try:
            await self._data_calls.in_thread(backing.sync, fh, data_only=datasync)
        finally:
            admitted.complete(0)

    @_answer
    async def release(self, fh: int) -> None:
        """Close a file."""
        del self._applications[fh]
        await self._calls.in_thread(os.close, fh)

    # --- Open folders -------------------------------------------------------------

    @_answer
    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        """Open a folder."""
        fd = await self._calls.inline(backing.open_folder, self._inodes.fd(inode))
        self._folders[fd] = _OpenFolder(inode, fd)
        return fd

    @_answer
    async def readdir(
        self, fh: int, start_id: int, token: pyfuse3.ReaddirToken
    ) -> None:
        """Return names and attributes; the names are those at the first call."""
        folder = self._folders[fh]
        if start_id == 0:
            names = await self._calls.inline(backing.list_names, fh)
            folder.names = [b".", b"..", *names]
        for start in range(start_id, len(folder.names), _BATCH):
            names = folder.names[start : start + _BATCH]
            try:
                batch = await self._calls.inline(_look_up_all, fh, names)
            except OSError:
                if start == start_id:
                    raise
                # Earlier entries are counted as look-ups, so the kernel must get them.
                # It asks for the rest in another request.
                return
            if not self._reply_entries(token, folder, start, batch):
                return

    @_answer
    async def fsyncdir(self, fh: int, datasync: bool) -> None:  # noqa: FBT001
        """Wait until a folder is on stable storage."""
        await self._calls.in_thread(backing.sync, fh, data_only=datasync)

    @_answer
    async def releasedir(self, fh: int) -> None:
        """Close a folder."""
        del self._folders[fh]
        await self._calls.in_thread(os.close, fh)

    def _reply_entries(
        self,
        token: pyfuse3.ReaddirToken,
        folder: _OpenFolder,
        start: int,
        batch: list[DirectoryEntry | None],
    ) -> bool:
        """Pass entries to the kernel; return True if it can take more."""
        more = True
        for index, entry in enumerate(batch, start):
            if entry is None:
                continue
            name = folder.names[index]
            # No program uses the number of "..", so the folder's own will do.
            dots = name in (b".", b"..")
            number = folder.number if dots else self._inodes.remember(*entry)
            if dots:
                os.close(entry.fd)
            attributes = _attributes(number, entry.status)
            more = more and pyfuse3.readdir_reply(token, name, attributes, index + 1)
            if not more and not dots:
                self._inodes.forget(number, 1)
        return more

    async def _assign(self, fh: int, ctx: RequestContext) -> None:
        """Assign an opened file to its application; close the file on an error."""
        with backing.closed_on_error(fh):
            opener = FileOpener(ctx.pid, ctx.uid, fh, self._inodes.fd(ROOT))
            self._applications[fh] = await self._classify(opener)

    def _entry(self, entry: DirectoryEntry) -> EntryAttributes:
        """Return the attributes of a file, and count a look-up."""
        return _attributes(self._inodes.remember(*entry), entry.status)


def _look_up_all(folder: int, names: list[bytes]) -> list[DirectoryEntry | None]:
    """Return the entries of names; None for a name that is gone or unreadable."""
    with ExitStack() as on_error:
        entries = [_look_up(folder, name, on_error) for name in names]
        on_error.pop_all()
    return entries


def _look_up(folder: int, name: bytes, on_error: ExitStack) -> DirectoryEntry | None:
    try:
        entry = backing.look_up(folder, name)
    except OSError as error:
        if error.errno in _EXHAUSTED:
            raise
        return None
    on_error.callback(os.close, entry.fd)
    return entry


def _owner(ctx: RequestContext) -> Owner:
    return Owner(ctx.uid, ctx.gid)


def _changes(attr: EntryAttributes, fields: SetattrFields) -> AttributeChanges:
    return AttributeChanges(
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
    entry.entry_timeout = entry.attr_timeout = _CACHE_S
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
