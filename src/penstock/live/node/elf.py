# SPDX-License-Identifier: MIT
"""What an executable says of itself: a reader for ELF files, as far as is needed.

Of a program for another processor only the header is read. Imported are the undefined
symbols that a relocation names: the loader binds exactly these, and it needs no section
table to find them, so neither is one needed here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from penstock.errors import InputError

__all__ = ["Elf", "read_elf"]

_LOAD, _DYNAMIC, _INTERP, _NOTE = 1, 2, 3, 4
_NEEDED, _STRTAB, _SYMTAB, _RELA, _RELASZ = 1, 5, 6, 7, 8
_PLTRELSZ, _JMPREL = 2, 23
_BITS: Final = {1: 32, 2: 64}
_ORDERS: Final = {1: "<", 2: ">"}
#: Where both widths keep the processor.
_MACHINE_AT: Final = 18
_SEGMENTS_AT: Final = 32
_COUNTS_AT: Final = 54
_TEXT_MAX: Final = 4096


class _Bytes(Protocol):
    """_Bytes that can be looked at: `bytes`, or a mapped file."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> bytes: ...


@dataclass(frozen=True)
class Elf:
    """An executable or a library."""

    bits: int
    order: str
    """``<`` or ``>``: little or big end first."""
    machine: int
    """The processor, as the format numbers it."""
    interpreter: str = ""
    """The loader that it asks for; none: it is static."""
    needed: tuple[str, ...] = ()
    """Libraries that it names."""
    imports: frozenset[str] = frozenset()
    """Functions and variables that others must define."""
    is_go: bool = False
    """Whether Go's tools have made it."""

    @property
    def kind(self) -> tuple[int, str, int]:
        """What programs must have in common with a library to load it."""
        return self.bits, self.order, self.machine


def read_elf(data: _Bytes) -> Elf | None:
    """Return what an ELF file says; None if the bytes are no such file.

    Raises `InputError` if it begins like one and makes no sense.
    """
    if data[:4] != b"\x7fELF":
        return None
    try:
        return _Reader(data).read()
    except (struct.error, IndexError, KeyError) as error:
        raise InputError(
            "an ELF file that makes no sense", remedy="is it complete?"
        ) from error


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    size: int
    memory: int
    align: int


class _Reader:
    """The parts of one file; positions are offsets in it."""

    def __init__(self, data: _Bytes) -> None:
        self._data = data
        self._order = "<"
        width, order = self._unpack("BB", 4)
        self._bits, self._order = _BITS[width], _ORDERS[order]

    def read(self) -> Elf:
        (machine,) = self._unpack("H", _MACHINE_AT)
        if self._bits != 64:
            return Elf(self._bits, self._order, machine)
        self._segments = list(self._read_segments())
        table = self._table()
        values = dict(table)
        return Elf(
            self._bits,
            self._order,
            machine,
            interpreter=self._interpreter(),
            needed=tuple(
                self._text(values, offset) for tag, offset in table if tag == _NEEDED
            ),
            imports=frozenset(self._imports(values)),
            is_go=any(self._is_go(note) for note in self._of(_NOTE)),
        )

    # --- Segments ---------------------------------------------------------------------

    def _read_segments(self) -> Iterator[_Segment]:
        (begin,) = self._unpack("Q", _SEGMENTS_AT)
        size, count = self._unpack("HH", _COUNTS_AT)
        for k in range(count):
            yield _Segment(*self._unpack("IIQQQQQQ", begin + k * size))

    def _of(self, kind: int) -> list[_Segment]:
        return [segment for segment in self._segments if segment.kind == kind]

    def _interpreter(self) -> str:
        return next((self._string(s.offset) for s in self._of(_INTERP)), "")

    def _is_go(self, note: _Segment) -> bool:
        return self._data[note.offset + 12 : note.offset + 16] == b"Go\0\0"

    def _offset(self, address: int) -> int:
        for segment in self._of(_LOAD):
            if 0 <= address - segment.address < segment.size:
                return address - segment.address + segment.offset
        raise IndexError(address)

    # --- The loader's table -----------------------------------------------------------

    def _table(self) -> list[tuple[int, int]]:
        rows = []
        for segment in self._of(_DYNAMIC):
            for position in range(segment.offset, segment.offset + segment.size, 16):
                tag, value = self._unpack("QQ", position)
                if tag == 0:
                    break
                rows.append((tag, value))
        return rows

    def _imports(self, values: dict[int, int]) -> Iterator[str]:
        symbols = set[int]()
        for begin, size in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
            if begin in values:
                symbols |= set(self._relocated(values[begin], values[size]))
        for index in symbols - {0}:
            position = self._offset(values[_SYMTAB]) + 24 * index
            name, _, section = self._unpack("IHH", position)
            if section == 0:
                yield self._text(values, name)

    def _relocated(self, address: int, size: int) -> Iterator[int]:
        first = self._offset(address)
        for position in range(first, first + size, 24):
            (info,) = self._unpack("Q", position + 8)
            yield info >> 32

    def _text(self, values: dict[int, int], offset: int) -> str:
        return self._string(self._offset(values[_STRTAB]) + offset)

    # --- Bytes ------------------------------------------------------------------------

    def _unpack(self, layout: str, position: int) -> tuple[int, ...]:
        layout = self._order + layout
        end = position + struct.calcsize(layout)
        return struct.unpack(layout, self._data[position:end])

    def _string(self, position: int) -> str:
        text, end, _ = self._data[position : position + _TEXT_MAX].partition(b"\0")
        if not end:
            raise IndexError(position)
        return text.decode(errors="replace")
