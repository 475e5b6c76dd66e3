# SPDX-License-Identifier: MIT
"""Rules that decide which application owns an opened file: the first match wins.

A rule matches if all of its conditions hold. The conditions concern the process that
opens the file, as the kernel knows it, and the path of the file:

==========  ======================================================================
condition   holds if
==========  ======================================================================
`job`       the process belongs to this job of live control, and the job to its user
`cgroup`    the process is in a control group whose path matches
`user`      the process runs as this user
`path`      the file is this one, or below this folder, relative to the mount point
`program`   the executable or the process name matches
==========  ======================================================================

`job`, `cgroup` and `program` are patterns of a shell (``*``, ``?``, ``[ab]``); the
others are compared literally. Facts about a process are read only if a rule needs them.

The data path keeps each answer for a second (``native/mount/classify.h``).
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
    """A process that uses a file; facts are read from /proc on first use.

    Parameters
    ----------
    pid, uid
        Thread and user, as reported by the kernel.
    file
        Path of the file relative to the mount point, with a leading ``/``.
    """

    def __init__(self, pid: int, uid: int, file: str, proc: Path = _PROC) -> None:
        self.uid = uid
        self.file = file
        self._proc = proc / str(pid)

    @cached_property
    def programs(self) -> list[str]:
        """Names of the program: the process name and the name of the executable."""
        names = [self._read("comm").decode(errors="surrogateescape").rstrip("\n")]
        # The process may have ended, or belong to another user.
        with suppress(OSError):
            names.append((self._proc / "exe").readlink().name)
        return names

    @cached_property
    def cgroups(self) -> list[str]:
        """Paths of the control groups of the process, one per hierarchy."""
        text = self._read("cgroup").decode(errors="surrogateescape")
        return [line.split(":", 2)[-1] for line in text.splitlines()]

    @cached_property
    def jobs(self) -> list[str]:
        """Name of the job of the process under live control; empty if it has none.

        The environment names the page of the job, and the note beside the page holds
        the job name. The note must belong to root or to this process, and must name
        the user of the process: so a program cannot claim a job of another user.
        """
        variables = self._read("environ").split(b"\0")
        pages = [v.removeprefix(_PAGE) for v in variables if v.startswith(_PAGE)]
        return _job_names(Path(os.fsdecode(pages[0])), self.uid) if pages else []

    def _read(self, name: str) -> bytes:
        """Return a file of /proc/PID; empty if it cannot be read."""
        try:
            return (self._proc / name).read_bytes()
        except OSError:
            return b""


class _Note(msgspec.Struct):
    """The note beside a page; `job` is ``UID:NAME``."""

    job: str
    user: int


def _job_names(page: Path, uid: int) -> list[str]:
    """Return the job name in the note of a page; empty if it is not trustworthy."""
    note = page.with_suffix(".note")
    try:
        if note.stat().st_uid not in (0, os.geteuid()):
            return []
        content = msgspec.json.decode(note.read_bytes(), type=_Note)
    except (OSError, ValueError, msgspec.MsgspecError):
        return []
    return [content.job.partition(":")[2]] if content.user == uid else []


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions, and the application that owns the files of matching processes."""

    application: str
    job: str | None = None
    cgroup: str | None = None
    user: int | None = None
    path: str | None = None
    program: str | None = None

    def matches(self, opener: FileOpener) -> bool:
        """Return True if all conditions hold; cheap conditions are tested first."""
        return (
            self.user in (None, opener.uid)
            and (self.path is None or _is_below(opener.file, self.path))
            and (self.program is None or _any_matches(opener.programs, self.program))
            and (self.cgroup is None or _any_matches(opener.cgroups, self.cgroup))
            and (self.job is None or _any_matches(opener.jobs, self.job))
        )

    def document(self) -> dict[str, Any]:
        """Return the rule as it is written in a TOML file."""
        values = {name: getattr(self, name) for name in ("application", *CONDITIONS)}
        return {name: value for name, value in values.items() if value is not None}


#: Names of the conditions.
CONDITIONS: Final = ("job", "cgroup", "user", "path", "program")


def application_of(opener: FileOpener, rules: Sequence[Rule], default: str) -> str:
    """Return the application that owns an opened file: first match, else `default`."""
    for rule in rules:
        if rule.matches(opener):
            return rule.application
    return default


def _any_matches(names: list[str], pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names)


def _is_below(file: str, folder: str) -> bool:
    return file == folder or file.startswith(folder.rstrip("/") + "/")
