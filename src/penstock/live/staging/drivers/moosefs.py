# SPDX-License-Identifier: MIT
"""Targets that are labels of MooseFS chunkservers.

A partition is a storage class: one copy, on a server that has one of the labels,
strictly (if those servers are full, a write fails). New files inherit the class
of their directory. Classes are made on first use and kept; making them needs ``admin``
in the exports of the master. The owner of a directory may give it a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.errors import InputError
from penstock.live.staging.drivers.driver import PlacedInFolder, call, distinct

__all__ = ["MooseFs"]


class MooseFs(PlacedInFolder):
    """Target driver of a MooseFS.

    Parameters
    ----------
    root
        Its mount point.
    """

    def __init__(self, root: Path) -> None:
        self._root = str(root)

    def check(self, targets: Sequence[str]) -> None:
        """Raise `InputError` if these are not labels."""
        for label in targets:
            if len(label) != 1 or not "A" <= label <= "Z":
                raise InputError(
                    f"{label!r} is not the label of a chunkserver",
                    where=self._root,
                    remedy="labels are single letters, A to Z",
                )

    def prepare(self, targets: Sequence[str]) -> None:
        """Make the storage class of these labels unless it exists."""
        labels = sorted(distinct(targets, where=self._root))
        self.check(labels)
        name = _class_of(labels)
        known = call(["mfsscadmin", self._root, "list"], where=self._root)
        if name not in known.split():
            made = ["create", "-m", "s", "+".join(labels), name]
            call(["mfsscadmin", self._root, *made], where=self._root)

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Let new files in `directory` and below it go to servers with these labels."""
        labels = sorted(distinct(targets, where=str(directory)))
        self.prepare(labels)
        command = ["mfssetsclass", _class_of(labels)]
        self.assign_all(
            directory, lambda folders: call([*command, *folders], where=str(directory))
        )


def _class_of(labels: Sequence[str]) -> str:
    return "penstock_" + "".join(labels)
