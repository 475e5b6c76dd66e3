# SPDX-License-Identifier: MIT
"""Targets that are storage pools of a BeeGFS, by identifier.

In BeeGFS a file uses the servers of one pool, and a server belongs to one pool only. So
an administrator makes one pool for each part, and an application gets one pool. Only
root may give a directory a pool, so this driver serves no other users.

Tested against recorded commands only, not on a BeeGFS.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.errors import InputError
from penstock.live.staging.drivers.driver import PlacedInFolder, call, distinct

__all__ = ["BeeGfs"]


class BeeGfs(PlacedInFolder):
    """Target driver of a BeeGFS.

    Parameters
    ----------
    root
        Its mount point.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def check(self, targets: Sequence[str]) -> None:
        """Raise `InputError` if these are not identifiers."""
        for pool in targets:
            if not (pool.isascii() and pool.isdecimal()):
                raise InputError(
                    f"{pool!r} is not the identifier of a storage pool",
                    where=str(self._root),
                    remedy="`beegfs-ctl --liststoragepools` lists them",
                )

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Let new files in `directory` and below it go to one storage pool."""
        chosen = distinct(targets, where=str(directory))
        if len(chosen) > 1:
            raise InputError(
                f"{len(chosen)} storage pools for one directory",
                where=str(directory),
                remedy="a BeeGFS directory uses one pool: make a pool for each part",
            )
        self.check(chosen)
        command = [
            "beegfs-ctl",
            "--setpattern",
            f"--mount={self._root}",
            f"--storagepoolid={chosen[0]}",
        ]

        def assign(folders: Sequence[str]) -> None:
            # The tool takes one folder.
            for folder in folders:
                # The name of a job may begin with "-", and must not be an option.
                path = f"./{Path(folder).relative_to(self._root)}"
                call([*command, path], where=str(directory))

        self.assign_all(directory, assign)
