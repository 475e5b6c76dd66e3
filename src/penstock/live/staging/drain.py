# SPDX-License-Identifier: MIT
"""Draining journals: what programs have staged, or left behind, goes to its files.

A journal is drained whoever wrote it: of a living program in the background, of one
that has died because nobody else will. The file is found by the writer's own
descriptors or by its path, and must be the one that was staged: device, inode and time
of birth are compared. What cannot be drained stays, and is said.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from penstock.errors import InputError, PenstockError, UnavailableError
from penstock.live.staging.drainers import MEMORY
from penstock.live.staging.journal import Flag, Identity, Journal

__all__ = [
    "JournalReport",
    "JournalState",
    "default_folder",
    "drain_folder",
    "identity_of",
    "look",
    "put_aside",
]

#: Who holds the lock is waited for, since its last step, at most (s) ...
_PATIENCE_S: Final = 30.0
#: ... with looks in between (s).
_NAP_S: Final = 0.002
#: A journal that is being made, by a process.
_FRESH: Final = re.compile(r"\.new-([0-9a-f]{1,16})-[0-9a-f]+")
_STATX_BTIME: Final = 0x800
_AT_EMPTY_PATH: Final = 0x1000


class JournalState(StrEnum):
    """What is the matter with a journal."""

    #: Its writer lives.
    LIVE = "live"
    #: Its writer has ended, or has closed the file without waiting.
    ORPHAN = "orphan"
    #: All that was in it is in the file.
    DRAINED = "drained"
    #: A program was told of an error, and it was put aside.
    FAILED = "failed"
    #: It cannot be drained now.
    KEPT = "kept"


@dataclass(frozen=True)
class JournalReport:
    """A journal, and what was or can be done with it.

    Parameters
    ----------
    journal, file
        Where it is, and the staged file as far as it can be read.
    state
        What is the matter with it.
    pending_bytes, drained_bytes
        Data that are not in the file yet, and data that this drain has written.
    process
        The writer; 0 if the journal cannot be read.
    reason
        Why it is kept, or why it failed.
    """

    journal: Path
    file: str
    state: JournalState
    pending_bytes: int = 0
    drained_bytes: int = 0
    process: int = 0
    reason: str = ""


def default_folder() -> Path:
    """Return the folder that ``PENSTOCK_STAGING`` names, else the one in memory."""
    named = os.environ.get("PENSTOCK_STAGING")
    return Path(named) if named else Path(f"{MEMORY}{os.geteuid()}")


def look(folder: Path) -> list[JournalReport]:
    """Return all journals in a folder, without touching any."""
    return [_examined(path) for path in _journals(folder, failed=True)]


def drain_folder(folder: Path, *, failed: bool = False) -> list[JournalReport]:
    """Drain all journals in a folder; what cannot be drained is kept, with a reason.

    Parameters
    ----------
    failed
        Whether to try those again that were put aside after an error.
    """
    _stand_aside()
    _sweep(folder)
    return [_drained(path) for path in _journals(folder, failed=failed)]


def put_aside(folder: Path) -> int:
    """Return how many journals were put aside after an error."""
    return sum(1 for _ in folder.glob("*.failed"))


# --- Finding --------------------------------------------------------------------------


def _journals(folder: Path, *, failed: bool) -> list[Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"no folder of journals: {error.strerror}",
            where=str(folder),
            remedy="name the folder that programs stage into",
        ) from error
    ends = (".journal", ".failed") if failed else (".journal",)
    return [path for path in paths if path.name.endswith(ends)]


def _stand_aside() -> None:
    """If this process is staged itself: its writes must not wait for these journals."""
    function = getattr(ctypes.CDLL(None), "penstock_stand_aside", None)
    if function is not None:
        function()


def _sweep(folder: Path) -> None:
    """Remove journals whose making was interrupted: nothing is in them."""
    for path in folder.glob(".new-*"):
        made = _FRESH.fullmatch(path.name)
        if made and not Path(f"/proc/{int(made[1], 16)}").exists():
            with contextlib.suppress(OSError):
                path.unlink()


def _examined(path: Path) -> JournalReport:
    try:
        with Journal.open(path) as journal:
            state = JournalState.LIVE if journal.is_alive else JournalState.ORPHAN
            if path.suffix == ".failed":
                state = JournalState.FAILED
            return _found(journal, state, reason=_reason(journal.error))
    except (PenstockError, OSError) as error:
        return JournalReport(path, "", JournalState.KEPT, reason=_why(error))


def _found(
    journal: Journal, state: JournalState, *, drained: int = 0, reason: str = ""
) -> JournalReport:
    return JournalReport(
        journal.path,
        str(journal.file),
        state,
        journal.pending_bytes,
        drained,
        journal.process,
        reason,
    )


def _reason(number: int) -> str:
    return os.strerror(number) if number else ""


def _why(error: PenstockError | OSError) -> str:
    if isinstance(error, OSError):
        return error.strerror or ""
    return f"{error.what} ({error.remedy})" if error.remedy else error.what


# --- The file behind a journal --------------------------------------------------------


class _Statx(ctypes.Structure):
    # Only what is needed; the kernel writes 256 bytes.
    _fields_ = (
        ("mask", ctypes.c_uint32),
        ("before", ctypes.c_char * 76),
        ("birth_s", ctypes.c_int64),
        ("birth_ns", ctypes.c_uint32),
        ("after", ctypes.c_char * 164),
    )


def identity_of(descriptor: int) -> Identity:
    """Return which file a descriptor refers to."""
    status = os.fstat(descriptor)
    told = _Statx()
    statx = getattr(ctypes.CDLL(None), "statx", None)
    birth = 0
    if statx is not None:
        flags = (descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, ctypes.byref(told))
        if statx(*flags) == 0 and told.mask & _STATX_BTIME:
            birth = told.birth_s * 10**9 + told.birth_ns
    return Identity(status.st_dev, status.st_ino, birth)


def _candidates(journal: Journal) -> Iterator[Path]:
    """Yield where the file may be: behind the writer's descriptors, and by its path."""
    if journal.is_alive:
        wanted = journal.identity
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{journal.process}/fd").iterdir():
                with contextlib.suppress(OSError):
                    status = link.stat()
                    if (status.st_dev, status.st_ino) == (wanted.device, wanted.inode):
                        yield link
    yield journal.file


@contextlib.contextmanager
def _opened(journal: Journal) -> Iterator[int]:
    """Open the staged file for writing; an `InputError` if it is not to be found."""
    reason = "the file is not there any more"
    for path in _candidates(journal):
        try:
            descriptor = _open_to_write(path)
        except OSError as error:
            if error.errno != errno.ENOENT:
                reason = f"the file cannot be written: {error.strerror}"
            continue
        try:
            same_boot = journal.is_of_this_boot
            if journal.identity.is_that_of(
                identity_of(descriptor), same_boot=same_boot
            ):
                yield descriptor
                return
            reason = "another file has its name now"
        finally:
            os.close(descriptor)
    raise InputError(reason, where=str(journal.file), remedy="the journal is kept")


def _open_to_write(path: Path) -> int:
    """Open a file, also one that its owner has made read-only."""
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        return os.open(path, flags)
    except PermissionError:
        status = path.stat()
        if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWUSR:
            raise
    mode = stat.S_IMODE(status.st_mode)
    path.chmod(mode | stat.S_IWUSR)
    try:
        return os.open(path, flags)
    finally:
        path.chmod(mode)


# --- Draining -------------------------------------------------------------------------


def _drained(path: Path) -> JournalReport:
    try:
        with Journal.open(path) as journal:
            return _drain(journal)
    except (PenstockError, OSError) as error:
        return JournalReport(path, "", JournalState.KEPT, reason=_why(error))


def _drain(journal: Journal) -> JournalReport:
    before, reason = journal.drained_bytes, ""
    try:
        if Flag.ASKS in journal.flags and journal.is_alive:
            state, reason = (
                JournalState.LIVE,
                "its program drains it by itself (on_flush)",
            )
        else:
            _empty(journal)
            gone = _retire(journal) or not journal.is_alive
            state = JournalState.DRAINED if gone else JournalState.LIVE
    except (PenstockError, OSError) as error:
        state, reason = JournalState.KEPT, _why(error)
    done = journal.drained_bytes - before
    return _found(journal, state, drained=done, reason=reason)


def _empty(journal: Journal) -> None:
    _take_back(journal)
    if not journal.is_empty:
        with _opened(journal) as file:
            _drain_to(journal, file)


def _take_back(journal: Journal) -> None:
    """After a restart of the machine, drain again what was not synced."""
    if journal.is_of_this_boot or journal.is_alive:
        return
    with journal.locked() as held:
        if held:
            journal.go_back()


def _drain_to(journal: Journal, file: int) -> None:
    seen, deadline = -1, 0.0
    while not _has_drained(journal, file):
        if journal.drained_bytes != seen:
            seen, deadline = journal.drained_bytes, time.monotonic() + _PATIENCE_S
        if time.monotonic() > deadline:
            raise UnavailableError("another process holds it", where=str(journal.path))
        time.sleep(_NAP_S)


def _has_drained(journal: Journal, file: int) -> bool:
    """Drain all that is there; False if another process drains."""
    while True:
        # Other drainers have their turn after every step.
        with journal.locked() as held:
            if not held:
                return False
            if not journal.step(file):
                if journal.is_damaged:
                    raise InputError("a record is damaged", where=str(journal.path))
                journal.settle(file)
                return True


def _retire(journal: Journal) -> bool:
    with journal.locked() as held:
        return held and journal.retire()
