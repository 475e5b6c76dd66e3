# SPDX-License-Identifier: MIT
"""Read text that the kernel writes: files of /proc, among them the table of mounts.

Users choose parts of this text: names of processes, control groups and mount points may
have any bytes. The kernel ends a line with a line feed and separates the fields of the
mount table with a blank; it escapes only these where a name has them. Python's text
mode and `str.splitlines` also end lines at carriage returns and other characters, and
`str.split` separates at more than blanks: so a user could add lines and fields that the
kernel has not written, and names that are not UTF-8 would be errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["MOUNT_TABLE", "MountEntry", "kernel_lines", "mount_table"]

MOUNT_TABLE: Final = Path("/proc/self/mountinfo")
_ESCAPE: Final = re.compile(rb"\\([0-7]{3})")
#: Fields of a line of the mount table before those that may be missing; see proc(5).
_FIRST_FIELDS: Final = 6


class MountEntry(NamedTuple):
    """A line of the mount table."""

    device: str
    """``major:minor``, unique among all mounts."""
    root: str
    """Folder of the file system that is mounted."""
    point: str
    """Where it is mounted."""
    kind: str
    """File system type."""
    source: str
    options: str
    """Options of the file system, separated by commas."""


def kernel_lines(text: bytes) -> list[str]:
    """Return the lines of a file of /proc; names are decoded as those of files."""
    return os.fsdecode(text).removesuffix("\n").split("\n") if text else []


def mount_table(path: Path = MOUNT_TABLE) -> Iterator[MountEntry]:
    """Yield the mounts of this process in the order of the table.

    Lines that are no mounts are left out. Raises `OSError` if it cannot be read.
    """
    for line in path.read_bytes().split(b"\n"):
        fields = line.split(b" ")
        try:
            behind = fields.index(b"-", _FIRST_FIELDS) + 1
            kind, source, options = map(_unescaped, fields[behind : behind + 3])
        except ValueError:
            continue
        root, point = map(_unescaped, fields[3:5])
        yield MountEntry(os.fsdecode(fields[2]), root, point, kind, source, options)


def _unescaped(field: bytes) -> str:
    r"""Return a field in which escapes such as ``\040`` are decoded."""
    if b"\\" in field:
        field = _ESCAPE.sub(lambda octal: bytes([int(octal[1], 8) & 0xFF]), field)
    return os.fsdecode(field)
