# SPDX-License-Identifier: MIT
"""Calls to the backing file system, by descriptor: plain functions that may block.

Files are given as ``O_PATH`` descriptors and reached through ``/proc/self/fd``, never
by a path that somebody may change meanwhile. New files belong to whoever made them. All
errors are the `OSError` of the backing file system.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

__all__ = [
    "Changes",
    "DirectoryEntry",
    "Owner",
    "change",
    "closed_on_error",
    "create",
    "find",
    "find_open",
    "flush",
    "hold",
    "link",
    "list_names",
    "make_folder",
    "make_node",
    "make_symlink",
    "open_file",
    "open_folder",
    "read",
    "read_symlink",
    "rename",
    "sync",
    "way_to",
    "write",
]

#: Flags of a program's open() that are not for the backing file. Appending: the kernel
#: gives the position, and pages of a mapping must not be appended. Direct: our buffers
#: are not aligned.
_NOT_PASSED: Final = (
    os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_DIRECT | os.O_NOFOLLOW | os.O_NOCTTY
)


class Owner(NamedTuple):
    """To whom a new file belongs."""

    uid: int
    gid: int


class DirectoryEntry(NamedTuple):
    """A file: an ``O_PATH`` descriptor, for the caller to close, and its status."""

    fd: int
    status: os.stat_result


class Changes(NamedTuple):
    """Attributes to be set; None: to be left."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime_ns: int | None = None
    mtime_ns: int | None = None


def way_to(fd: int) -> bytes:
    """Return a path that leads to the file that a descriptor holds."""
    return b"/proc/self/fd/%d" % fd


# --- Finding ----------------------------------------------------------------------


def hold(path: bytes) -> int:
    """Return an ``O_PATH`` descriptor of a file that a path leads to."""
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def find(parent: int, name: bytes) -> DirectoryEntry:
    """Return the file of a name in a folder."""
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    with closed_on_error(fd):
        return DirectoryEntry(fd, os.fstat(fd))


def list_names(folder: int) -> list[bytes]:
    """Return the names in a folder."""
    return os.listdir(way_to(folder))  # noqa: PTH208 - names as bytes


def read_symlink(fd: int) -> bytes:
    """Return where a symbolic link points."""
    return os.readlink(b"", dir_fd=fd)


# --- Making -----------------------------------------------------------------------


def make_node(
    parent: int, name: bytes, mode: int, device: int, owner: Owner
) -> DirectoryEntry:
    """Make a regular file, a pipe, a socket or a device."""
    os.mknod(name, mode, device, dir_fd=parent)
    return _owned(parent, find(parent, name), owner)


def make_folder(parent: int, name: bytes, mode: int, owner: Owner) -> DirectoryEntry:
    """Make a folder."""
    os.mkdir(name, mode, dir_fd=parent)
    return _owned(parent, find(parent, name), owner)


def make_symlink(
    parent: int, name: bytes, target: bytes, owner: Owner
) -> DirectoryEntry:
    """Make a symbolic link."""
    os.symlink(target, name, dir_fd=parent)
    return _owned(parent, find(parent, name), owner)


def create(
    parent: int, name: bytes, flags: int, mode: int, owner: Owner
) -> tuple[int, DirectoryEntry]:
    """Make a regular file and open it; return both descriptors."""
    wanted = (flags & ~_NOT_PASSED) | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(name, wanted | os.O_EXCL, mode, dir_fd=parent)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        # Somebody below was faster: then it is theirs.
        handle = os.open(name, wanted, mode, dir_fd=parent)
        with closed_on_error(handle):
            return handle, find_open(handle)
    with closed_on_error(handle):
        return handle, _owned(parent, find_open(handle), owner)


def find_open(handle: int) -> DirectoryEntry:
    """Return the file that a descriptor has open."""
    fd = hold(way_to(handle))
    with closed_on_error(fd):
        return DirectoryEntry(fd, os.fstat(fd))


def link(fd: int, parent: int, name: bytes) -> DirectoryEntry:
    """Give a file one more name."""
    os.link(way_to(fd), name, dst_dir_fd=parent, follow_symlinks=True)
    return find(parent, name)


def rename(
    parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int
) -> None:
    """Rename; flags are those of renameat2(2)."""
    if not flags:
        os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=new_parent)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(parent, name, new_parent, new_name, flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _owned(parent: int, found: DirectoryEntry, owner: Owner) -> DirectoryEntry:
    """Give a new file to its owner, with the folder's group if the folder says so."""
    with closed_on_error(found.fd):
        inherits = os.fstat(parent).st_mode & stat.S_ISGID
        gid = found.status.st_gid if inherits else owner.gid
        if (found.status.st_uid, found.status.st_gid) == (owner.uid, gid):
            return found
        path = way_to(found.fd)
        os.chown(path, owner.uid, gid)
        mode = stat.S_IMODE(found.status.st_mode)
        if mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(found.status.st_mode):
            os.chmod(path, mode)  # noqa: PTH101 - chown has taken these bits away
        return DirectoryEntry(found.fd, os.fstat(found.fd))


# --- Open files -------------------------------------------------------------------


def open_file(fd: int, flags: int) -> int:
    """Open a file for reading or writing."""
    return os.open(way_to(fd), (flags & ~_NOT_PASSED) | os.O_CLOEXEC)


def open_folder(fd: int) -> int:
    """Open a folder."""
    return os.open(way_to(fd), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


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
    """Write all of `data`; return how much was written before an error."""
    done = os.pwrite(handle, data, position)
    rest = memoryview(data)
    while done < len(data):
        try:
            done += os.pwrite(handle, rest[done:], position + done)
        except OSError:
            break
    return done


def sync(handle: int, *, data_only: bool) -> None:
    """Return when what was written is on stable storage."""
    if data_only:
        os.fdatasync(handle)
    else:
        os.fsync(handle)


def flush(handle: int) -> None:
    """Close a copy of a descriptor: some file systems tell errors only then."""
    os.close(os.dup(handle))


# --- Attributes -------------------------------------------------------------------


def change(fd: int, handle: int | None, changes: Changes) -> os.stat_result:
    """Set attributes of a file, open or not; return all of them."""
    path = way_to(fd)
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


def _set_times(fd: int, changes: Changes) -> None:
    now = os.fstat(fd)
    atime = now.st_atime_ns if changes.atime_ns is None else changes.atime_ns
    mtime = now.st_mtime_ns if changes.mtime_ns is None else changes.mtime_ns
    os.utime(way_to(fd), ns=(atime, mtime))


@contextmanager
def closed_on_error(fd: int) -> Iterator[None]:
    """Close a descriptor if what is done with it fails."""
    try:
        yield
    except BaseException:
        os.close(fd)
        raise
