# SPDX-License-Identifier: MIT
"""CSV files: one row per interval of I/O, any number of jobs.

Columns ``job`` (name), ``begin`` and ``end`` (s), ``bytes``; optional ``nodes``,
``user`` and ``group``. A job lasts from the earliest begin to the latest end of its
rows; a row with 0 bytes says when the job ran. Times from 10^8 on are seconds since
1970; smaller ones are on a clock that only the jobs of this file have.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from penstock.advice.logs.bursts import interval_record
from penstock.advice.logs.record import LoggedJob, Skipped, plain_name
from penstock.errors import InputError

__all__ = ["COLUMNS", "read_csv"]

#: Columns that every file has.
COLUMNS: Final = ("job", "begin", "end", "bytes")
#: Smallest time that counts from 1970 (s): March 1973.
_EPOCH_S: Final = 1e8


class _Row(msgspec.Struct):
    begin: float
    end: float
    volume: int
    nodes: int
    user: str
    group: str


def read_csv(path: Path, gap_s: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the jobs of a file, in the order of their first rows."""
    jobs: dict[str, list[_Row]] = {}
    with path.open(newline="", encoding="utf-8", errors="replace") as stream:
        rows = csv.DictReader(stream)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise InputError(
                f"no column {', '.join(missing)}",
                where="line 1",
                remedy=f"a file of intervals has the columns {', '.join(COLUMNS)}",
            )
        for row in rows:
            try:
                jobs.setdefault(row["job"] or "", []).append(_parsed(row))
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"not a valid row: {error}",
                    where=f"line {rows.line_num}",
                    remedy="begin and end are seconds, bytes and nodes whole numbers",
                ) from None
    for name, intervals in jobs.items():
        source = f"{path}: {name}"
        columns = [(row.begin, row.end, row.volume) for row in intervals]
        record = interval_record(source, columns, gap_s)
        if isinstance(record, LoggedJob):
            first = intervals[0]
            yield msgspec.structs.replace(
                record,
                name=plain_name([name]),
                clock="" if record.start_s >= _EPOCH_S else str(path),
                nodes=max(row.nodes for row in intervals),
                user=first.user,
                group=first.group,
            )
        else:
            yield record


def _parsed(row: dict[str, Any]) -> _Row:
    begin, end = float(row["begin"]), float(row["end"])
    volume, nodes = int(row["bytes"]), int(row.get("nodes") or 1)
    if not (math.isfinite(begin) and math.isfinite(end) and 0.0 <= begin <= end):
        raise ValueError(f"from {begin:g} s to {end:g} s")
    if volume < 0 or nodes < 1 or not row["job"]:
        raise ValueError(f"job {row['job']!r}, {volume} bytes, {nodes} nodes")
    return _Row(
        begin, end, volume, nodes, row.get("user") or "", row.get("group") or ""
    )
