# SPDX-License-Identifier: MIT
"""Which files are logs, and of which format.

A folder stands for all files below it, except hidden ones; the folder of a Recorder
trace, or of the past jobs of penstock, is one log. With the format ``auto`` the first
bytes of a file decide, and for Darshan also the ending ``.darshan``: a file with this
name but other content is reported as a damaged log and not passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from penstock.advice.logs import intervals_csv, swf, tmio
from penstock.advice.logs.darshan import read_darshan
from penstock.advice.logs.history import is_archive_folder, read_history
from penstock.advice.logs.intervals_csv import read_csv
from penstock.advice.logs.record import Reader, Skipped
from penstock.advice.logs.recorder import is_recorder_folder, read_recorder
from penstock.advice.logs.slurm import read_slurm
from penstock.advice.logs.swf import read_swf
from penstock.advice.logs.tmio import read_tmio
from penstock.errors import InputError, UnknownNameError

__all__ = ["FORMATS", "READERS", "LogFile", "find_logs"]

#: Format -> function that reads a log of it.
READERS: Final[dict[str, Reader]] = {
    "darshan": read_darshan,
    "slurm": read_slurm,
    "swf": read_swf,
    "recorder": read_recorder,
    "tmio": read_tmio,
    "history": read_history,
    "csv": read_csv,
}
#: What the option ``--format`` accepts.
FORMATS: Final = ("auto", *READERS)
#: Number of bytes that decide.
_HEAD: Final = 65536
_DARSHAN: Final = (6567223).to_bytes(8, "little")
_UNKNOWN: Final = "this is not a log of a known format"
_KNOWN: Final = (
    "known: Darshan, sacct --parsable2 or --json, SWF, Recorder, TMIO, CSV with the "
    "columns job,begin,end,bytes, archive of penstock serve"
)
_SQLITE: Final = b"SQLite format 3\0"


class LogFile(NamedTuple):
    """A log to read: a file, or the folder of a trace or an archive."""

    path: Path
    format: str


def find_logs(names: Iterable[str], chosen: str) -> Iterator[LogFile | Skipped]:
    """Yield all logs below the named files and folders, in the order of their names.

    A file or folder that is reached twice, by two names or by a link, counts once.

    Raises `InputError` if a name does not exist or the format is not known.
    """
    if chosen not in FORMATS:
        raise UnknownNameError("format", chosen, FORMATS, where="--format")
    visited: set[Path] = set()
    for name in names:
        path = Path(name)
        if not path.exists():
            raise InputError("no such file or folder", where=name)
        for item in _candidates(path, visited):
            yield item if isinstance(item, Skipped) else _classified(item, chosen)


def _candidates(path: Path, visited: set[Path]) -> Iterator[Path | Skipped]:
    """Yield `path`, or the files below it if it is a folder."""
    real = path.resolve()
    if real in visited:
        return
    visited.add(real)
    try:
        is_folder = path.is_dir()
        if not is_folder or is_recorder_folder(path) or is_archive_folder(path):
            yield path
            return
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        reason = f"cannot read the folder: {error.strerror}"
        yield Skipped(source=str(path), reason=reason)
        return
    for entry in entries:
        if not entry.name.startswith("."):
            yield from _candidates(Path(entry.path), visited)


def _classified(path: Path, chosen: str) -> LogFile | Skipped:
    if chosen != "auto":
        return LogFile(path, chosen)
    try:
        kind = _format_of(path)
    except OSError as error:
        reason = f"cannot read the file: {error.strerror}"
        return Skipped(source=str(path), reason=reason)
    if kind in READERS:
        return LogFile(path, kind)
    return Skipped(source=str(path), reason=kind)


def _format_of(path: Path) -> str:
    """Return the format of a file, or the reason why it is not a log."""
    if path.is_dir():
        return "recorder" if is_recorder_folder(path) else "history"
    if path.suffix == ".darshan":
        return "darshan"
    if not path.is_file():
        return "this is not a regular file"
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if _DARSHAN in (head[8:16], head[8:16][::-1]):
        return "darshan"
    if head.startswith(_SQLITE):
        return "history"
    return _text_format(head.decode("utf-8-sig", errors="replace"))


def _text_format(head: str) -> str:
    lines = [line for line in head.splitlines() if line.strip()]
    first = lines[0].strip() if lines else ""
    if not first:
        return "the file is empty"
    if first.startswith("{"):
        return _json_format(head)
    if "|" in first and "jobid" in first.lower():
        return "slurm"
    if set(intervals_csv.COLUMNS) <= set(first.split(",")):
        return "csv"
    if hint := _near_miss(first):
        return f"{_UNKNOWN}: {hint}"
    jobs = [line for line in lines if not line.startswith(";")]
    if not jobs or len(jobs[0].split()) == swf.FIELDS:
        return "swf"
    return f"{_UNKNOWN} ({_KNOWN})"


def _near_miss(first: str) -> str:
    """Return what is wrong with the first line of a file that is nearly a log."""
    if first.count("|") > 1:
        return "sacct --parsable2 without a header (leave out --noheader)"
    for sign, word in ((";", "semicolons"), ("\t", "tabs")):
        if set(intervals_csv.COLUMNS) <= set(first.split(sign)):
            return f"CSV with {word} (write job,begin,end,bytes with commas)"
    return ""


def _json_format(head: str) -> str:
    if any(f'"{kind}"' in head for kind in tmio.KINDS):
        return "tmio"
    if '"penstock"' in head:
        return "this is a file of penstock, not a log"
    if '"jobs"' in head or '"meta"' in head:
        return "slurm"
    return f"{_UNKNOWN} ({_KNOWN})"
