# SPDX-License-Identifier: MIT
"""Calls to the backing file system: plain functions that may block.

Files are given as ``O_PATH`` descriptors and reached through ``/proc/self/fd``, never
by a path, because a path may change between two calls. A new file belongs to the user
who created it. All errors are the `OSError` of the backing file system.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

__all__ = [
    "AttributeChanges",
    "DirectoryEntry",
    "Owner",
    "closed_on_error",
    "create",
    "entry_of_open_file",
    "flush",
    "link",
    "list_names",
    "look_up",
    "make_folder",
    "make_node",
    "make_symlink",
    "open_file",
    "open_folder",
    "open_path",
    "proc_path",
    "read",
    "read_symlink",
    "rename",
    "set_attributes",
    "sync",
    "write",
]

#: Flags of open() that are not passed to the backing file. O_APPEND: the kernel gives
#: the position, and pages of a mapping must not be appended. O_DIRECT: our buffers are
#: not aligned.
_NOT_PASSED: Final = (
    os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_DIRECT | os.O_NOFOLLOW | os.O_NOCTTY
)


class Owner(NamedTuple):
    """User and group of a new file."""

    uid: int
    gid: int


class DirectoryEntry(NamedTuple):
    """An ``O_PATH`` descriptor, which the caller must close, and the file status."""

    fd: int
    status: os.stat_result


class AttributeChanges(NamedTuple):
    """New attributes; None: not changed."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime_ns: int | None = None
    mtime_ns: int | None = None


def proc_path(fd: int) -> bytes:
    """Return a path that leads to the file of a descriptor."""
    return b"/proc/self/fd/%d" % fd


# --- Names ------------------------------------------------------------------------


def open_path(path: bytes) -> int:
    """Return an ``O_PATH`` descriptor of the file at a path."""
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def look_up(parent: int, name: bytes) -> DirectoryEntry:
    """Return the file with a name in a folder."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    with closed_on_error(fd):
        return DirectoryEntry(fd, os.fstat(fd))


def list_names(folder: int) -> list[bytes]:
    """Return the names in a folder."""
    return os.listdir(proc_path(folder))  # noqa: PTH208 - names as bytes


def read_symlink(fd: int) -> bytes:
    """Return the target of a symbolic link."""
    return os.readlink(b"", dir_fd=fd)


# --- Creating ---------------------------------------------------------------------


def make_node(
    parent: int, name: bytes, mode: int, device: int, owner: Owner
) -> DirectoryEntry:
    """Create a regular file, a pipe, a socket or a device."""
    os.mknod(name, mode, device, dir_fd=parent)
    return _give_to_owner(parent, look_up(parent, name), owner)


def make_folder(parent: int, name: bytes, mode: int, owner: Owner) -> DirectoryEntry:
    """Create a folder."""
    os.mkdir(name, mode, dir_fd=parent)
    return _give_to_owner(parent, look_up(parent, name), owner)


def make_symlink(
    parent: int, name: bytes, target: bytes, owner: Owner
) -> DirectoryEntry:
    """Create a symbolic link."""
    os.symlink(target, name, dir_fd=parent)
    return _give_to_owner(parent, look_up(parent, name), owner)


def create(
    parent: int, name: bytes, flags: int, mode: int, owner: Owner
) -> tuple[int, DirectoryEntry]:
    """Create and open a regular file; return its handle and its entry."""
    open_flags = (flags & ~_NOT_PASSED) | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(name, open_flags | os.O_EXCL, mode, dir_fd=parent)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        # Another program has created the file in the backing folder: keep its owner.
        handle = os.open(name, open_flags, mode, dir_fd=parent)
        with closed_on_error(handle):
            return handle, entry_of_open_file(handle)
    with closed_on_error(handle):
        return handle, _give_to_owner(parent, entry_of_open_file(handle), owner)


def entry_of_open_file(handle: int) -> DirectoryEntry:
    """Return the entry of an open file."""
    fd = open_path(proc_path(handle))
    with closed_on_error(fd):
        return DirectoryEntry(fd, os.fstat(fd))


def link(fd: int, parent: int, name: bytes) -> DirectoryEntry:
    """Create a hard link."""
    os.link(proc_path(fd), name, dst_dir_fd=parent, follow_symlinks=True)
    return look_up(parent, name)


def rename(
    parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int
) -> None:
    """Rename a file; `flags` are those of renameat2(2)."""
    if not flags:
        os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=new_parent)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(parent, name, new_parent, new_name, flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _give_to_owner(parent: int, entry: DirectoryEntry, owner: Owner) -> DirectoryEntry:
    """Set the owner of a new file; a set-group-ID folder decides the group."""
    with closed_on_error(entry.fd):
        inherits = os.fstat(parent).st_mode & stat.S_ISGID
        gid = entry.status.st_gid if inherits else owner.gid
        if (entry.status.st_uid, entry.status.st_gid) == (owner.uid, gid):
            return entry
        path = proc_path(entry.fd)
        os.chown(path, owner.uid, gid)
        mode = stat.S_IMODE(entry.status.st_mode)
        if mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(entry.status.st_mode):
            os.chmod(path, mode)  # noqa: PTH101 - chown has cleared these bits
        return DirectoryEntry(entry.fd, os.fstat(entry.fd))


# --- Open files -------------------------------------------------------------------


def open_file(fd: int, flags: int) -> int:
    """Open a file for reading or writing."""
    return os.open(proc_path(fd), (flags & ~_NOT_PASSED) | os.O_CLOEXEC)


def open_folder(fd: int) -> int:
    """Open a folder."""
    return os.open(proc_path(fd), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def read(handle: int, size: int, position: int) -> bytes:
    """Return `size` bytes from a position; fewer only at the end of the file."""
    data = os.pread(handle, size, position)
    if not data or len(data) == size:
        return data
    parts = [data]
    while data and (left := size - sum(map(len, parts))):
        data = os.pread(handle, left, position + size - left)
        parts.append(data)
    return b"".join(parts)


def write(handle: int, data: bytes, position: int) -> int:
    """Write `data`; return the bytes written, fewer if a later part fails."""
    done = os.pwrite(handle, data, position)
    rest = memoryview(data)
    while done < len(data):
        try:
            done += os.pwrite(handle, rest[done:], position + done)
        except OSError:
            break
    return done


def sync(handle: int, *, data_only: bool) -> None:
    """Wait until the file is on stable storage."""
    if data_only:
        os.fdatasync(handle)
    else:
        os.fsync(handle)


def flush(handle: int) -> None:
    """Close a copy of a descriptor: some file systems report errors only then."""
    os.close(os.dup(handle))


# --- Attributes -------------------------------------------------------------------


def set_attributes(
    fd: int, handle: int | None, changes: AttributeChanges
) -> os.stat_result:
    """Set attributes of a file; return its new status."""
    path = proc_path(fd)
    if changes.uid is not None or changes.gid is not None:
        uid = -1 if changes.uid is None else changes.uid
        os.chown(path, uid, -1 if changes.gid is None else changes.gid)
    if changes.mode is not None:
        os.chmod(path, stat.S_IMODE(changes.mode))  # noqa: PTH101 - bytes, and faster
    if changes.size is not None:
        os.truncate(path if handle is None else handle, changes.size)
    if changes.atime_ns is not None or changes.mtime_ns is not None:
        _set_times(fd, changes)
    return os.fstat(fd)


def _set_times(fd: int, changes: AttributeChanges) -> None:
    status = os.fstat(fd)
    atime = status.st_atime_ns if changes.atime_ns is None else changes.atime_ns
    mtime = status.st_mtime_ns if changes.mtime_ns is None else changes.mtime_ns
    os.utime(proc_path(fd), ns=(atime, mtime))


@contextmanager
def closed_on_error(fd: int) -> Iterator[None]:
    """Close a descriptor if the block raises an exception."""
    with ExitStack() as on_error:
        on_error.callback(os.close, fd)
        yield
        on_error.pop_all()
