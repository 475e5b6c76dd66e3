# SPDX-License-Identifier: MIT
"""Rules that decide which application owns an opened file: the first match wins.

A rule matches if all of its conditions hold. The conditions concern the process that
opens the file, as the kernel knows it, and the path of the file:

===========  ======================================================================
condition    holds if
===========  ======================================================================
`job`        the process belongs to this job of live control, and the job to its user
`cgroup`     the process is in a control group whose path matches
`slurm_job`  the process is in a control group that Slurm has made for this job
`user`       the process runs as this user
`group`      the process runs with this group, as its own or as a supplementary one
`path`       the file is this one, or below this folder, relative to the mount point
`program`    the executable or the process name matches
===========  ======================================================================

`job`, `cgroup`, `slurm_job` and `program` are patterns of a shell (``*``, ``?``,
``[ab]``); the others are compared literally. Facts about a process are read only if a
rule needs them.

A user cannot forge `user`, `group` and `slurm_job`. Everybody can give a program and a
job any name, and may have a control group below which to make others of any name.

The data path keeps each answer for a second (``native/mount/classify.h``).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from penstock.kernel_text import kernel_lines
from penstock.live.wire.identity import is_operator
from penstock.mount.job_lookups import JobLookups

__all__ = ["CONDITIONS", "FileOpener", "Rule", "application_of"]

_PROC: Final = Path("/proc")
_PAGE: Final = b"PENSTOCK_PAGE="
#: The control group of a job of Slurm, of version 2 or 1. Only root can make control
#: groups there.
_SLURM_JOB: Final = re.compile(
    r"/(?:system\.slice/(?:[^/]+_)?slurmstepd\.scope|slurm(?:_[^/]+)?/uid_[0-9]+)"
    r"/job_([0-9]+)(?:/.*)?"
)
#: Most bytes of a note.
_NOTE_BYTES: Final = 1 << 20


class FileOpener:
    """A process that uses a file; facts are read from /proc on first use.

    Parameters
    ----------
    pid, uid
        Thread and user, as reported by the kernel.
    file
        Path of the file relative to the mount point, with a leading ``/``.
    lookups
        Look for jobs.
    """

    def __init__(
        self,
        pid: int,
        uid: int,
        file: str,
        proc: Path = _PROC,
        lookups: JobLookups | None = None,
    ) -> None:
        self.uid = uid
        self.file = file
        self._proc = proc / str(pid)
        self._lookups = lookups or JobLookups()

    @cached_property
    def programs(self) -> list[str]:
        """Names of the program: the process name and the name of the executable."""
        names = [os.fsdecode(self._read("comm")).removesuffix("\n")]
        # The process may have ended, or belong to another user.
        with suppress(OSError):
            names.append((self._proc / "exe").readlink().name)
        return names

    @cached_property
    def cgroups(self) -> list[str]:
        """Paths of the control groups of the process, one per hierarchy."""
        return [line.split(":", 2)[-1] for line in kernel_lines(self._read("cgroup"))]

    @cached_property
    def slurm_jobs(self) -> list[str]:
        """Number of the job of Slurm that the process belongs to, if any."""
        matches = map(_SLURM_JOB.fullmatch, self.cgroups)
        return [match[1] for match in matches if match]

    @cached_property
    def groups(self) -> list[int]:
        """Numbers of the groups of the process."""
        numbers: list[int] = []
        for line in kernel_lines(self._read("status")):
            name, _, text = line.partition(":")
            if name == "Groups":
                numbers += map(int, text.split())
            elif name == "Gid":
                # Real, effective, saved, and the one that the file system looks at.
                numbers.append(int(text.split()[-1]))
        return numbers

    @cached_property
    def jobs(self) -> list[str]:
        """Name of the job of the process under live control; empty if it has none.

        The environment names the page of the job, and the note beside the page holds
        the job name. The note must belong to root or to this process, and must name
        the user of the process: so a program cannot claim a job of another user.
        """
        return self._lookups.names(self.uid, self._find_jobs)

    def _find_jobs(self) -> list[str]:
        """Return the jobs of the process; this may wait for the storage."""
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
    try:
        content = msgspec.json.decode(_trusted_content(page), type=_Note)
    except (OSError, ValueError, msgspec.MsgspecError):
        return []
    return [content.job.partition(":")[2]] if content.user == uid else []


def _trusted_content(page: Path) -> bytes:
    """Return the note of a page; nothing if another user could have written it.

    The process names the page, and can replace what is there at any time: so the file
    that was opened is looked at, and opening must not wait for a pipe.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(
        page.with_suffix(".note"), "rb", opener=lambda name, _: os.open(name, flags)
    ) as file:
        status = os.fstat(file.fileno())
        if not is_operator(status.st_uid) or not stat.S_ISREG(status.st_mode):
            return b""
        return file.read(_NOTE_BYTES)


@dataclass(frozen=True, slots=True)
class Rule:
    """Conditions, and the application that owns the files of matching processes."""

    application: str
    job: str | None = None
    cgroup: str | None = None
    slurm_job: str | None = None
    user: int | None = None
    group: int | None = None
    path: str | None = None
    program: str | None = None

    def matches(self, opener: FileOpener) -> bool:
        """Return True if all conditions hold; cheap conditions are tested first."""
        return (
            self.user in (None, opener.uid)
            and (self.path is None or _is_below(opener.file, self.path))
            and (self.group is None or self.group in opener.groups)
            and (self.program is None or _any_matches(opener.programs, self.program))
            and (self.cgroup is None or _any_matches(opener.cgroups, self.cgroup))
            and (
                self.slurm_job is None
                or _any_matches(opener.slurm_jobs, self.slurm_job)
            )
            and (self.job is None or _any_matches(opener.jobs, self.job))
        )

    def document(self) -> dict[str, Any]:
        """Return the rule as it is written in a TOML file."""
        values = {name: getattr(self, name) for name in ("application", *CONDITIONS)}
        return {name: value for name, value in values.items() if value is not None}


#: Names of the conditions.
CONDITIONS: Final = (
    *("job", "cgroup", "slurm_job", "user", "group", "path", "program"),
)


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
