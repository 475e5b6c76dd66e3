# SPDX-License-Identifier: MIT
"""Targets that are plain directories, e.g. one mount per storage server.

`directory` has one link per *slot*, ``0`` to ``n - 1`` for n targets; slot k leads to
target k modulo the number of assigned targets. Processes write to
``directory/SLOT/...``, for example with their rank modulo n as the slot: so one file
per process spreads over the partition. Links are replaced by renaming, so that a file
can be created at any moment.

Where there are many users, the links of each lead to a folder of its own on the target,
``TARGET/USER``: nobody else can put a file there under the name that a program uses.
A target is refused if other users can replace this folder (`make_own`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Self

from penstock.errors import InputError, UnknownNameError
from penstock.live.staging.drivers.driver import distinct
from penstock.live.staging.own_folder import make_own

__all__ = ["Directories"]


class Directories:
    """Target driver of plain directories.

    Parameters
    ----------
    root
        Its sub-directories, or links to directories, are the targets.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        #: User whose folder on each target is used; "": the target itself is.
        self._user_name = ""
        try:
            self.targets = tuple(sorted(p.name for p in root.iterdir() if p.is_dir()))
        except OSError as error:
            raise InputError(str(error.strerror), where=str(root)) from None
        if not self.targets:
            raise InputError(
                "there are no targets",
                where=str(root),
                remedy="make a directory for each target",
            )

    def check(self, targets: Sequence[str]) -> None:
        """Raise `UnknownNameError` if there is no such directory."""
        present = [name for name in self.targets if (self._root / name).is_dir()]
        for name in targets:
            if name not in present:
                raise UnknownNameError("target", name, present, where=str(self._root))

    @property
    def slots(self) -> int:
        """Number of slots of a directory."""
        return len(self.targets)

    def prepare(self, targets: Sequence[str]) -> None:
        """Do nothing: all sets of directories are possible."""

    def for_user(self, name: str) -> Self:
        """Return the driver that leads to the folders of this user on the targets."""
        driver = copy(self)
        driver._user_name = name
        return driver

    def roots(self, directory: Path) -> tuple[Path, ...]:  # noqa: ARG002 - of any one
        """Return the targets, or the folders of the user on them."""
        return tuple(self._place(name) for name in self.targets)

    def _place(self, target: str) -> Path:
        """Return where files on a target are."""
        return (self._root / target).resolve() / self._user_name

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Let the slots of `directory` lead to `targets`."""
        chosen = distinct(targets, where=str(directory))
        self.check(chosen)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if self._user_name:
                for name in chosen:
                    _make_folder(self._place(name))
            for slot in range(len(self.targets)):
                place = self._place(chosen[slot % len(chosen)])
                _replace_link(directory / str(slot), place)
        except OSError as error:
            where = str(error.filename or directory)
            raise InputError(str(error.strerror), where=where) from None


def _make_folder(place: Path) -> None:
    """Make the folder of a user on a target."""
    try:
        make_own(place.parent, place, "ask an administrator")
    except OSError as error:
        raise InputError(str(error.strerror), where=str(place)) from None


def _replace_link(link: Path, target: Path) -> None:
    """Make `link` lead to `target`; there is no moment without a link."""
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        fresh.unlink()
    fresh.symlink_to(target)
    fresh.replace(link)
