# SPDX-License-Identifier: MIT
"""Targets that are OSTs of a Lustre file system, by index.

The directory's default layout names the OSTs; new files inherit it.

Tested against recorded commands only, not on a Lustre file system.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.errors import InputError
from penstock.live.staging.drivers.driver import PlacedInFolder, call, distinct

__all__ = ["Lustre"]


class Lustre(PlacedInFolder):
    """Target driver of a Lustre file system.

    Parameters
    ----------
    root
        Its mount point, for messages.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def check(self, targets: Sequence[str]) -> None:
        """Raise `InputError` if these are not indices."""
        for index in targets:
            if not (index.isascii() and index.isdecimal()):
                raise InputError(
                    f"{index!r} is not the index of an OST",
                    where=str(self._root),
                    remedy=f"`lfs osts {self._root}` lists them",
                )

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Stripe new files in `directory` and below it over exactly these OSTs."""
        chosen = distinct(targets, where=str(directory))
        self.check(chosen)
        layout = ["--stripe-count", str(len(chosen)), "--ost", ",".join(chosen)]
        command = ["lfs", "setstripe", *layout]
        self.assign_all(
            directory, lambda folders: call([*command, *folders], where=str(directory))
        )
