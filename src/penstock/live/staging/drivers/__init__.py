# SPDX-License-Identifier: MIT
"""Target drivers: they apply a partition of the storage targets.

A driver makes the new files of a directory go to some of the targets of its file
system; existing files stay where they are. There is one module per kind of file system.
The partitions are those of strategies 3a and 3b (burst-buffer coordination, section
III-B).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from penstock.errors import InputError, UnknownNameError
from penstock.live.staging.drivers.beegfs import BeeGfs
from penstock.live.staging.drivers.directories import Directories
from penstock.live.staging.drivers.driver import Driver
from penstock.live.staging.drivers.lustre import Lustre
from penstock.live.staging.drivers.moosefs import MooseFs

__all__ = ["DRIVERS", "Driver", "get_driver", "parsed_targets"]

#: Name -> class of the driver; its argument is the root of the file system.
DRIVERS: Final[dict[str, Callable[[Path], Driver]]] = {
    "beegfs": BeeGfs,
    "directories": Directories,
    "lustre": Lustre,
    "moosefs": MooseFs,
}


def get_driver(name: str, root: Path) -> Driver:
    """Return the driver of that name for the file system at `root`."""
    if name not in DRIVERS:
        raise UnknownNameError("target driver", name, DRIVERS)
    return DRIVERS[name](root)


def parsed_targets(text: str) -> tuple[Driver, Path, tuple[str, ...]]:
    """Return driver, root and names of the targets in ``DRIVER:ROOT:TARGET,...``."""
    driver, _, rest = text.partition(":")
    root, _, listed = rest.rpartition(":")
    names = tuple(filter(None, listed.split(",")))
    if not Path(root).is_absolute() or not names:
        raise InputError(
            f"{text!r} names no targets",
            where="targets",
            remedy='write DRIVER:ROOT:TARGET,... e.g. "moosefs:/mnt/mfs:A,B"',
        )
    made = get_driver(driver, Path(root))
    made.check(names)
    return made, Path(root), names
