# SPDX-License-Identifier: MIT
"""To which application a file that is opened belongs: the first rule that fits.

A rule has conditions, all of which must hold. They are about the process that opens the
file, as the kernel knows it, and about the path of the file:

==========  ======================================================================
condition   holds if
==========  ======================================================================
`job`       the process is of this job of live control, and the job is its user's
`cgroup`    it is in a control group whose path fits
`user`      it is of this user
`path`      the file is this one, or below this folder, seen from the mount point
`program`   its program's file or name fits
==========  ======================================================================

Words fit as file names do in a shell (``*``, ``?``, ``[ab]``). What a rule does not
ask is not read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["CONDITIONS", "FileOpener", "Rule", "application_of"]

_PROC: Final = Path("/proc")
_PAGE: Final = b"PENSTOCK_PAGE="


class FileOpener:
    """Who opens a file, and which; facts are read when they are asked for.

    Parameters
    ----------
    pid, uid
        The thread and its user, as the kernel says.
    fd, root
        Descriptors of the file and of the mounted folder.
    """

    def __init__(
        self, pid: int, uid: int, fd: int, root: int, proc: Path = _PROC
    ) -> None:
        self.uid = uid
        self._fds = fd, root
        self._folder = proc / str(pid)

    @cached_property
    def file(self) -> str:
        """Path of the file, seen from the mount point."""
        file, root = (Path(f"/proc/self/fd/{fd}").readlink() for fd in self._fds)
        return f"/{file.relative_to(root)}" if file.is_relative_to(root) else ""

    @cached_property
    def programs(self) -> list[str]:
        """Names of the program: of its process, and of its file."""
        names = [self._read("comm").decode(errors="surrogateescape").rstrip("\n")]
        # It may have ended, or be another user's.
        with suppress(OSError):
            names.append((self._folder / "exe").readlink().name)
        return names

    @cached_property
    def cgroups(self) -> list[str]:
        """Paths of its control groups, one in each hierarchy."""
        text = self._read("cgroup").decode(errors="surrogateescape")
        return [line.split(":", 2)[-1] for line in text.splitlines()]

    @cached_property
    def jobs(self) -> list[str]:
        """Name of its job under live control, if it is of one.

        The environment says where the job's page is, and the note beside it the name.
        The note must be written by root or by ourselves, and be of the same user: so
        nobody can claim another user's job.
        """
        variables = self._read("environ").split(b"\0")
        pages = [v.removeprefix(_PAGE) for v in variables if v.startswith(_PAGE)]
        return _noted(Path(os.fsdecode(pages[0])), self.uid) if pages else []

    def _read(self, name: str) -> bytes:
        try:
            return (self._folder / name).read_bytes()
        except OSError:
            return b""


class _Note(msgspec.Struct):
    job: str
    user: int


def _noted(page: Path, uid: int) -> list[str]:
    note = page.with_suffix(".note")
    try:
        if note.stat().st_uid not in (0, os.geteuid()):
            return []
        found = msgspec.json.decode(note.read_bytes(), type=_Note)
    except (OSError, ValueError, msgspec.MsgspecError):
        return []
    return [found.job.partition(":")[2]] if found.user == uid else []


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions, and the application of those who meet all."""

    application: str
    job: str | None = None
    cgroup: str | None = None
    user: int | None = None
    path: str | None = None
    program: str | None = None

    def fits(self, caller: FileOpener) -> bool:
        """Return whether all conditions hold; the cheap ones are asked first."""
        return (
            self.user in (None, caller.uid)
            and (self.path is None or _below(caller.file, self.path))
            and (self.program is None or _any(caller.programs, self.program))
            and (self.cgroup is None or _any(caller.cgroups, self.cgroup))
            and (self.job is None or _any(caller.jobs, self.job))
        )

    def document(self) -> dict[str, Any]:
        """Return the rule as it is written in a file."""
        values = {name: getattr(self, name) for name in ("application", *CONDITIONS)}
        return {name: value for name, value in values.items() if value is not None}


#: What a rule can ask.
CONDITIONS: Final = ("job", "cgroup", "user", "path", "program")


def application_of(caller: FileOpener, rules: Sequence[Rule], default: str) -> str:
    """Return the application of the first rule that fits, else `default`."""
    for rule in rules:
        if rule.fits(caller):
            return rule.application
    return default


def _any(names: list[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _below(file: str, folder: str) -> bool:
    return file == folder or file.startswith(folder.rstrip("/") + "/")
