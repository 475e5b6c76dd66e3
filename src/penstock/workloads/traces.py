# SPDX-License-Identifier: MIT
"""Traces: the reads and writes of real programs, with offsets and times.

A trace is a CSV file with the columns ``process`` (number), ``file`` (name),
``operation`` (read or write), ``offset``, ``size`` (bytes), ``start`` and ``end`` (s),
or a Darshan log with DXT records (extra ``darshan``).
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from penstock.errors import InputError

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
    path.open("rb").close()  # Raise OSError here: the library would only print.
    try:
        from darshan import DarshanReport  # noqa: PLC0415 - an extra, and slow
    except (ImportError, RuntimeError):
        # RuntimeError: a package of darshan without its C library.
        raise InputError(
            "reading a Darshan log needs the package darshan with its C library",
            remedy="pip install 'penstock[darshan]'",
        ) from None
    reason = None
    with _quiet():
        try:
            report = DarshanReport(str(path), read_all=False)
        except RuntimeError as error:
            # Not raised here: the report's destructor prints while stderr is quiet.
            reason = str(error)
    if reason is not None:
        raise InputError(
            f"not a Darshan log: {reason}",
            remedy="give a complete log, as Darshan wrote it, or a CSV file",
        )
    with report:
        if "DXT_POSIX" not in report.modules:
            raise InputError(
                "the log has no DXT records",
                remedy="record with DXT_ENABLE_IO_TRACE=1",
            )
        report.mod_read_all_dxt_records("DXT_POSIX", dtype="numpy")
        for record in report.records["DXT_POSIX"]:
            yield from _segments(record, str(report.name_records[record["id"]]))


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard standard error, to which Darshan's C library prints."""
    kept = os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _segments(record: Any, file: str) -> Iterator[Access]:
    operations: tuple[AccessKind, ...] = ("read", "write")
    for operation in operations:
        for segment in record[f"{operation}_segments"]:
            start = max(0.0, segment["start_time"])
            yield Access(
                process=record["rank"],
                file=file,
                operation=operation,
                offset=segment["offset"],
                size=segment["length"],
                start=start,
                # Clocks of old runtimes may step back by microseconds.
                end=max(start, segment["end_time"]),
            )
