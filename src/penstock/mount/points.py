# SPDX-License-Identifier: MIT
"""Mount points: what is mounted where, whether something can be, and unmounting.

Read from ``/proc/self/mountinfo``, which answers even if the process behind a mount
hangs or is gone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import InputError

__all__ = [
    "TYPE",
    "Mounted",
    "check_folders",
    "mounted_at",
    "own_mount",
    "unmount",
    "widen",
]

#: The file system type that the kernel shows.
TYPE: Final = "fuse.penstock"
_MOUNTS: Final = Path("/proc/self/mountinfo")
#: Where the kernel shows and takes settings of FUSE connections.
_CONNECTIONS: Final = Path("/sys/fs/fuse/connections")
#: Flags of umount2(2).
_DETACH, _NOFOLLOW = 2, 8
#: Longest wait for fusermount3 (s).
_LIMIT_S: Final = 30.0


class Mounted(NamedTuple):
    """A line of the mount table."""

    point: str
    device: str
    """``major:minor``, unique among all that is mounted."""
    kind: str
    """File system type."""


def mounted_at(path: str) -> Mounted | None:
    """Return what is mounted at a path, the topmost if there are several."""
    found = None
    for line in _MOUNTS.read_text(errors="surrogateescape").splitlines():
        fields = line.split(" ")
        if _unescaped(fields[4]) == path:
            kind = fields[fields.index("-") + 1]
            found = Mounted(path, fields[2], kind)
    return found


def own_mount(path: str) -> Mounted:
    """Return the penstock mount at a path."""
    found = mounted_at(_normal(path))
    if found is None or found.kind != TYPE:
        raise InputError("is not a penstock mount", where=path, remedy="see findmnt")
    return found


def check_folders(backing: str, point: str) -> tuple[str, str]:
    """Return both folders as absolute paths, or say why they cannot be mounted."""
    taken = mounted_at(_normal(point))
    if taken is not None:
        raise _taken(point, taken)
    folder, target = _folder(backing), _folder(point)
    common = os.path.commonpath([folder, target])
    if common in (folder, target):
        raise InputError(
            f"and {backing} lie one inside the other",
            where=point,
            remedy="mount at a folder elsewhere",
        )
    return folder, target


def unmount(path: str, *, lazy: bool = False) -> None:
    """Unmount; `OSError` (EBUSY) if it is in use, unless `lazy`: then detach it."""
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
            command, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), path) from None
    if done.returncode != 0:
        raise OSError(errno.EBUSY, done.stderr.strip() or "cannot be unmounted", path)


def widen(device: str, requests: int, connections: Path = _CONNECTIONS) -> None:
    """Let the kernel have so many requests under way that no program waits for.

    Those are what it reads ahead and writes back. Of them it sends only a dozen at a
    time, whosever they are: who reads much would hold up all others in the kernel,
    where no scheduler sees it. Where this cannot be set, that remains.
    """
    folder = connections / device.partition(":")[2]
    for name in ("max_background", "congestion_threshold"):
        with suppress(OSError):
            (folder / name).write_text(str(requests))


def _taken(point: str, taken: Mounted) -> InputError:
    if taken.kind == TYPE and _is_stale(point):
        return InputError(
            "is the stale mount of a penstock that has ended without unmounting",
            where=point,
            remedy=f"penstock mount --unmount {point}",
        )
    return InputError(
        f"has something mounted already ({taken.kind})",
        where=point,
        remedy="unmount it first, or mount elsewhere",
    )


def _is_stale(path: str) -> bool:
    try:
        Path(path).stat()
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def _folder(path: str) -> str:
    try:
        found = Path(path).resolve(strict=True)
        if found.is_dir():
            return str(found)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot be used: {reason}", where=path, remedy="give a folder that exists"
        ) from None
    raise InputError("is not a folder", where=path, remedy="give a folder")


def _normal(path: str) -> str:
    """Return an absolute path; what is mounted at its end is not touched."""
    parent, name = os.path.split(str(Path(path).absolute()))
    if name in ("", ".."):
        return os.path.realpath(path)
    return str(Path(os.path.realpath(parent)) / name)


def _unescaped(text: str) -> str:
    r"""Return a path of the mount table, where e.g. a space is ``\040``."""
    data = re.sub(
        rb"\\([0-7]{3})",
        lambda octal: bytes([int(octal[1], 8)]),
        text.encode(errors="surrogateescape"),
    )
    return os.fsdecode(data)
