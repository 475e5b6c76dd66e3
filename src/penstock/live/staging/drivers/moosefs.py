# SPDX-License-Identifier: MIT
"""Targets that are labels of MooseFS chunkservers.

A partition is a storage class: one copy, on a server that has one of the labels,
strictly (if those servers are full, a write fails). New files inherit the class
of their directory. Classes are made on first use and kept; making them needs ``admin``
in the exports of the master.
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

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Let new files in `directory` go to servers with one of these labels."""
        labels = sorted(distinct(targets, where=str(directory)))
        self.check(labels)
        name = "penstock_" + "".join(labels)
        self._make_class(name, "+".join(labels))
        call(["mfssetsclass", name, str(directory)], where=str(directory))

    def _make_class(self, name: str, labels: str) -> None:
        """Make the storage class unless it exists."""
        known = call(["mfsscadmin", self._root, "list"], where=self._root)
        if name not in known.split():
            call(
                ["mfsscadmin", self._root, "create", "-m", "s", labels, name],
                where=self._root,
            )
