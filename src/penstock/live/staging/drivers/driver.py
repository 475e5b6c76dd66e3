# SPDX-License-Identifier: MIT
"""The interface of target drivers, and how they call the tools of a file system."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, repeat
from pathlib import Path
from typing import Final, Protocol, Self

from penstock.errors import InputError, UnavailableError
from penstock.live.ending import end_process

__all__ = [
    "TOOL_TIMEOUT_S",
    "Driver",
    "PlacedInFolder",
    "SubFolderError",
    "call",
    "distinct",
    "folders_below",
    "walk_below",
]

#: A tool that takes longer is given up: its servers do not answer (s).
TOOL_TIMEOUT_S: Final = 30.0
#: Most sub-folders of a directory that are assigned with it: others keep their targets.
_MOST_SUB_FOLDERS: Final = 10_000
#: Deeper sub-folders are left out: a descriptor is open for each level.
_DEEPEST: Final = 64
_OPEN: Final = (
    os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)
#: Number of folders that are given to a tool at once.
_AT_ONCE: Final = 200
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class SubFolderError(InputError):
    """A directory has its targets, and some of its sub-folders do not."""


class Driver(Protocol):
    """Chooses the targets of the new files of a directory."""

    def check(self, targets: Sequence[str]) -> None:
        """Raise `InputError` if these are not names of targets."""

    def prepare(self, targets: Sequence[str]) -> None:
        """Let the file system know this set of targets; no directory is changed.

        The daemon does this with its own rights, because users may lack them.
        """

    def for_user(self, name: str) -> Self:
        """Return the driver of the directories of one user among many."""

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Let files that are created in `directory` from now on go to `targets`.

        Those in its sub-folders do so, too. A process of the user who owns `directory`
        calls it. The same call twice changes nothing. If it raises `InputError` or
        `UnavailableError`, some of the folders may have their targets already; with
        `SubFolderError`, all have them that the file system lets it change.
        """

    @property
    def slots(self) -> int:
        """Number of sub-folders 0, 1, ... of a directory that lead to its targets.

        0: files go into the directory itself.
        """

    def roots(self, directory: Path) -> tuple[Path, ...]:
        """Return the folders, without links, that hold the files of `directory`."""


class PlacedInFolder:
    """What all file systems share whose folders say where new files go."""

    slots: Final = 0

    def prepare(self, targets: Sequence[str]) -> None:
        """Do nothing: the file system knows all sets of targets."""

    def for_user(self, name: str) -> Self:  # noqa: ARG002 - of any one
        """Return this driver: the directory of the user holds its files."""
        return self

    def roots(self, directory: Path) -> tuple[Path, ...]:
        """Return the folders, without links, that hold the files of `directory`."""
        return (directory.resolve(),)

    def assign_all(
        self, directory: Path, assign: Callable[[Sequence[str]], object]
    ) -> None:
        """Assign a directory and the sub-folders that it has already.

        New sub-folders inherit the targets from the folder in which they are made.
        Raises `SubFolderError` if some have been refused, after all others.

        Parameters
        ----------
        assign
            Assigns these folders, or raises `InputError`.
        """
        assign([str(directory)])
        below = islice(folders_below(directory), _MOST_SUB_FOLDERS)
        refused: list[InputError] = []
        while batch := list(islice(below, _AT_ONCE)):
            try:
                assign(batch)
            except InputError:
                refused += _assign_each(batch, assign)
        if refused:
            raise SubFolderError(
                f"{len(refused)} sub-folders keep their targets; the first: "
                f"{refused[0]}",
                where=str(directory),
            )


def _assign_each(
    folders: Sequence[str], assign: Callable[[Sequence[str]], object]
) -> list[InputError]:
    """Assign folders one by one; return why some that are there were refused."""
    refused = []
    for folder in folders:
        try:
            assign([folder])
        except InputError as error:
            if os.path.lexists(folder):
                refused.append(error)
    return refused


def folders_below(directory: Path) -> Iterator[str]:
    """Return the sub-folders of a directory; see `walk_below`."""
    try:
        top = os.open(directory, _OPEN)
    except OSError:
        return
    try:
        for path, _ in walk_below(top):
            yield f"{directory}/{path}"
    finally:
        os.close(top)


def walk_below(
    top: int, most_entries: int | None = None
) -> Iterator[tuple[str, os.stat_result]]:
    """Return the sub-folders of an open directory that belong to its owner.

    Each is given by its path from there and its status. Links are not followed, nor
    other file systems entered: each folder is opened from the one above it, so that
    replacing one leads nowhere else. What is in a folder in which other users can
    replace folders is left out.

    Parameters
    ----------
    most_entries
        Most entries that are read, also of files; None: all.
    """
    budget = repeat(None) if most_entries is None else repeat(None, most_entries)
    return _walk(top, "", os.fstat(top), _DEEPEST, budget)


def _walk(
    folder: int, path: str, top: os.stat_result, depth: int, budget: Iterator[None]
) -> Iterator[tuple[str, os.stat_result]]:
    # What cannot be read, or was removed meanwhile, is left out.
    with suppress(OSError), os.scandir(folder) as entries:
        for entry, _ in zip(entries, budget, strict=False):
            state = _folder_state(entry)
            if state is None or (state.st_uid, state.st_dev) != (
                top.st_uid,
                top.st_dev,
            ):
                continue
            yield path + entry.name, state
            is_safe = not state.st_mode & _OTHERS_WRITE or state.st_mode & stat.S_ISVTX
            if not is_safe or depth <= 1:
                continue
            with suppress(OSError):
                inner = os.open(entry.name, _OPEN, dir_fd=folder)
                try:
                    if os.path.samestat(os.fstat(inner), state):
                        below = f"{path}{entry.name}/"
                        yield from _walk(inner, below, top, depth - 1, budget)
                finally:
                    os.close(inner)


def _folder_state(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Return the status of a folder; None: another file, or it was removed."""
    with suppress(OSError):
        if entry.is_dir(follow_symlinks=False):
            return entry.stat(follow_symlinks=False)
    return None


def call(arguments: Sequence[str], *, where: str) -> str:
    """Run a tool of the file system; return its standard output.

    Raises `InputError` if the tool fails or is not installed, `UnavailableError` if it
    does not answer.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - made by a driver, no shell
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Names of folders may be any bytes.
            errors="backslashreplace",
        )
    # The second one: PATH has folders of root, and no tool is in the others.
    except (FileNotFoundError, PermissionError):
        raise InputError(
            f"{arguments[0]} is not installed",
            where=where,
            remedy="install the client tools of the file system on this node",
        ) from None
    is_abandoned = False
    try:
        output, errors = process.communicate(timeout=TOOL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        is_abandoned = end_process(process).is_abandoned
        but = f"; process {process.pid} cannot be killed" if is_abandoned else ""
        raise UnavailableError(
            f"{arguments[0]} did not answer within {TOOL_TIMEOUT_S:g} s{but}",
            where=where,
            remedy="check that the servers of the file system are up",
        ) from None
    finally:
        # The tool does not outlive an interrupted command.
        if process.poll() is None and not is_abandoned:
            end_process(process)
    if process.returncode:
        lines = (errors or output).strip().splitlines()
        what = lines[-1] if lines else f"exit status {process.returncode}"
        raise InputError(f"{' '.join(arguments)}: {what}", where=where)
    return output


def distinct(targets: Sequence[str], *, where: str) -> tuple[str, ...]:
    """Return the targets without repetition, in order; raise if there is none."""
    if not targets:
        raise InputError(
            "no target",
            where=where,
            remedy="give every application at least one target",
        )
    return tuple(dict.fromkeys(targets))
