# SPDX-License-Identifier: MIT
"""Recorder traces, after ``recorder2text``: one job per folder.

Recorder writes a folder of compressed files; its tool ``recorder2text FOLDER`` adds the
folder ``FOLDER/_text`` with one text file per process. A line is::

    0.012345 0.012399 write 1 1 ( /scratch/out 0x7ffe 4096 )

begin and end (s), function, depth of the call, layer (0 MPI-IO, 1 POSIX ...) and
arguments. Only the reads and writes of POSIX and of C streams are used: those of MPI-IO
and HDF5 call them, and would count twice. Vectored calls (``readv``) do not tell their
size and are counted as missing.

The name of the folder, ``host-user-program-process-time``, gives program and user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from penstock.advice.logs.bursts import interval_record
from penstock.advice.logs.record import LoggedJob, Skipped, plain_name, skipped_line
from penstock.errors import InputError

__all__ = ["is_recorder_folder", "read_recorder"]

_LINE: Final = re.compile(r"(\d+\.\d+) (\d+\.\d+) (\w+) (\d+) (\d+) \((.*)\)\s*")
#: Function -> places of the arguments whose product is the size in bytes.
_SIZES: Final = {
    **dict.fromkeys(("read", "write", "pread", "pwrite", "pread64", "pwrite64"), (2,)),
    **dict.fromkeys(("fread", "fwrite"), (1, 2)),
}
_WITHOUT_SIZE: Final = {"readv", "writev", "preadv", "pwritev", "fprintf", "sendfile"}


class _TracedProcess(NamedTuple):
    rows: list[tuple[float, float, int]]
    last_s: float
    without_size: int
    skipped: list[Skipped]


def is_recorder_folder(path: Path) -> bool:
    """Return True if a folder is a trace of Recorder, converted to text or not."""
    if path.name == "_text":
        return any(path.glob("*.txt"))
    return (path / "_text").is_dir() or (path / "recorder.mt").exists()


def read_recorder(path: Path, gap_s: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the job of a trace: a folder, or its folder ``_text``."""
    folder = path / "_text" if (path / "_text").is_dir() else path
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise InputError(
            "the trace is not converted to text", remedy=f"run recorder2text {path}"
        )
    processes = [_read_process(file) for file in files]
    for process in processes:
        yield from process.skipped
    rows = [row for process in processes for row in process.rows]
    if not rows:
        yield Skipped(source=str(path), reason="the job has no I/O")
        return
    last_s = max(process.last_s for process in processes)
    source = str(folder.parent if folder.name == "_text" else folder)
    record = interval_record(source, [(0.0, 0.0, 0), (last_s, last_s, 0), *rows], gap_s)
    if isinstance(record, LoggedJob):
        record = _described(record, source, processes)
    yield record


def _described(
    record: LoggedJob, source: str, processes: list[_TracedProcess]
) -> LoggedJob:
    """Return the record with what the name of the folder and the counts tell."""
    words = Path(source).name.rsplit("-", 4)
    _, user, program = words[:3] if len(words) == 5 else ("", "", Path(source).name)
    notes = []
    if len(processes) > 1:
        notes.append(
            "the trace does not name its nodes: one node per process is assumed"
        )
    missing = sum(process.without_size for process in processes)
    if missing:
        notes.append(f"{missing} calls do not tell their size (readv, fprintf ...)")
    return msgspec.structs.replace(
        record,
        name=plain_name([program]),
        clock=source,
        nodes=len(processes),
        knows_nodes=len(processes) == 1,
        user=user,
        notes=tuple(notes),
    )


def _read_process(path: Path) -> _TracedProcess:
    rows: list[tuple[float, float, int]] = []
    last_s, without_size = 0.0, 0
    skipped: list[Skipped] = []
    with path.open(encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            match = _LINE.fullmatch(line.rstrip("\n"))
            if match is None:
                skipped.append(
                    skipped_line(path, number, "not a line of recorder2text")
                )
                continue
            begin, end, function, _, _, arguments = match.groups()
            last_s = max(last_s, float(end))
            without_size += function in _WITHOUT_SIZE
            size = _size(function, arguments.split())
            if size > 0:
                rows.append((float(begin), max(float(begin), float(end)), size))
    return _TracedProcess(rows, last_s, without_size, skipped)


def _size(function: str, arguments: list[str]) -> int:
    """Return the bytes of a call; 0 if it is not a read or a write."""
    size = 0
    if function in _SIZES:
        size = 1
        for place in _SIZES[function]:
            text = arguments[place] if place < len(arguments) else ""
            size *= int(text) if text.isdigit() else 0
    return size
