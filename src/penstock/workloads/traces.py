# SPDX-License-Identifier: MIT
"""Traces: the reads and writes of real programs, with offsets and times.

A trace is a CSV file with the columns ``process`` (number), ``file`` (name),
``operation`` (read or write), ``offset``, ``size`` (bytes), ``start`` and ``end`` (s),
or a Darshan log with DXT records (extra ``import``).
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from penstock.errors import InputError
from penstock.workloads.darshan_log import DarshanLog

__all__ = ["COLUMNS", "Access", "AccessKind", "Trace", "read_trace"]

AccessKind: TypeAlias = Literal["read", "write"]
COLUMNS: Final = ("process", "file", "operation", "offset", "size", "start", "end")
_LARGEST: Final = 2**63 - 1
#: Largest number of bytes that one call transfers, see read(2).
_MOST: Final = 0x7FFFF000


@dataclass(frozen=True, slots=True)
class Access:
    """A recorded read or write."""

    process: int
    file: str
    operation: AccessKind
    offset: int
    size: int
    """Bytes."""
    start: float
    end: float
    """Seconds since the trace began."""

    def __post_init__(self) -> None:
        if self.operation not in ("read", "write"):
            raise InputError(
                f"operation {self.operation!r} is unknown",
                remedy="write read or write",
            )
        if self.process < 0:
            raise InputError(
                f"process {self.process} is negative", remedy="number them from 0"
            )
        if not self.file:
            raise InputError("the file name is empty", remedy="name a file")
        if self.offset < 0 or self.size < 0 or self.offset + self.size > _LARGEST:
            raise InputError(
                f"{self.size} bytes at offset {self.offset} are not in any file",
                remedy="give offset and size in bytes, neither negative",
            )
        if self.size > _MOST:
            raise InputError(
                f"{self.size} bytes in one access",
                remedy=f"one call transfers at most {_MOST:,} bytes",
            )
        if not 0.0 <= self.start <= self.end < math.inf:
            raise InputError(
                f"from {self.start:g} s to {self.end:g} s",
                remedy="give times since the begin of the trace, start before end",
            )


@dataclass(frozen=True, slots=True)
class Trace:
    """The accesses of one or more processes."""

    accesses: tuple[Access, ...]
    """Sorted by process, then by start."""

    def __post_init__(self) -> None:
        if not self.accesses:
            raise InputError(
                "the trace is empty", remedy="record a program that reads or writes"
            )
        ordered = sorted(self.accesses, key=lambda a: (a.process, a.start))
        object.__setattr__(self, "accesses", tuple(ordered))

    def by_process(self) -> dict[int, list[Access]]:
        """Return the accesses of every process, sorted by start."""
        accesses: dict[int, list[Access]] = {}
        for access in self.accesses:
            accesses.setdefault(access.process, []).append(access)
        return accesses

    def sizes(self) -> dict[str, int]:
        """Return the smallest possible size of every file that is read (bytes)."""
        ends: dict[str, int] = {}
        for access in self.accesses:
            if access.operation == "read":
                end = access.offset + access.size
                ends[access.file] = max(end, ends.get(access.file, 0))
        return ends


def read_trace(path: str | Path) -> Trace:
    """Read a Darshan log (``*.darshan``) or a CSV file (any other name)."""
    source = Path(path)
    read = _darshan_accesses if source.suffix == ".darshan" else _csv_accesses
    try:
        return Trace(tuple(read(source)))
    except OSError as error:
        raise InputError(
            f"cannot read the file: {error.strerror}",
            where=str(path),
            remedy="check its name and its permissions",
        ) from None
    except InputError as error:
        raise error.at(f"{path}: ") from None


def _csv_accesses(path: Path) -> Iterator[Access]:
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        rows = csv.DictReader(stream)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise InputError(
                f"no column {', '.join(missing)}",
                where="line 1",
                remedy=f"a trace has the columns {', '.join(COLUMNS)}",
            )
        for row in rows:
            try:
                _check_columns(row)
                yield _parsed(row)
            except InputError as error:
                raise error.at(f"line {rows.line_num}") from None


def _check_columns(row: dict[str | None, Any]) -> None:
    """Raise `InputError` if a line has fewer or more columns than the header."""
    given = sum(value is not None for key, value in row.items() if key is not None)
    named = sum(key is not None for key in row)
    more = len(row.get(None) or ())
    if given + more != named:
        raise InputError(
            f"has {given + more} of {named} columns",
            remedy="give every line the columns of the header",
        )


def _parsed(row: dict[str, Any]) -> Access:
    try:
        return Access(
            process=int(row["process"]),
            file=row["file"] or "",
            operation=row["operation"],
            offset=int(row["offset"]),
            size=int(row["size"]),
            start=float(row["start"]),
            end=float(row["end"]),
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"not a number: {error}",
            remedy="process, offset and size are whole numbers, start and end seconds",
        ) from None


def _darshan_accesses(path: Path) -> Iterator[Access]:
    """Yield the POSIX accesses that DXT recorded."""
    with DarshanLog(path) as log:
        if "DXT_POSIX" not in log.modules:
            raise InputError(
                "the log has no DXT records",
                remedy="record with DXT_ENABLE_IO_TRACE=1",
            )
        names = log.names()
        for record in log.segments():
            file = names.get(record.file_id, str(record.file_id))
            yield from _segments(record.rank, file, "read", record.reads)
            yield from _segments(record.rank, file, "write", record.writes)


def _segments(
    process: int, file: str, operation: AccessKind, segments: Any
) -> Iterator[Access]:
    for offset, size, begin, end in segments.tolist():
        start = max(0.0, begin)
        yield Access(
            process=process,
            file=file,
            operation=operation,
            offset=offset,
            size=size,
            start=start,
            # Clocks of old runtimes may step back by microseconds.
            end=max(start, end),
        )
