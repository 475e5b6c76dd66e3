# SPDX-License-Identifier: MIT
"""Read the journal of one staged file: the data that are not in the file yet.

The preload library writes and drains journals; here they are only read, to be listed
and reported. The layout is that of ``native/stage/journal.h`` (a test compares
`LAYOUT` with it): a header of one page, then a ring of records, which may be in a file
of its own, the part. A position in the log
only grows; it lies in the ring at ``(position - base) % capacity``. The records between
`drained` and `appended` are to be written to the file.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from ctypes import Structure, c_char, c_uint32, c_uint64
from enum import IntEnum, IntFlag
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from penstock.errors import InputError

__all__ = [
    "FAILED",
    "LAYOUT",
    "VERSION",
    "Flag",
    "Journal",
    "Lock",
    "drained_so_far",
    "journal_paths",
    "named_writers",
    "part_of_unfinished",
]

MAGIC: Final = int.from_bytes(b"pjournal", "little")
RECORD_MAGIC: Final = int.from_bytes(b"!precord", "little")
VERSION: Final = 1
HEADER_BYTES: Final = 4096
PATH_BYTES: Final = 3072
PART_PATH_BYTES: Final = 640
RECORD_ALIGN: Final = 64
#: The most data that one record, or one step of a drain, has.
RECORD_MAX_BYTES: Final = 4 << 20
#: Ends the name of a journal that was put aside after an error.
FAILED: Final = ".failed"

#: What to do if the part of a journal cannot be read.
_PART_REMEDY: Final = (
    "bring its storage target back; until then the file cannot be opened to be "
    "written. To give up the data in the part, remove the journal"
)
#: Numbers of errors of Linux end here.
_MOST_ERRORS: Final = 4095
#: `named_writers` looks at no more journals than this.
_MOST_JOURNALS: Final = 100
#: `journal_paths` looks at no more files than this.
_MOST_FILES: Final = 100_000
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Lock(IntEnum):
    """Bytes of a journal that are locked, by open file description."""

    #: Held for one step of a drain.
    DRAIN = 0
    #: Held by the writer as long as it lives.
    LIFE = 1


class Flag(IntFlag):
    """Marks that processes leave for each other in a journal."""

    #: Another process uses the file: the writer stages it no longer.
    WRITE_THROUGH = 1
    #: The program wants to be called before a drain. While it lives it drains itself;
    #: only a process that opens the file drains it too.
    CALLS_BACK = 4
    #: The journal was put aside after an error: drains that have begun stop.
    PUT_ASIDE = 8


class _RecordHead(Structure):
    _fields_ = (
        ("mark", c_uint64),
        ("sequence", c_uint64),
        ("offset", c_uint64),
        ("length", c_uint64),
        ("checksum", c_uint64),
    )


class _Header(Structure):
    _fields_ = (
        ("magic", c_uint64),
        ("version", c_uint32),
        ("checked", c_uint32),
        ("capacity", c_uint64),
        ("device", c_uint64),
        ("inode", c_uint64),
        ("birth_ns", c_uint64),
        ("boot", c_uint64 * 2),
        ("process", c_uint64),
        ("started", c_uint64),
        ("durable", c_uint32),
        ("partition", c_uint32),
        ("page", c_uint64 * 2),
        ("part_inode", c_uint64),
        ("unused", c_uint64 * 2),
        ("base", c_uint64),
        ("appended", c_uint64),
        ("sequence", c_uint64),
        ("end", c_uint64),
        ("flags", c_uint32),
        ("error", c_uint32),
        ("unused_writer", c_uint64 * 3),
        ("drained", c_uint64),
        ("freed", c_uint64),
        ("drained_bytes", c_uint64),
        ("file_changed_ns", c_uint64),
        ("merger", c_uint64),
        ("merger_started", c_uint64),
        ("unused_drainer", c_uint64 * 2),
        ("part", c_char * PART_PATH_BYTES),
        ("padding", c_char * 128),
        ("path", c_char * PATH_BYTES),
    )


#: C name of a structure -> its counterpart here.
LAYOUT: Final[dict[str, type[Structure]]] = {
    "struct journal_record": _RecordHead,
    "struct journal_header": _Header,
}
_HEAD_BYTES: Final = ctypes.sizeof(_RecordHead)


class Journal:
    """A journal that is open to be read; make one with `Journal.open`.

    Every property reads the file again, so that it shows the present state. A journal
    that was removed meanwhile can still be read.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        #: Descriptor of the file that holds the ring.
        self._ring = descriptor
        self._has_no_part = False

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a journal.

        Raises
        ------
        FileNotFoundError
            If there is none (any longer): another process has drained and removed it.
        InputError
            If it cannot be read, is not a journal of this version, or belongs to
            another user.
        """
        try:
            descriptor = os.open(path, _OPEN_FLAGS)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise InputError(
                f"cannot open the journal: {error.strerror}", where=str(path)
            ) from error
        with ExitStack() as stack:
            journal = cls(path, descriptor)
            stack.callback(journal.close)
            journal._check()
            stack.pop_all()
        return journal

    def close(self) -> None:
        """Close the journal."""
        for descriptor in {self._descriptor, self._ring} - {-1}:
            os.close(descriptor)
        self._descriptor = self._ring = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- The header -------------------------------------------------------------------

    @property
    def file(self) -> Path:
        """Path of the staged file when the journal was made."""
        return Path(os.fsdecode(self._header().path))

    @property
    def process(self) -> int:
        """Number of the process that wrote the journal."""
        return int(self._header().process)

    @property
    def flags(self) -> Flag:
        """Marks that processes have left in the journal."""
        return Flag(self._header().flags)

    @property
    def error(self) -> int:
        """Number of the error at which the last drain stopped; 0 if it succeeded.

        `errno.EUCLEAN` if the number in the journal cannot be that of an error.
        """
        error = int(self._header().error)
        return error if error <= _MOST_ERRORS else errno.EUCLEAN

    @property
    def drained_bytes(self) -> int:
        """Data that drains have written to the file so far."""
        return int(self._header().drained_bytes)

    @property
    def is_empty(self) -> bool:
        """True if all data are in the file."""
        header = self._header()
        return bool(header.drained == header.appended)

    @property
    def is_alive(self) -> bool:
        """True if the writer lives and still uses the journal."""
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, Lock.LIFE, 1, 0)
        holder = fcntl.fcntl(self._descriptor, fcntl.F_OFD_GETLK, request)
        return bool(struct.unpack_from("h", holder)[0] != fcntl.F_UNLCK)

    def _header(self) -> _Header:
        # Not mapped: a file that is cut while it is mapped would kill this process.
        content = os.pread(self._descriptor, HEADER_BYTES, 0)
        return _Header.from_buffer_copy(content.ljust(HEADER_BYTES, b"\0"))

    def _check(self) -> None:
        status = os.fstat(self._descriptor)
        header = self._header()
        readable = stat.S_ISREG(status.st_mode) and status.st_size >= HEADER_BYTES
        if not readable or (header.magic, header.version) != (MAGIC, VERSION):
            raise InputError(
                f"not a journal of version {VERSION}",
                where=str(self.path),
                remedy="it is kept; drain it with the penstock that wrote it",
            )
        if status.st_uid != os.geteuid():
            raise InputError(
                f"a journal of user {status.st_uid}",
                where=str(self.path),
                remedy="drain it as that user: it says which file is written",
            )
        if header.partition:
            self._open_part(header)
        ring_bytes = os.fstat(self._ring).st_size - HEADER_BYTES
        whole = ring_bytes >= header.capacity or self._has_no_part
        if not whole or not header.capacity or header.capacity % RECORD_ALIGN:
            raise InputError("a journal that was cut", where=str(self.path))

    @property
    def part(self) -> Path | None:
        """Path of the part; None if the data are in the journal itself."""
        header = self._header()
        return Path(os.fsdecode(header.part)) if header.partition else None

    def _open_part(self, header: _Header) -> None:
        """Open the part. An empty journal needs none: it is about to be removed."""
        part = os.fsdecode(header.part)
        try:
            self._ring = os.open(part, _OPEN_FLAGS)
            status = os.fstat(self._ring)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and self.is_empty:
                self._has_no_part = True
                return
            raise InputError(
                f"cannot open the part {part}: {error.strerror}",
                where=str(self.path),
                remedy=_PART_REMEDY,
            ) from error
        if not stat.S_ISREG(status.st_mode) or status.st_ino != header.part_inode:
            raise InputError(
                f"another file is in the place of the part {part}",
                where=str(self.path),
                remedy=_PART_REMEDY,
            )

    # --- Records ----------------------------------------------------------------------

    @property
    def pending_bytes(self) -> int:
        """Data that are not in the file yet, up to the first damaged record."""
        return sum(self._pending_lengths())

    def _pending_lengths(self) -> Iterator[int]:
        header = self._header()
        position = int(header.drained)
        while header.capacity and position < header.appended:
            length = self._record_length(header, position)
            if length is None:
                return
            yield length
            end = position + _HEAD_BYTES + length
            position = -(-end // RECORD_ALIGN) * RECORD_ALIGN

    def _record_length(self, header: _Header, position: int) -> int | None:
        """Return the data bytes of the record at `position`; None if it is damaged."""
        place = (position - header.base) % header.capacity
        content = os.pread(self._ring, _HEAD_BYTES, HEADER_BYTES + place)
        head = _RecordHead.from_buffer_copy(content.ljust(_HEAD_BYTES, b"\0"))
        most = min(header.capacity - place - _HEAD_BYTES, RECORD_MAX_BYTES)
        end = position + _HEAD_BYTES + head.length
        if (
            head.mark != RECORD_MAGIC ^ position
            or not 0 < head.length <= most
            or end > header.appended
        ):
            return None
        if header.checked:
            data = os.pread(self._ring, head.length, HEADER_BYTES + place + _HEAD_BYTES)
            if zlib.crc32(data) != head.checksum:
                return None
        return int(head.length)


def journal_paths(folder: Path) -> Iterator[Path]:
    """Yield the journals in a folder of any owner, who may have filled it with files.

    Nothing if the folder cannot be read.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, _MOST_FILES):
            if entry.name.endswith(".journal"):
                yield folder / entry.name


def drained_so_far(path: Path) -> int:
    """Return the data that drains of a journal have written, for any owner (bytes).

    Return 0 if the journal cannot be read.
    """
    try:
        return int(_read_header(path).drained_bytes)
    except (OSError, ValueError):
        return 0


def part_of_unfinished(path: Path) -> Path | None:
    """Return the part of a journal whose process died while it made the journal.

    Return None if there is none, or if the journal belongs to another user: it could
    name a part of anybody.
    """
    try:
        header = _read_header(path, owner=os.geteuid())
    except (OSError, ValueError):
        return None
    part = Path(os.fsdecode(header.part))
    is_name = part.name.startswith(".penstock-") and part.suffix == ".part"
    return part if header.magic == MAGIC and is_name and part.is_absolute() else None


def named_writers(folder: Path, page: tuple[int, int]) -> dict[int, int]:
    """Return the processes that the journals of a job name as their writers.

    Process id -> start of the process (clock ticks after boot). The owner of a journal
    can change it: check that the processes belong to that user.

    Parameters
    ----------
    page
        Device and inode of the page of the job.
    """
    writers = {}
    for path in islice(journal_paths(folder), _MOST_JOURNALS):
        with suppress(OSError, ValueError):
            header = _read_header(path)
            if (*header.page,) == page:
                writers[int(header.process)] = int(header.started)
    return writers


def _read_header(path: Path, owner: int | None = None) -> _Header:
    """Return the header of a journal of one owner; None: of any.

    Raise `ValueError` if it is too short, of another owner, or a pipe or a device.
    """
    with open(path, "rb", opener=lambda name, _: os.open(name, _OPEN_FLAGS)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or owner not in (None, status.st_uid):
            raise ValueError("not a regular file of its owner")
        return _Header.from_buffer_copy(file.read(HEADER_BYTES))
