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
from typing import Any, Final, TextIO

import msgspec

from penstock.advice.logs.bursts import interval_record
from penstock.advice.logs.record import LoggedJob, Skipped, plain_name, skipped_line
from penstock.errors import InputError

__all__ = ["COLUMNS", "read_csv"]

#: Columns that every file has.
COLUMNS: Final = ("job", "begin", "end", "bytes")
#: Smallest time that counts from 1970 (s): March 1973.
_EPOCH_S: Final = 1e8


class _Row(msgspec.Struct):
    job: str
    begin: float
    end: float
    volume: int
    nodes: int
    user: str
    group: str


def read_csv(path: Path, gap_s: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the jobs of a file, in the order of their first rows."""
    jobs: dict[str, list[_Row]] = {}
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        for row in _rows(stream, path):
            if isinstance(row, Skipped):
                yield row
            else:
                jobs.setdefault(row.job, []).append(row)
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


def _rows(stream: TextIO, path: Path) -> Iterator[_Row | Skipped]:
    """Yield the rows of a file, and those that are not valid as skipped."""
    reader = csv.DictReader(stream)
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(
            f"no column {', '.join(missing)}",
            where="line 1",
            remedy=f"begin the file with {','.join(COLUMNS)} (with commas)",
        )
    while True:
        try:
            yield _parsed(next(reader))
        except StopIteration:
            return
        except (TypeError, ValueError, csv.Error) as error:
            yield skipped_line(path, reader.line_num, f"not a valid row: {error}")


def _parsed(row: dict[str, Any]) -> _Row:
    begin, end = float(row["begin"]), float(row["end"])
    volume, nodes = int(row["bytes"]), int(row.get("nodes") or 1)
    if not (math.isfinite(begin) and math.isfinite(end) and 0.0 <= begin <= end):
        raise ValueError(f"from {begin:g} s to {end:g} s")
    if volume < 0 or nodes < 1 or not row["job"]:
        raise ValueError(f"job {row['job']!r}, {volume} bytes, {nodes} nodes")
    return _Row(
        job=row["job"],
        begin=begin,
        end=end,
        volume=volume,
        nodes=nodes,
        user=row.get("user") or "",
        group=row.get("group") or "",
    )
