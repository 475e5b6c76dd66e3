# SPDX-License-Identifier: MIT
"""The journal of one staged file: what was written and is not in the file yet.

The layout and the rules are those of ``native/stage/journal.h``; a test compares
`LAYOUT`
with it. Here journals are only read and drained: the preload library appends. A drain
writes records to the file in order and then stores how far it came, so that doing it
twice, or dying in between, does no harm. Who drains holds a lock that the kernel takes
back when its holder dies.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import Structure, c_char, c_uint32, c_uint64
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from penstock.errors import InputError

__all__ = [
    "LAYOUT",
    "VERSION",
    "Flag",
    "Identity",
    "Journal",
    "Lock",
    "boot_number",
    "drained_so_far",
]

MAGIC: Final = int.from_bytes(b"pjournal", "little")
RECORD_MAGIC: Final = int.from_bytes(b"!precord", "little")
VERSION: Final = 1
HEADER_BYTES: Final = 4096
PATH_BYTES: Final = 3072
RECORD_ALIGN: Final = 64
#: No record, and no step of a drain, is longer.
RECORD_MAX_BYTES: Final = 4 << 20

#: Records that one step gathers, if they follow one another in the file too.
_GATHERED: Final = 64
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Lock(IntEnum):
    """Bytes of a journal that are locked, by open file description."""

    #: Held for one step of a drain.
    DRAIN = 0
    #: Held by the writer as long as it lives.
    LIFE = 1


class Flag(IntFlag):
    """What holds for a journal."""

    #: Another process uses the file: the writer is to write through.
    THROUGH = 1
    #: The program is to be called before a drain: while it lives, only it drains, and
    #: who comes to use the file.
    ASKS = 4
    #: Put aside: whoever was draining it goes no further.
    ASIDE = 8


class _RecordWords(Structure):
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
        ("unused_word", c_uint32),
        ("page", c_uint64 * 2),
        ("unused", c_uint64 * 3),
        ("base", c_uint64),
        ("appended", c_uint64),
        ("sequence", c_uint64),
        ("end", c_uint64),
        ("flags", c_uint32),
        ("error", c_uint32),
        ("unused_writer", c_uint64 * 3),
        ("drained", c_uint64),
        ("settled", c_uint64),
        ("drained_bytes", c_uint64),
        ("unused_drainer", c_uint64 * 5),
        ("padding", c_char * 768),
        ("path", c_char * PATH_BYTES),
    )


#: C name of a structure -> its counterpart here.
LAYOUT: Final[dict[str, type[Structure]]] = {
    "struct journal_record": _RecordWords,
    "struct journal_header": _Header,
}
_HEAD_BYTES: Final = ctypes.sizeof(_RecordWords)


@dataclass(frozen=True)
class Identity:
    """Which file a journal is for.

    Parameters
    ----------
    device, inode
        As ``stat`` gives them; a device may have another number after a restart of the
        machine.
    birth_ns
        When the file was made (ns since 1970); 0 if the file system does not say.
    """

    device: int
    inode: int
    birth_ns: int

    def is_that_of(self, other: Identity, *, same_boot: bool) -> bool:
        """Say whether two are of one file, as far as can be known."""
        births = {self.birth_ns, other.birth_ns} - {0}
        return (
            self.inode == other.inode
            and (not same_boot or self.device == other.device)
            and len(births) < 2
        )


@dataclass
class _Batch:
    """Records of one step: they follow one another in the log and in the file."""

    parts: list[memoryview]
    offset: int
    length: int
    end: int


class Journal:
    """A mapped journal; make one with `Journal.open`."""

    def __init__(self, path: Path, descriptor: int, header: mmap.mmap) -> None:
        self.path = path
        self._descriptor = descriptor
        self._header = _Header.from_buffer(header)
        self._ring: memoryview | None = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Map a journal; an `InputError` if it is none, of another version or user."""
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(path, flags)
        except OSError as error:
            raise InputError(
                f"cannot open the journal: {error.strerror}", where=str(path)
            ) from error
        try:
            _refuse_others(path, os.fstat(descriptor))
            journal = cls(path, descriptor, mmap.mmap(descriptor, HEADER_BYTES))
            journal._examine()
        except BaseException:
            os.close(descriptor)
            raise
        return journal

    def close(self) -> None:
        """Let the journal go; locks held here are released."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self.__dict__.pop("_ring", None)
        self.__dict__.pop("_header", None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- What it says -----------------------------------------------------------------

    @property
    def file(self) -> Path:
        """The staged file, where it was when the journal was made."""
        return Path(os.fsdecode(self._header.path))

    @property
    def identity(self) -> Identity:
        """Which file it is."""
        header = self._header
        return Identity(header.device, header.inode, header.birth_ns)

    @property
    def process(self) -> int:
        """The process that wrote."""
        return int(self._header.process)

    @property
    def flags(self) -> Flag:
        """What holds for it."""
        return Flag(self._header.flags)

    @property
    def error(self) -> int:
        """The number of the error that stopped the last drain; 0: none did."""
        return int(self._header.error)

    @property
    def drained_bytes(self) -> int:
        """Data that drains have written so far."""
        return int(self._header.drained_bytes)

    @property
    def is_empty(self) -> bool:
        """Whether all that was written is in the file."""
        return bool(self._header.drained == self._header.appended)

    @property
    def is_alive(self) -> bool:
        """Whether the writer lives and still uses it."""
        return self._is_locked(Lock.LIFE)

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the machine has not been restarted since."""
        boot = self._header.boot
        return (int(boot[0]) << 64 | int(boot[1])) == boot_number()

    @property
    def pending_bytes(self) -> int:
        """Data that are not in the file yet, as far as records are sound."""
        return sum(length for _, length, _ in self._records())

    def _examine(self) -> None:
        header = self._header
        if header.magic != MAGIC or header.version != VERSION:
            raise InputError(
                f"not a journal of version {VERSION}",
                where=str(self.path),
                remedy="it is kept; drain it with the penstock that wrote it",
            )
        whole = os.fstat(self._descriptor).st_size >= HEADER_BYTES + header.capacity
        if not whole or not header.capacity or header.capacity % RECORD_ALIGN:
            raise InputError("a journal that was cut", where=str(self.path))
        self._ring = memoryview(
            mmap.mmap(
                self._descriptor,
                header.capacity,
                access=mmap.ACCESS_READ,
                offset=HEADER_BYTES,
            )
        )

    # --- Locks ------------------------------------------------------------------------

    def try_lock(self, which: Lock) -> bool:
        """Take a lock if it is free."""
        try:
            fcntl.fcntl(
                self._descriptor, fcntl.F_OFD_SETLK, _lock(fcntl.F_WRLCK, which)
            )
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def unlock(self, which: Lock) -> None:
        """Let a lock go."""
        self._lock(fcntl.F_UNLCK, which)

    def _lock(self, kind: int, which: Lock) -> None:
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _lock(kind, which))

    def _is_locked(self, which: Lock) -> bool:
        asked = _lock(fcntl.F_WRLCK, which)
        told: bytes = fcntl.fcntl(self._descriptor, fcntl.F_OFD_GETLK, asked)
        return bool(struct.unpack_from("h", told)[0] != fcntl.F_UNLCK)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock of a drain; False if another process drains now."""
        held = self.try_lock(Lock.DRAIN)
        try:
            yield held
        finally:
            if held:
                self.unlock(Lock.DRAIN)

    # --- Records ----------------------------------------------------------------------

    def _place(self, position: int) -> int:
        return int((position - self._header.base) % self._header.capacity)

    def _record(self, position: int, end: int) -> tuple[int, memoryview] | None:
        """Return offset and data of the record there; None if it is not sound."""
        assert self._ring is not None  # noqa: S101 - for the type checker
        place = self._place(position)
        mark, _, offset, length, checksum = struct.unpack_from("5Q", self._ring, place)
        room = len(self._ring) - place - _HEAD_BYTES
        sound = (
            mark == RECORD_MAGIC ^ position
            and 0 < length <= min(room, RECORD_MAX_BYTES)
            and _behind(position, length) <= end
        )
        data = self._ring[place + _HEAD_BYTES : place + _HEAD_BYTES + length]
        if not sound or (self._header.checked and zlib.crc32(data) != checksum):
            return None
        return offset, data

    def _records(self) -> Iterator[tuple[int, int, memoryview]]:
        """Yield offset, length and data of what is to be drained, while it is sound."""
        end, position = int(self._header.appended), int(self._header.drained)
        while position < end:
            found = self._record(position, end)
            if found is None:
                return
            offset, data = found
            yield offset, len(data), data
            position = _behind(position, len(data))

    @property
    def is_damaged(self) -> bool:
        """Whether what should be the next record is none: a crash of the machine."""
        end, position = int(self._header.appended), int(self._header.drained)
        return position < end and self._record(position, end) is None

    def _gather(self) -> _Batch | None:
        batch: _Batch | None = None
        for offset, length, data in self._records():
            if batch is None:
                batch = _Batch([], offset, 0, int(self._header.drained))
            elif (
                len(batch.parts) >= _GATHERED
                or offset != batch.offset + batch.length
                or batch.length + length > RECORD_MAX_BYTES
            ):
                break
            batch.parts.append(data)
            batch.length += length
            batch.end = _behind(batch.end, length)
        return batch

    # --- Draining ---------------------------------------------------------------------

    def step(self, file: int) -> int:
        """Write the next records to descriptor `file`; return the data bytes, 0: none.

        The lock `Lock.DRAIN` is held by the caller.
        """
        header = self._header
        if Flag.ASIDE in self.flags and self.path.suffix != ".failed":
            # The program knows, and may have written to the file since.
            raise InputError(
                "it was put aside after an error",
                where=str(self.path),
                remedy="penstock drain --failed",
            )
        batch = self._gather()
        if batch is None:
            return 0
        try:
            _write_all(file, batch)
        except OSError as error:
            header.error = error.errno or errno.EIO
            raise
        header.error = 0
        header.drained_bytes += batch.length
        header.drained = batch.end
        if not header.durable:
            header.settled = batch.end
        return batch.length

    def settle(self, file: int) -> None:
        """Sync the file where that was promised; then the ring is free.

        The lock is held: what is settled never goes back.
        """
        header = self._header
        if header.settled != header.drained:
            if header.durable:
                os.fdatasync(file)
            header.settled = header.drained

    def go_back(self) -> None:
        """Forget drains that the machine may have forgotten: before its restart."""
        self._header.drained = self._header.settled

    @property
    def has_its_name(self) -> bool:
        """Whether its name is still its own; it changes only under the lock."""
        try:
            named = self.path.lstat()
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._descriptor))

    def retire(self) -> bool:
        """Remove it if its writer is gone and it is empty; the lock is held."""
        # In this order: a writer that lives may append, and then die.
        if self.is_alive or not self.is_empty or not self.has_its_name:
            return False
        if self._header.checked:
            os.fdatasync(self._descriptor)
        self.path.unlink(missing_ok=True)
        return True


def drained_so_far(path: Path) -> int:
    """Return the data that drains have written, of anybody's journal; 0: not known."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            header = _Header.from_buffer_copy(file.read(HEADER_BYTES))
    except (OSError, ValueError):
        return 0
    return int(header.drained_bytes)


def boot_number() -> int:
    """Return the number of this boot of the machine; 0 if it is not known."""
    try:
        return int(_BOOT.read_text().strip().replace("-", ""), 16)
    except (OSError, ValueError):
        return 0


def _behind(position: int, length: int) -> int:
    return -(-(position + _HEAD_BYTES + length) // RECORD_ALIGN) * RECORD_ALIGN


def _lock(kind: int, which: Lock) -> bytes:
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, which, 1, 0)


def _write_all(file: int, batch: _Batch) -> None:
    parts, offset = list(batch.parts), batch.offset
    while parts:
        moved = os.pwritev(file, parts, offset)
        if moved == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        offset += moved
        while parts and moved >= len(parts[0]):
            moved -= len(parts.pop(0))
        if moved:
            parts[0] = parts[0][moved:]


def _refuse_others(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_size < HEADER_BYTES:
        raise InputError(
            f"not a journal of version {VERSION}", where=str(path), remedy="it is kept"
        )
    if status.st_uid != os.geteuid():
        raise InputError(
            f"a journal of user {status.st_uid}",
            where=str(path),
            remedy="drain it as that user: it says which file is written",
        )
