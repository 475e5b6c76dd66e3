# SPDX-License-Identifier: MIT
"""Targets that are storage pools of a BeeGFS, by identifier.

A BeeGFS keeps the servers of a file within one pool, and a server is in one pool only:
an administrator makes the pools, one per part, and the partition chooses one for each
application.

Tested against recorded commands only, not on a BeeGFS.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock.errors import InputError
from penstock.live.staging.drivers.driver import call, distinct

__all__ = ["BeeGfs"]


class BeeGfs:
    """Drives a BeeGFS.

    Parameters
    ----------
    root
        Where it is mounted.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def assign(self, directory: Path, targets: Sequence[str]) -> None:
        """Let new files in `directory` go to one storage pool."""
        chosen = distinct(targets, where=str(directory))
        if len(chosen) > 1:
            raise InputError(
                f"{len(chosen)} storage pools for one directory",
                where=str(directory),
                remedy="a BeeGFS directory uses one pool: make a pool for each part",
            )
        if not (chosen[0].isascii() and chosen[0].isdecimal()):
            raise InputError(
                f"{chosen[0]!r} is no identifier of a storage pool",
                where=str(directory),
                remedy="`beegfs-ctl --liststoragepools` lists them",
            )
        call(
            [
                "beegfs-ctl",
                "--setpattern",
                f"--mount={self._root}",
                f"--storagepoolid={chosen[0]}",
                str(directory.relative_to(self._root)),
            ],
            where=str(directory),
        )
