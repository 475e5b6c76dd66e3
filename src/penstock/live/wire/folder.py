# SPDX-License-Identifier: MIT
"""The folder of a daemon, and its lock: one daemon per folder.

A folder may be in a place where all users make folders, such as ``/tmp``: another user
may have made it before, or a link of its name. `own_folder` makes a folder or refuses
the one that exists; ``make_memory_folder`` in ``native/stage/stage_settings.c`` has the
same rule.

The lock is a lock of the open file (``F_OFD_SETLK``), because other processes of the
same user can see it without taking it. A daemon that has locked its folder and does not
answer yet is starting: `is_locked` tells that to those who look for a daemon.

A daemon is temporary if it stops by itself, as the one that ``penstock run`` starts. It
gives way to one that is not: it is asked to stop, and its jobs continue under the new
one. The lock file holds the process id of the daemon, the start of the process, and the
word "temporary" if the daemon is; nothing after its end.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from penstock.errors import InputError, UnavailableError
from penstock.live.wire.identity import is_operator, process_start_ticks

__all__ = ["is_locked", "locked_folder", "own_folder"]

_LOCK: Final = "lock"
#: ``struct flock``: type, whence, start, length, process.
_FLOCK: Final = struct.Struct("hhqqi4x")
#: How long a daemon waits for a temporary one to stop, and between two attempts (s).
_GIVE_WAY_S: Final = 5.0
_POLL_S: Final = 0.02
#: Word in the lock file of a temporary daemon.
_TEMPORARY: Final = "temporary"
#: Open a folder, not a link to one, to look at it only.
_LOOK_FLAGS: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


def own_folder(path: Path, *, parents: bool = True) -> Path:
    """Make a folder for this user alone.

    One that exists is accepted if it belongs to this user, no other user can write to
    it, and it is not a link.

    Parameters
    ----------
    parents
        Whether to make the folders above it as well.

    Raises
    ------
    InputError
        If it cannot be made, or is not accepted.
    """
    try:
        with suppress(FileExistsError):
            if parents:
                path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(mode=0o700)
        status = _folder_status(path)
    except OSError as error:
        raise InputError(
            f"cannot be created: {error.strerror}",
            where=str(path),
            remedy="give another --folder",
        ) from None
    if status is None or status.st_uid != os.geteuid():
        raise InputError(
            "is not a folder that belongs to you",
            where=str(path),
            remedy="give another --folder",
        )
    if status.st_mode & _OTHERS_WRITE:
        raise InputError(
            "can be written by other users",
            where=str(path),
            remedy="chmod 700 it, or give another --folder",
        )
    return path


def _folder_status(path: Path) -> os.stat_result | None:
    """Return the status of a folder; None if it is a link or another file."""
    try:
        descriptor = os.open(path, _LOOK_FLAGS)
    except NotADirectoryError:
        if not path.parent.is_dir():
            raise
        return None
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def locked_folder(home: Path, *, temporary: bool) -> Iterator[None]:
    """Make the folder of a daemon and lock it; a temporary daemon there gives way.

    Raises
    ------
    UnavailableError
        If a daemon that does not give way has locked it.
    InputError
        If it cannot be made, or does not belong to this user.
    """
    path = own_folder(home) / _LOCK
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise InputError(
            f"cannot be created: {error.strerror}",
            where=str(path),
            remedy="give another --folder",
        ) from None
    try:
        _wait_for_lock(descriptor, home, temporary=temporary)
        pid = os.getpid()
        holder = f"{pid} {process_start_ticks(pid)}"
        _write(descriptor, f"{holder} {_TEMPORARY}" if temporary else holder)
        try:
            yield
        finally:
            _write(descriptor, "")
    finally:
        os.close(descriptor)


def _write(descriptor: int, text: str) -> None:
    with suppress(OSError):  # a full disk: this daemon will not give way
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def is_locked(home: Path) -> bool:
    """Return True if a daemon of this user or of root has locked this folder."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(home / _LOCK, flags)
    except OSError:
        return False
    try:
        if not is_operator(os.fstat(descriptor).st_uid):
            # Another user has made the folder; do not wait for what never answers.
            return False
        answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _lock_of(fcntl.F_WRLCK))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return int(_FLOCK.unpack(answer)[0]) != fcntl.F_UNLCK


def _lock_of(kind: int) -> bytes:
    """Return a ``struct flock`` for the whole file."""
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


def _wait_for_lock(descriptor: int, home: Path, *, temporary: bool) -> None:
    deadline_s = time.monotonic() + _GIVE_WAY_S
    asked = False
    while not _try_lock(descriptor):
        may_wait = not temporary and time.monotonic() < deadline_s
        # Once: a daemon that is ending has the lock a little longer than its entry.
        if may_wait and not asked:
            asked = _stop_temporary(descriptor)
        if not (may_wait and asked):
            raise UnavailableError(
                "another penstock serve already uses this folder",
                where=str(home),
                remedy="stop it, or give another --folder",
            )
        time.sleep(_POLL_S)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock_of(fcntl.F_WRLCK))
    except OSError:
        return False
    return True


def _stop_temporary(descriptor: int) -> bool:
    """Ask a temporary daemon that holds the lock to stop; False if it is not one."""
    words = os.pread(descriptor, 64, 0).decode(errors="replace").split()
    if len(words) != 3 or words[2] != _TEMPORARY or not words[0].isdecimal():
        return False
    # A process that has ended meanwhile has released the lock.
    with suppress(OSError):
        process = os.pidfd_open(int(words[0]))
        try:
            # Another process may have this number now.
            if words[1] == str(process_start_ticks(int(words[0]))):
                signal.pidfd_send_signal(process, signal.SIGTERM)
        finally:
            os.close(process)
    return True
