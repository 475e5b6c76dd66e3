# SPDX-License-Identifier: MIT
"""Files that the agent shares with programs, and futexes in them.

Pages and bells are such files. A shared file belongs to the user of the programs, who
can truncate it; a process that then touches its mapping is killed (SIGBUS). Therefore
the agent reads and writes it with ``pread`` and ``pwrite``, and uses the mapping only
for futex addresses, which the kernel checks. A damaged file raises `SharedFileError`.
Its user can also make it longer: `SharedFile.cut` gives that space back.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from ctypes import Structure, c_int, c_long, c_uint32, c_uint64, c_void_p
from mmap import MAP_SHARED, PROT_READ, PROT_WRITE
from pathlib import Path
from typing import Any, Final, Self

from penstock.errors import InputError

__all__ = ["MOST_FUTEXES", "SharedFile", "SharedFileError", "wait_for_any", "wake"]

_FUTEX_WAIT: Final = 0
_FUTEX_WAKE: Final = 1
_SYS_FUTEX: Final = {"x86_64": 202, "aarch64": 98}.get(os.uname().machine)
#: The same on all architectures; since Linux 5.16.
_SYS_FUTEX_WAITV: Final = 449
#: FUTEX2_SIZE_U32: the futex is a 32-bit word, which other processes may share.
_SHARED_WORD: Final = 2


class SharedFileError(InputError):
    """A page or a bell was damaged, by its user or by a full disk."""


class SharedFile:
    """A file of a fixed size that is open and mapped; use `create` or `open`.

    If the file is removed, this object and the processes that map it can still use it.
    """

    def __init__(self, path: Path, descriptor: int, size_bytes: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size_bytes = size_bytes
        self._blocks = os.fstat(descriptor).st_blocks
        self.address = _map(descriptor, size_bytes)
        """Where the file is mapped: only for futexes, reading it may raise SIGBUS."""

    @classmethod
    def create(
        cls,
        path: Path,
        size_bytes: int,
        kind: str,
        take_spare: Callable[[Path, int], bool] = lambda _path, _size_bytes: False,
    ) -> Self:
        """Create a file of zeros that only this user can open.

        Errors call it by its `kind`, such as ``page``. If there is no room for it,
        `take_spare` may give the path to a file that was prepared.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            with ExitStack() as undo:
                descriptor = os.open(path, flags, 0o600)
                undo.callback(os.close, descriptor)
                undo.callback(path.unlink)
                # Allocate the blocks now: on a full disk, writing to the mapping of a
                # file with a hole would kill the process.
                os.posix_fallocate(descriptor, 0, size_bytes)
                shared = cls(path, descriptor, size_bytes)
                undo.pop_all()
        except OSError as error:
            if error.errno == errno.ENOSPC and take_spare(path, size_bytes):
                return cls.open(path, size_bytes, kind)
            raise _unmappable(path, error, kind) from error
        return shared

    @classmethod
    def open(cls, path: Path, size_bytes: int, kind: str) -> Self:
        """Open an existing file; errors call it by its `kind`, such as ``page``.

        One that is too long is cut to its size.
        """
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with ExitStack() as undo:
            try:
                descriptor = os.open(path, flags)
                undo.callback(os.close, descriptor)
                _refuse_other_files(path, os.fstat(descriptor), size_bytes, kind)
                # Also blocks behind the end, which its user may have allocated.
                os.ftruncate(descriptor, size_bytes)
                shared = cls(path, descriptor, size_bytes)
            except OSError as error:
                raise _unmappable(path, error, kind) from error
            undo.pop_all()
        return shared

    @classmethod
    def open_to_remove(cls, path: Path, size_bytes: int) -> Self | None:
        """Open a file of any length and contents, cut to this size; None: cannot."""
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        with suppress(OSError), ExitStack() as undo:
            descriptor = os.open(path, flags)
            undo.callback(os.close, descriptor)
            # Other files than regular ones have no length to set.
            os.ftruncate(descriptor, size_bytes)
            shared = cls(path, descriptor, size_bytes)
            undo.pop_all()
            return shared
        return None

    def read(self, size_bytes: int, offset: int = 0) -> bytes:
        """Return a part of the file; raise `SharedFileError` if it was truncated."""
        try:
            data = os.pread(self._descriptor, size_bytes, offset)
        except OSError as error:
            raise self.damaged(error.strerror or str(error)) from None
        if len(data) < size_bytes:
            raise self.damaged("the file was truncated")
        return data

    def write(self, offset: int, words: Any) -> None:
        """Write `words`, a ctypes object, at an offset."""
        try:
            os.pwrite(self._descriptor, words, offset)
        except OSError as error:
            raise self.damaged(error.strerror or str(error)) from None

    def damaged(self, reason: str) -> SharedFileError:
        """Return the error that says why the file cannot be used."""
        remedy = "its user or another version of penstock has changed it; remove it"
        return SharedFileError(reason, where=str(self.path), remedy=remedy)

    @property
    def status(self) -> os.stat_result:
        """The status of the file."""
        return os.fstat(self._descriptor)

    def cut(self) -> bool:
        """Give back the space that its user has added; return True if that is any.

        Space may be allocated without a change of the size (``fallocate``). A file
        system may also use more blocks for the same bytes: its user did not add these.
        """
        status = self.status
        if status.st_size <= self._size_bytes and status.st_blocks <= self._blocks:
            return False
        with suppress(OSError):
            os.ftruncate(self._descriptor, self._size_bytes)
        is_longer = status.st_size > self._size_bytes
        return is_longer or self.status.st_blocks < status.st_blocks

    def take_from_user(self) -> None:
        """Become the owner of the file: its user cannot open it any more.

        Neither by another link, nor by ``/proc/self/fd`` from a descriptor that was
        opened without access (``O_PATH``): its user may have allowed all users to
        write. Without permissions, access control lists give none, either.
        """
        os.fchown(self._descriptor, os.geteuid(), -1)
        os.fchmod(self._descriptor, 0)

    @property
    def is_open_elsewhere(self) -> bool:
        """True if another process has the file open or mapped for writing, or a link.

        For a removed file that is this user's. The kernel grants a lease for writing
        only if nobody else writes. Where the file system has no leases, links count.
        """
        if self.status.st_nlink > 0:
            return True
        try:
            # Nobody is to break the lease; if so, a signal that does no harm says it.
            fcntl.fcntl(self._descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            return error.errno == errno.EAGAIN
        return False

    def duplicate(self) -> SharedFile:
        """Return another object for the same file, to be closed by itself."""
        descriptor = fcntl.fcntl(self._descriptor, fcntl.F_DUPFD_CLOEXEC, 0)
        with ExitStack() as undo:
            undo.callback(os.close, descriptor)
            twin = SharedFile(self.path, descriptor, self._size_bytes)
            undo.pop_all()
        twin._blocks = self._blocks
        return twin

    def close(self) -> None:
        """Unmap and close the file; it stays where it is."""
        if self.address:
            _LIBC.munmap(c_void_p(self.address), ctypes.c_size_t(self._size_bytes))
            os.close(self._descriptor)
            # Another file may get the number of the descriptor.
            self.address, self._descriptor = 0, -1


# --- The mapping ----------------------------------------------------------------------

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = c_void_p
_LIBC.mmap.argtypes = (c_void_p, ctypes.c_size_t, c_int, c_int, c_int, c_long)


def _map(descriptor: int, size_bytes: int) -> int:
    """Map a file; unlike `mmap.mmap`, this keeps no second descriptor open."""
    access = PROT_READ | PROT_WRITE
    address = _LIBC.mmap(None, size_bytes, access, MAP_SHARED, descriptor, 0)
    if address in (None, c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(address)


def _unmappable(path: Path, error: OSError, kind: str) -> InputError:
    return InputError(
        f"cannot map the {kind}: {os.strerror(error.errno or 0)}",
        where=str(path),
        remedy=_REMEDIES.get(error.errno or 0, "check the path"),
    )


_REMEDIES: Final = {
    errno.EEXIST: "remove it, unless another agent serves it",
    errno.ENOENT: "create its folder first",
    errno.EACCES: "it belongs to another user",
    errno.ENOSPC: "free some space",
}


def _refuse_other_files(
    path: Path, status: os.stat_result, size_bytes: int, kind: str
) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_size < size_bytes:
        raise InputError(
            f"not a {kind}: a {kind} is a regular file of {size_bytes} bytes",
            where=str(path),
            remedy="remove it",
        )


# --- Futexes --------------------------------------------------------------------------


class _Timespec(Structure):
    _fields_ = (("seconds", c_long), ("nanoseconds", c_long))


class _FutexToWaitFor(Structure):
    """``struct futex_waitv``."""

    _fields_ = (
        ("value", c_uint64),
        ("address", c_uint64),
        ("flags", c_uint32),
        ("reserved", c_uint32),
    )


def _timespec(time_s: float) -> _Timespec:
    return _Timespec(int(time_s), round(time_s % 1.0 * 1e9))


def wake(address: int) -> None:
    """Wake all who wait for the futex at an address."""
    # Errors are ignored, for both sides also look again after a time. On a truncated
    # file the kernel returns an error and sends no signal.
    if _SYS_FUTEX is not None:
        _LIBC.syscall(
            c_long(_SYS_FUTEX),
            c_void_p(address),
            c_long(_FUTEX_WAKE),
            c_long(2**31 - 1),
            None,
        )


def _can_wait_for_many() -> bool:
    _LIBC.syscall(c_long(_SYS_FUTEX_WAITV), None, c_long(0), c_long(0), None, c_long(0))
    # The kernel has the call if it complains about the arguments only.
    return ctypes.get_errno() == errno.EINVAL


#: How many futexes one thread can wait for.
MOST_FUTEXES: Final = 128 if _can_wait_for_many() else 1


def wait_for_any(futexes: Sequence[tuple[int, int]], timeout_s: float) -> int | None:
    """Sleep until one of the futexes is woken, at most `timeout_s` (s).

    A futex is given by its address and the value that it is known to have; if it has
    another value, return at once. Also returns at once if an address is not mapped.

    Return the index of one that was woken; None: none was.
    """
    woken = -1
    if MOST_FUTEXES > 1:
        words = (_FutexToWaitFor * len(futexes))(
            *(
                _FutexToWaitFor(value, address, _SHARED_WORD)
                for address, value in futexes
            )
        )
        woken = _LIBC.syscall(
            c_long(_SYS_FUTEX_WAITV),
            words,
            c_long(len(futexes)),
            c_long(0),
            ctypes.byref(_timespec(time.monotonic() + timeout_s)),
            c_long(time.CLOCK_MONOTONIC),
        )
    elif _SYS_FUTEX is not None:
        ((address, value),) = futexes
        woken = _LIBC.syscall(
            c_long(_SYS_FUTEX),
            c_void_p(address),
            c_long(_FUTEX_WAIT),
            c_long(value),
            ctypes.byref(_timespec(timeout_s)),
        )
    else:
        time.sleep(timeout_s)
    return woken if woken >= 0 else None
