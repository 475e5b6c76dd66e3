# SPDX-License-Identifier: MIT
"""List the journals of a folder, and have them drained: ``penstock drain``.

The preload library drains, in a process of its own (`drain_process`); here journals are
found, put in order and reported. A journal that cannot be drained is kept, and its
report has the reason.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from penstock.errors import InputError, PenstockError
from penstock.live.staging.drain_process import NamedDrain
from penstock.live.staging.drainers import MEMORY, left_behind
from penstock.live.staging.journal import FAILED, Flag, Journal, part_of_unfinished

__all__ = [
    "JournalReport",
    "JournalState",
    "count_failed",
    "default_folder",
    "default_folders",
    "drain_folder",
    "list_journals",
]

#: Name of a journal that a process is making: nothing is in it yet.
_UNFINISHED: Final = re.compile(r"\.new-([0-9a-f]{1,16})-[0-9a-f]+")
#: Error numbers that the library answers with for reasons of its own.
_REASONS: Final = {
    errno.ENOENT: "the file is not there any more (the journal is kept)",
    errno.ESTALE: "another file has its name now (the journal is kept)",
    errno.EUCLEAN: "a record is damaged",
    errno.EREMCHG: (
        "the file was written while its part could not be read (penstock drain "
        "--failed writes the older data of the part over it)"
    ),
    errno.ECANCELED: "it was put aside after an error (penstock drain --failed)",
    errno.EBUSY: "its program drains it by itself (on_flush)",
    errno.EAGAIN: "another process holds it",
    errno.EINTR: "the process that drained it was killed",
}


class JournalState(StrEnum):
    """State of a journal."""

    #: Its writer lives.
    LIVE = "live"
    #: Its writer has ended, or has closed the file without waiting for the drain.
    ORPHAN = "orphan"
    #: All its data are in the file.
    DRAINED = "drained"
    #: It was put aside after an error that its program has received.
    FAILED = "failed"
    #: It cannot be drained now.
    KEPT = "kept"


@dataclass(frozen=True)
class JournalReport:
    """A journal, its state, and the result of draining it.

    Parameters
    ----------
    journal, file
        Paths of the journal and of the staged file; the latter is empty if the journal
        cannot be read.
    pending_bytes, drained_bytes
        Data that are not in the file yet, and data that were drained just now.
    process
        Number of the writer; 0 if the journal cannot be read.
    reason
        Why the journal is kept, or why it failed.
    part
        Path of the part, if the file was redirected to other storage targets; else
        empty.
    """

    journal: Path
    file: str
    state: JournalState
    pending_bytes: int = 0
    drained_bytes: int = 0
    process: int = 0
    reason: str = ""
    part: str = ""


def default_folder() -> Path:
    """Return the folder that ``PENSTOCK_STAGING`` names, else the one in memory."""
    named = os.environ.get("PENSTOCK_STAGING")
    return Path(named) if named else Path(f"{MEMORY}{os.geteuid()}")


def default_folders(patterns: Iterable[str]) -> list[Path]:
    """Return the default folder, and folders of this user that match `patterns`."""
    user = os.geteuid()
    found = [each.folder for each in left_behind(patterns) if each.user == user]
    others = [each for each in found if each != Path(f"{MEMORY}{user}")]
    return list(dict.fromkeys([default_folder(), *others]))


def list_journals(folder: Path) -> list[JournalReport]:
    """Report all journals in a folder, without changing any."""
    return _reports(_paths(folder, failed=True), _present_state)


def drain_folder(folder: Path, *, failed: bool = False) -> list[JournalReport]:
    """Drain all journals in a folder, in the order of their names.

    Parameters
    ----------
    failed
        Whether to drain those too that were put aside after an error.

    Raises
    ------
    InputError
        If there is no such folder, or no preload library. No journal was touched.
    """
    paths = _paths(folder, failed=failed)
    _remove_unfinished(folder)
    if not paths:
        return []
    with NamedDrain(folder) as process:
        return _reports(paths, lambda journal: _drain(journal, process), process.drain)


def count_failed(folder: Path) -> int:
    """Return how many journals were put aside after an error."""
    return sum(1 for _ in folder.glob(f"*{FAILED}"))


# --- Finding --------------------------------------------------------------------------


def _paths(folder: Path, *, failed: bool) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"no folder of journals: {error.strerror}",
            where=str(folder),
            remedy="name the folder that programs stage into",
        ) from error
    suffixes = (".journal", FAILED) if failed else (".journal",)
    return [path for path in paths if path.name.endswith(suffixes)]


def _remove_unfinished(folder: Path) -> None:
    """Remove journals whose process died while it made them: nothing is in them."""
    for path in folder.glob(".new-*"):
        name = _UNFINISHED.fullmatch(path.name)
        if name and not Path(f"/proc/{int(name[1], 16)}").exists():
            with contextlib.suppress(OSError):
                _remove_part(path)
                path.unlink()


def _remove_part(path: Path) -> None:
    """Remove the part of an unfinished journal, if there is one."""
    part = part_of_unfinished(path)
    if part is not None:
        part.unlink(missing_ok=True)


# --- Reporting ------------------------------------------------------------------------


def _reports(
    paths: list[Path],
    inspect: Callable[[Journal], JournalReport],
    note: Callable[[str], object] = str,
) -> list[JournalReport]:
    """Report every journal; one that another process has removed is left out.

    `note` is called with the name of one that cannot be read: if its part is away, the
    library notes in the journal when its file was last changed.
    """
    reports = []
    for path in paths:
        try:
            with Journal.open(path) as journal:
                reports.append(inspect(journal))
        except FileNotFoundError:
            continue
        except PenstockError as error:
            note(path.name)
            reason = f"{error.what} ({error.remedy})" if error.remedy else error.what
            reports.append(JournalReport(path, "", JournalState.KEPT, reason=reason))
        except OSError as error:
            reason = error.strerror or str(error)
            reports.append(JournalReport(path, "", JournalState.KEPT, reason=reason))
    return reports


def _present_state(journal: Journal) -> JournalReport:
    state = JournalState.LIVE if journal.is_alive else JournalState.ORPHAN
    if journal.path.suffix == FAILED:
        state = JournalState.FAILED
    reason = os.strerror(journal.error) if journal.error else ""
    return _report(journal, state, reason=reason)


def _drain(journal: Journal, process: NamedDrain) -> JournalReport:
    before_bytes = journal.drained_bytes
    error = process.drain(journal.path.name)
    if error == 0 and not journal.is_alive and Flag.PUT_ASIDE in journal.flags:
        # Another process has put it aside meanwhile.
        error = 0 if journal.is_empty else errno.ECANCELED
    if error == 0:
        state = JournalState.LIVE if journal.is_alive else JournalState.DRAINED
    else:
        state = JournalState.LIVE if error == errno.EBUSY else JournalState.KEPT
    drained_bytes = journal.drained_bytes - before_bytes
    return _report(journal, state, drained_bytes, _reason(error, journal))


def _reason(error: int, journal: Journal) -> str:
    """Return in words why a journal was not drained; nothing if it was."""
    if error == 0:
        return ""
    if error in _REASONS:
        return _REASONS[error]
    text = os.strerror(error)
    return text if error == journal.error else f"the file cannot be written: {text}"


def _report(
    journal: Journal, state: JournalState, drained_bytes: int = 0, reason: str = ""
) -> JournalReport:
    return JournalReport(
        journal.path,
        str(journal.file),
        state,
        journal.pending_bytes,
        drained_bytes,
        journal.process,
        reason,
        str(journal.part or ""),
    )
