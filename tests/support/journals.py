# SPDX-License-Identifier: MIT
"""Journals made by hand, as the preload library leaves them when it is killed."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.live.staging import journal as layout
from penstock.live.staging.journal import LAYOUT, VERSION, Lock

__all__ = ["CAPACITY_BYTES", "HandMadeJournal", "Write", "applied", "birth_ns"]

#: An offset in the file and the data that are written there.
Write = tuple[int, bytes]

CAPACITY_BYTES = 4096
_HEAD_BYTES = 40
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_STATX_BTIME = 0x800
_AT_EMPTY_PATH = 0x1000


class HandMadeJournal:
    """An empty file, and a journal of it in the folder ``journals``."""

    def __init__(self, folder: Path, *, checked: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        self.file = folder / "file"
        self.file.write_bytes(b"")
        self.folder = folder / "journals"
        self.folder.mkdir(exist_ok=True)
        self.path = self.folder / "1-2.journal"
        self.writes: list[Write] = []
        status = self.file.stat()
        boot = int(_BOOT.read_text().strip().replace("-", ""), 16)
        self.header: Any = LAYOUT["struct journal_header"](
            magic=layout.MAGIC,
            version=VERSION,
            checked=checked,
            capacity=CAPACITY_BYTES,
            device=status.st_dev,
            inode=status.st_ino,
            birth_ns=birth_ns(self.file),
            boot=(boot >> 64, boot & 2**64 - 1),
            process=4242,
            path=os.fsencode(self.file),
        )
        self.ring = bytearray(CAPACITY_BYTES)
        self.save()

    def append(self, offset: int, data: bytes) -> int:
        """Commit a record, as the library does; return where in the ring it begins."""
        position: int = self.header.appended
        place = position % CAPACITY_BYTES
        head = struct.pack(
            "5Q",
            layout.RECORD_MAGIC ^ position,
            1,
            offset,
            len(data),
            zlib.crc32(data),
        )
        self.ring[place : place + _HEAD_BYTES + len(data)] = head + data
        self.header.appended = _behind(position, len(data))
        self.writes.append((offset, data))
        self.save()
        return place

    def drain_by_hand(self, count: int, *, killed: bool = False) -> None:
        """Write the first records to the file.

        A drainer that is `killed` dies before it stores how far it came.
        """
        self.file.write_bytes(applied(self.writes[:count]))
        if not killed:
            for _, data in self.writes[:count]:
                self.header.drained = _behind(self.header.drained, len(data))
                self.header.drained_bytes += len(data)
            self.header.freed = self.header.drained
            self.save()

    def change(self, **words: object) -> None:
        """Change words in the header."""
        for name, value in words.items():
            setattr(self.header, name, value)
        self.save()

    def save(self) -> None:
        """Write the journal to its file, which may be mapped."""
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.write(bytes(self.header) + bytes(self.ring))

    def move_to_part(self, part: Path) -> None:
        """Put the ring into a file of its own."""
        part.write_bytes(bytes(layout.HEADER_BYTES) + bytes(self.ring))
        inode = part.stat().st_ino
        self.change(partition=1, part=os.fsencode(part), part_inode=inode)
        os.truncate(self.path, layout.HEADER_BYTES)

    @contextlib.contextmanager
    def locked(self, lock: Lock) -> Iterator[None]:
        """Hold a lock as another process would."""
        with self.path.open("r+b") as file:
            words = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, lock, 1, 0)
            fcntl.fcntl(file.fileno(), fcntl.F_OFD_SETLK, words)
            yield

    def left_over(self) -> list[str]:
        """Return the names in the folder of journals, except the log."""
        names = sorted(path.name for path in self.folder.iterdir())
        return [name for name in names if name != "shim.log"]


def applied(writes: list[Write]) -> bytes:
    """Return what an empty file holds after these writes."""
    content = bytearray()
    for offset, data in writes:
        content += bytes(max(0, offset + len(data) - len(content)))
        content[offset : offset + len(data)] = data
    return bytes(content)


def _behind(position: int, length: int) -> int:
    return -(-(position + _HEAD_BYTES + length) // 64) * 64


# --- Times of birth -------------------------------------------------------------------


class _Statx(ctypes.Structure):
    # Only what is needed; the kernel writes 256 bytes.
    _fields_ = (
        ("mask", ctypes.c_uint32),
        ("before", ctypes.c_char * 76),
        ("birth_s", ctypes.c_int64),
        ("birth_ns", ctypes.c_uint32),
        ("after", ctypes.c_char * 164),
    )


def birth_ns(path: Path) -> int:
    """Return the birth time of a file (ns since 1970); 0 if it is not known."""
    words = _Statx()
    with path.open("rb") as file:
        ctypes.CDLL(None).statx(
            file.fileno(), b"", _AT_EMPTY_PATH, _STATX_BTIME, ctypes.byref(words)
        )
    if not words.mask & _STATX_BTIME:
        return 0
    return int(words.birth_s * 10**9 + words.birth_ns)
