# SPDX-License-Identifier: MIT
"""Where the instances of a command come from: a file, or a workload with a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from penstock.experiments.study import Point
from penstock.model import Instance, read_instance
from penstock.workloads import Workload

__all__ = ["FilePoint", "Source"]


@dataclass(frozen=True, slots=True)
class FilePoint(Point):
    """The one instance of a file; the field `workload` holds the path of the file."""

    @property
    def path(self) -> str:
        """Path of the instance file."""
        return self.workload

    def family(self) -> Workload:
        """Return a workload whose only instance is that of the file."""
        return _InstanceFile(_read(self.path))

    def message_prefix(self, index: int) -> str:
        """Return the path of the file: it has only one instance."""
        del index
        return f"{self.path}: "


@dataclass(frozen=True, slots=True)
class Source:
    """Instances 0 to `count` - 1 of a point."""

    point: Point
    count: int = 1
    seed: int = 1

    @property
    def aimed_pressure(self) -> float | None:
        """The I/O pressure W that the workload aims at; None if it has none."""
        return getattr(self.point.family(), "pressure", None)

    def instance(self, index: int) -> Instance:
        """Read or draw instance `index`."""
        return self.point.family().instance(self.seed, index)


@dataclass(frozen=True, slots=True)
class _InstanceFile:
    """A workload of one instance, which is given."""

    only: Instance

    def instance(self, seed: int, index: int) -> Instance:
        """Return the instance, whatever the seed."""
        del seed, index
        return self.only


# Read once per process: the file may be a pipe.
@lru_cache(maxsize=1)
def _read(path: str) -> Instance:
    return read_instance(path)
