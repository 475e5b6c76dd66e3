# SPDX-License-Identifier: MIT
"""Find the cgroups of a job, so that a process can join them.

The batch system limits a job, and ends it, by its cgroups. A process that the agent
starts for a user must be in the cgroups of the job: otherwise the job has a process
that the batch system does not limit and does not end.

The kernel says in which cgroups a process is (``/proc/PID/cgroup``), and where their
hierarchies are mounted (``/proc/self/mountinfo``). Version 2, version 1, and both at
once are known. A process that writes ``0`` to ``cgroup.procs`` joins that cgroup.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from penstock.errors import UnavailableError
from penstock.kernel_text import MOUNT_TABLE, MountEntry, kernel_lines, mount_table
from penstock.live.wire.identity import parse_start_ticks

__all__ = ["cgroup_files", "open_cgroups"]

_REMEDY: Final = "its programs drain by themselves, and the agent after their end"


def open_cgroups(processes: Mapping[int, int], user: int) -> list[int]:
    """Open the files through which a process joins the cgroups of a job, for writing.

    The first process that lives and belongs to the user counts. Cgroups that this
    process is in as well are left out. The caller closes the descriptors.

    Parameters
    ----------
    processes
        Process id -> start of the process (clock ticks after boot): processes that may
        belong to the job.
    user
        User id of the owner of the job.

    Raises
    ------
    UnavailableError
        If no such process lives, or its cgroups cannot be opened.
    """
    for pid, start in processes.items():
        target = _cgroups_of(pid, start, user)
        if target is not None:
            own = Path("/proc/self/cgroup").read_bytes()
            return _open_all(cgroup_files(target, own))
    raise UnavailableError(
        "no process of the job is left, so its cgroups are not known", remedy=_REMEDY
    )


def _open_all(paths: list[Path]) -> list[int]:
    with ExitStack() as undo:
        descriptors = []
        for path in paths:
            try:
                descriptors.append(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
            except OSError as error:
                raise UnavailableError(
                    f"the cgroup of the job cannot be joined: {error.strerror}",
                    where=str(path),
                    remedy=_REMEDY,
                ) from None
            undo.callback(os.close, descriptors[-1])
        undo.pop_all()
    return descriptors


# --- A process ------------------------------------------------------------------------


def _cgroups_of(pid: int, start: int, user: int) -> bytes | None:
    """Return ``/proc/PID/cgroup``; None unless it is this process of this user."""
    with suppress(OSError), ExitStack() as stack:
        # An open folder stays that of one process, even if another gets its number.
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        folder = os.open(f"/proc/{pid}", flags)
        stack.callback(os.close, folder)
        is_same = parse_start_ticks(_read(folder, "stat")) == start
        if is_same and _users(_read(folder, "status")) == {user}:
            cgroups = _read(folder, "cgroup")
            # It may have become root, and moved, before its cgroups were read.
            if _users(_read(folder, "status")) == {user}:
                return cgroups
    return None


def _users(status: bytes) -> set[int]:
    """Return the user ids of a process: real, effective, saved and of the file system.

    A service of root may have the effective one of a user for a while.
    """
    for line in kernel_lines(status):
        if line.startswith("Uid:"):
            return {int(word) for word in line.split()[1:]}
    return set()


def _read(folder: int, name: str) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


# --- The hierarchies ------------------------------------------------------------------


def cgroup_files(target: bytes, own: bytes, mounts: Path = MOUNT_TABLE) -> list[Path]:
    """Return the files through which a process leaves its cgroups for others.

    Parameters
    ----------
    target, own
        ``/proc/PID/cgroup`` of a process in the cgroups to join, and of this process.
    mounts
        The table of mounts.

    Raises
    ------
    UnavailableError
        If a hierarchy is not mounted, or does not show the cgroup.
    """
    present = set(kernel_lines(own))
    lines = [line for line in kernel_lines(target) if line not in present]
    entries = [each for each in mount_table(mounts) if each.kind.startswith("cgroup")]
    return [_procs_file(line, entries) for line in lines]


def _procs_file(line: str, mounts: list[MountEntry]) -> Path:
    """Return the file for one line of ``/proc/PID/cgroup``: NUMBER:CONTROLLERS:PATH."""
    _, controllers, path = line.split(":", 2)
    for mount in mounts:
        options = mount.options.split(",")
        is_hierarchy = (
            mount.kind == "cgroup" and {*controllers.split(",")} <= {*options}
            if controllers
            else mount.kind == "cgroup2"
        )
        # Paths outside of the own namespace begin with "/..".
        if is_hierarchy and ".." not in PurePosixPath(path).parts:
            with suppress(ValueError):
                inside = PurePosixPath(path).relative_to(mount.root)
                return Path(mount.point) / inside / "cgroup.procs"
    raise UnavailableError(
        f"the cgroup {path} of the job is not mounted here", remedy=_REMEDY
    )
