# SPDX-License-Identifier: MIT
"""Read many logs: in worker processes, and without losing what was read before.

Darshan logs are read by worker processes: a damaged log can crash Darshan's library,
which then ends only the worker. A log that kills its workers again and again is
skipped. The readers of the other formats are plain Python and run in this process.

The records of finished logs are appended to a *journal*, one line of JSON per log. If
the import is stopped, the next one with the same journal reads only the other logs. A
log whose size or time of change differs is read again. A journal of another version or
other settings is started anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import msgspec

from penstock import __version__
from penstock.advice.importing.sources import READERS, LogFile
from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.errors import InputError, PenstockError, reason_of
from penstock.experiments.output.provenance import printable
from penstock.experiments.runners.local_pool import LocalPool

__all__ = ["ImportJournal", "LogOutcome", "read_logs"]


_Item = TypeVar("_Item", LoggedJob, Skipped)
#: Formats whose reader can end the process.
_RISKY: Final = frozenset({"darshan"})


class LogOutcome(msgspec.Struct, frozen=True):
    """What one log gave."""

    jobs: list[LoggedJob] = []
    skipped: list[Skipped] = []


class _Line(msgspec.Struct, frozen=True):
    """A finished log in the journal."""

    log: str
    size_bytes: int
    changed_ns: int
    outcome: LogOutcome


@dataclass(frozen=True, slots=True)
class _ReadLog:
    """A task for a worker: read one log."""

    index: int
    log: LogFile
    gap_s: float

    @property
    def name(self) -> str:
        """The file, for messages."""
        return str(self.log.path)

    def run(self) -> LogOutcome:
        """Read the log; a log that cannot be read is skipped, with the reason."""
        jobs: list[LoggedJob] = []
        skipped: list[Skipped] = []
        try:
            for item in READERS[self.log.format](self.log.path, self.gap_s):
                if isinstance(item, Skipped):
                    skipped.append(item)
                elif _is_finite(item):
                    jobs.append(item)
                else:
                    reason = "the log is damaged: it has times that are not numbers"
                    skipped.append(Skipped(source=item.source, reason=reason))
        except PenstockError as error:
            skipped.append(Skipped(source=self.name, reason=str(error)))
        except OSError as error:
            reason = f"cannot read the file: {error.strerror}"
            skipped.append(Skipped(source=self.name, reason=reason))
        except (ValueError, ArithmeticError, MemoryError) as error:
            reason = f"the log is damaged: {reason_of(error)}"
            skipped.append(Skipped(source=self.name, reason=reason))
        # The name of a file may hold bytes that JSON cannot.
        return LogOutcome(
            [_printed(job, ("name", "source", "clock")) for job in jobs],
            [_printed(item, ("source", "reason")) for item in skipped],
        )


def _printed(item: _Item, fields: tuple[str, ...]) -> _Item:
    """Return a job or a skipped log whose texts can be encoded as UTF-8."""
    texts = {name: printable(getattr(item, name)) for name in fields}
    return msgspec.structs.replace(item, **texts)


def _is_finite(job: LoggedJob) -> bool:
    """Return True if all times and volumes of a job are numbers that make sense."""
    numbers = [value for b in job.bursts for value in (b.begin_s, b.end_s, b.io_s)]
    numbers += [burst.volume_bytes for burst in job.bursts]
    numbers += [job.run_s, job.nodes]
    return math.isfinite(job.start_s) and all(0.0 <= n < math.inf for n in numbers)


class ImportJournal:
    """The file of finished logs; a context manager.

    `finish` deletes it: everything has been imported.
    """

    def __init__(self, path: Path, gap_s: float) -> None:
        self._path = path
        self._header = f"penstock {__version__} import, gap {gap_s!r} s".encode()
        self._known = self._load()
        self._stack = ExitStack()

    def __enter__(self) -> ImportJournal:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            stream: BinaryIO = self._path.open("ab" if self._known else "wb")
            self._stream = self._stack.enter_context(stream)
            if not self._known:
                self._stream.write(self._header + b"\n")
        except OSError as error:
            raise self._failure(error) from None
        return self

    def __exit__(self, *_: object) -> None:
        # Closing fails again if the last write has failed: it was reported.
        with suppress(OSError):
            self._stack.close()

    def _failure(self, error: OSError) -> InputError:
        """Delete the journal, which may fill the disk; return the error to raise."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        return InputError(
            f"cannot write the journal of the import: {error.strerror}",
            where=str(self._path),
            remedy="free space there, or name another file for the instance",
        )

    def recall(self, log: LogFile) -> LogOutcome | None:
        """Return what a log gave last time; None if it is new or has changed."""
        line = self._known.get(printable(str(log.path)))
        if line is None or (line.size_bytes, line.changed_ns) != _state(log.path):
            return None
        return line.outcome

    def add(self, log: LogFile, outcome: LogOutcome) -> None:
        """Append a finished log."""
        size, changed = _state(log.path)
        line = _Line(printable(str(log.path)), size, changed, outcome)
        try:
            self._stream.write(msgspec.json.encode(line) + b"\n")
            self._stream.flush()
        except OSError as error:
            raise self._failure(error) from None

    def finish(self) -> None:
        """Delete the journal."""
        self._stack.close()
        self._path.unlink(missing_ok=True)

    def _load(self) -> dict[str, _Line]:
        try:
            header, *lines = self._path.read_bytes().split(b"\n")
        except OSError:
            return {}
        if header != self._header:
            return {}
        known = {}
        for text in lines:
            try:
                line = msgspec.json.decode(text, type=_Line)
            except msgspec.DecodeError:
                continue  # The import was stopped while it wrote this line.
            known[line.log] = line
        return known


def read_logs(
    logs: Sequence[LogFile],
    gap_s: float,
    *,
    workers: int,
    journal: ImportJournal | None = None,
    show: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[LogOutcome]:
    """Return what every log gave, in their order; `show` is told the progress."""
    outcomes: dict[int, LogOutcome] = {}
    for index, log in enumerate(logs):
        if journal is not None and (known := journal.recall(log)) is not None:
            outcomes[index] = known
    tasks = [
        _ReadLog(index, log, gap_s)
        for index, log in enumerate(logs)
        if index not in outcomes
    ]
    show(len(outcomes), len(logs))
    for task, outcome in _outcomes(tasks, workers):
        outcomes[task.index] = outcome
        if journal is not None:
            journal.add(task.log, outcome)
        show(len(outcomes), len(logs))
    return [outcomes[index] for index in range(len(logs))]


def _outcomes(
    tasks: Sequence[_ReadLog], workers: int
) -> Iterator[tuple[_ReadLog, LogOutcome]]:
    """Yield every task with what its log gave, as soon as it is read."""
    for task in tasks:
        if task.log.format not in _RISKY:
            yield task, task.run()
    risky = [task for task in tasks if task.log.format in _RISKY]
    pool = LocalPool(workers, give_up=_crashed)
    yield from pool.run(risky, lambda _: None)


def _crashed(task: _ReadLog, death: str) -> LogOutcome:
    # Without the number of the process, so that equal reasons are reported together.
    _, _, how = death.partition(" ")
    reason = f"the log is damaged: the process that reads it {how}"
    return LogOutcome(skipped=[Skipped(source=task.name, reason=reason)])


def _state(path: Path) -> tuple[int, int]:
    """Return size and time of change of a log; (0, 0) if it is gone."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
