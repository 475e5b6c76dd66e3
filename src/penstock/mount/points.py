# SPDX-License-Identifier: MIT
"""Mount points: read the mount table, check folders, unmount.

The mount table is ``/proc/self/mountinfo``, which can be read even if the process
behind a mount hangs or has ended.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import InputError
from penstock.kernel_text import MOUNT_TABLE, mount_table

__all__ = [
    "TYPE",
    "MountTableEntry",
    "check_folders",
    "detach_stale",
    "folder_id",
    "has_ended",
    "mounted_at",
    "penstock_mount_at",
    "unmount",
    "why_another",
    "why_replaced",
]

#: The file system type of penstock mounts in the mount table.
TYPE: Final = "fuse.penstock"
_MOUNTS: Final = MOUNT_TABLE
#: Flags of umount2(2).
_DETACH, _NOFOLLOW = 2, 8
#: Longest wait for an answer of a mount that may hang.
_ANSWER_S: Final = 2.0
#: Longest wait for fusermount3.
_TIMEOUT_S: Final = 30.0


class MountTableEntry(NamedTuple):
    """A line of the mount table."""

    point: str
    device: str
    """``major:minor``, unique among all mounts."""
    kind: str
    """File system type."""
    user_id: int | None = None
    """The user who has mounted it; None: the file system does not say."""


def mounted_at(path: str) -> MountTableEntry | None:
    """Return the topmost mount at a path; None if nothing is mounted there."""
    entry = None
    for each in mount_table(_MOUNTS):
        if each.point == path:
            user = _user_id(each.options)
            entry = MountTableEntry(path, each.device, each.kind, user)
    return entry


def penstock_mount_at(path: str) -> MountTableEntry:
    """Return the penstock mount at a path; raise `InputError` if there is none."""
    entry = mounted_at(_absolute(path))
    if entry is None or entry.kind != TYPE:
        raise InputError(
            "is not a penstock mount",
            where=path,
            remedy=f"findmnt -t {TYPE} lists the mounts",
        )
    return entry


def _user_id(options: str) -> int | None:
    """Return the user among the options of a FUSE file system."""
    found = re.search(r"(?:^|,)user_id=(\d+)(?:,|$)", options)
    return int(found[1]) if found else None


def detach_stale(point: str) -> MountTableEntry | None:
    """Detach a penstock mount whose process has ended without unmounting.

    Returns what was detached; None: nothing.
    """
    path = _absolute(point)
    occupant = mounted_at(path)
    if occupant is None or occupant.kind != TYPE or not has_ended(path):
        return None
    # If this fails, `check_folders` reports that the mount point is in use.
    with suppress(OSError):
        unmount(path, lazy=True)
        return occupant
    return None


def check_folders(backing: str, point: str) -> tuple[str, str]:
    """Return both folders as absolute paths; raise `InputError` if unusable."""
    occupant = mounted_at(_absolute(point))
    if occupant is not None:
        raise _occupied_error(point, occupant)
    folder, target = _existing_folder(backing), _existing_folder(point)
    common = os.path.commonpath([folder, target])
    if common in (folder, target):
        raise InputError(
            f"lies inside {backing}, or contains it",
            where=point,
            remedy="choose another mount point",
        )
    return folder, target


def unmount(path: str, *, lazy: bool = False) -> None:
    """Unmount; with `lazy` detach a mount that is in use.

    Raises OSError: EBUSY if the mount is in use, ETIMEDOUT if fusermount3 hangs.
    """
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        flags = _NOFOLLOW | (_DETACH if lazy else 0)
        if libc.umount2(os.fsencode(path), flags) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
        return
    command = ["fusermount3", "-u", *(["-z"] if lazy else []), "--", path]
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program
            command,
            capture_output=True,
            text=True,
            # A path may be any bytes.
            errors="backslashreplace",
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), path) from None
    if done.returncode != 0:
        raise OSError(errno.EBUSY, done.stderr.strip() or "cannot be unmounted", path)


def _occupied_error(point: str, occupant: MountTableEntry) -> InputError:
    """Return the error for a mount point that is in use."""
    return InputError(
        f"is already a mount point ({occupant.kind})",
        where=point,
        remedy="unmount it first, or choose another mount point",
    )


def has_ended(path: str) -> bool:
    """Return True if the process behind a FUSE mount has ended.

    A mount that hangs does not hold this up.
    """
    found = _stat_in_time(path)
    return isinstance(found, OSError) and found.errno == errno.ENOTCONN


def folder_id(status: os.stat_result) -> str:
    """Return ``DEVICE:INODE``, which no other folder has while this one is there."""
    return f"{status.st_dev}:{status.st_ino}"


def why_replaced(path: str, mounted_id: str) -> str:
    """Return why a path is not the folder that was mounted from there; "": it is.

    If a file system does not answer, nothing is known, and nothing is said.
    """
    return why_another(_stat_in_time(path), mounted_id) if mounted_id else ""


def why_another(found: os.stat_result | OSError | None, mounted_id: str) -> str:
    """Return why what was found at a path is not the mounted folder; "": it is."""
    if isinstance(found, FileNotFoundError | NotADirectoryError):
        return "was removed or renamed"
    if isinstance(found, os.stat_result) and folder_id(found) != mounted_id:
        return "was replaced by another folder"
    return ""


def _stat_in_time(path: str) -> os.stat_result | OSError | None:
    """Return the status of a file, or why there is none; None: no answer in time."""
    found: list[os.stat_result | OSError] = []

    def look() -> None:
        try:
            found.append(Path(path).stat())
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_ANSWER_S)
    return found[0] if found else None


def _existing_folder(path: str) -> str:
    """Return the absolute path of a folder; raise `InputError` if it is not one."""
    try:
        resolved = Path(path).resolve(strict=True)
        if resolved.is_dir():
            return str(resolved)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot be used: {reason}", where=path, remedy="give an existing folder"
        ) from None
    raise InputError("is not a folder", where=path, remedy="give a folder")


def _absolute(path: str) -> str:
    """Return an absolute path without touching what is mounted at its end."""
    parent, name = os.path.split(str(Path(path).absolute()))
    if name in ("", ".."):
        return os.path.realpath(path)
    return str(Path(os.path.realpath(parent)) / name)
