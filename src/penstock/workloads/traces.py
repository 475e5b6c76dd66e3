# SPDX-License-Identifier: MIT
"""Traces: the reads and writes of real programs, each with its place and time.

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

__all__ = ["COLUMNS", "Access", "Operation", "Trace", "read_trace"]

Operation: TypeAlias = Literal["read", "write"]
COLUMNS: Final = ("process", "file", "operation", "offset", "size", "start", "end")
_LARGEST: Final = 2**63 - 1
#: Bytes that one call moves at most, read(2).
_MOST: Final = 0x7FFFF000


@dataclass(frozen=True, slots=True)
class Access:
    """A read or a write, as it was recorded."""

    process: int
    file: str
    operation: Operation
    offset: int
    size: int
    """Bytes."""
    start: float
    end: float
    """Seconds since the trace began."""

    def __post_init__(self) -> None:
        if self.operation not in ("read", "write"):
            raise InputError(f"operation {self.operation!r}", remedy="read or write")
        if self.process < 0:
            raise InputError(f"process {self.process} is negative")
        if not self.file:
            raise InputError("no file is named")
        if self.offset < 0 or self.size < 0 or self.offset + self.size > _LARGEST:
            raise InputError(f"no file has {self.size} bytes at {self.offset}")
        if self.size > _MOST:
            raise InputError(
                f"{self.size} bytes in one access", remedy=f"at most {_MOST:,}"
            )
        if not 0.0 <= self.start <= self.end < math.inf:
            raise InputError(
                f"from {self.start:g} s to {self.end:g} s",
                remedy="times count from the begin of the trace; the end comes last",
            )


@dataclass(frozen=True, slots=True)
class Trace:
    """What some processes read and wrote."""

    accesses: tuple[Access, ...]
    """By process, then by start."""

    def __post_init__(self) -> None:
        if not self.accesses:
            raise InputError("the trace is empty")
        ordered = sorted(self.accesses, key=lambda a: (a.process, a.start))
        object.__setattr__(self, "accesses", tuple(ordered))

    def by_process(self) -> dict[int, list[Access]]:
        """Return the accesses of every process, in their order."""
        found: dict[int, list[Access]] = {}
        for access in self.accesses:
            found.setdefault(access.process, []).append(access)
        return found

    def sizes(self) -> dict[str, int]:
        """Return how far every file reaches that is read (bytes)."""
        ends: dict[str, int] = {}
        for access in self.accesses:
            if access.operation == "read":
                end = access.offset + access.size
                ends[access.file] = max(end, ends.get(access.file, 0))
        return ends


def read_trace(path: str | Path) -> Trace:
    """Read a CSV file or a Darshan log, by the ending of its name."""
    source = Path(path)
    read = _darshan_accesses if source.suffix == ".darshan" else _csv_accesses
    try:
        return Trace(tuple(read(source)))
    except OSError as error:
        raise InputError(
            f"cannot read the file: {error.strerror}",
            where=str(path),
            remedy="check its name, and whether you may read it",
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
    """Raise `InputError` if a line has fewer or more columns than the first one."""
    given = sum(value is not None for key, value in row.items() if key is not None)
    named = sum(key is not None for key in row)
    more = len(row.get(None) or ())
    if given + more != named:
        raise InputError(f"has {given + more} of {named} columns")


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
        raise InputError(f"not a number: {error}") from None


def _darshan_accesses(path: Path) -> Iterator[Access]:
    """Yield the POSIX accesses that DXT recorded."""
    path.open("rb").close()  # The library prints, and does not raise, without it.
    try:
        from darshan import DarshanReport  # noqa: PLC0415 - an extra, and slow
    except ImportError:
        raise InputError(
            "a Darshan log cannot be read here",
            remedy="pip install 'penstock[darshan]'",
        ) from None
    reason = None
    with _quiet():
        try:
            report = DarshanReport(str(path), read_all=False)
        except RuntimeError as error:
            # The rest of it is gone, and has complained, when this block ends.
            reason = str(error)
    if reason is not None:
        raise InputError(f"not a Darshan log: {reason}")
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
    """Let nobody write to standard error: Darshan's own library does."""
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
    operations: tuple[Operation, ...] = ("read", "write")
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
                # Clocks of old runtimes step back by microseconds.
                end=max(start, segment["end_time"]),
            )
