# SPDX-License-Identifier: MIT
"""Where the instances of a command come from: files, or a workload with a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from penstock.experiments.study import Point
from penstock.model import Instance
from penstock.model.documents import inside, is_comparison, read_document
from penstock.model.files import instance_from_document
from penstock.workloads import Workload

__all__ = ["FilePoint", "Source", "read_input"]


@dataclass(frozen=True, slots=True)
class FilePoint(Point):
    """The one instance of a file; the field `workload` holds the path of the file."""

    @property
    def path(self) -> str:
        """Path of the instance file."""
        return self.workload

    def family(self) -> Workload:
        """Return a workload whose only instance is that of the file."""
        document = read_input(self.path)
        if isinstance(document, Instance):
            return _InstanceFile(document)
        with inside(f"{self.path}: "):
            return _InstanceFile(instance_from_document(document))

    def message_prefix(self, index: int) -> str:
        """Return the path of the file: it has only one instance."""
        del index
        return f"{self.path}: "


@dataclass(frozen=True, slots=True)
class Source:
    """Instances of a workload, or of files (see `of_files`)."""

    point: Point
    count: int = 1
    """Number of instances."""
    seed: int = 1
    more: tuple[FilePoint, ...] = ()
    """More files; every file, also that of `point`, then has one instance."""

    @classmethod
    def of_files(cls, first: str, *more: str) -> Source:
        """Return the source of the instances of these files."""
        return cls(FilePoint(first), 1 + len(more), more=tuple(map(FilePoint, more)))

    @property
    def points(self) -> tuple[Point, ...]:
        """The workload, or all files."""
        return (self.point, *self.more)

    @property
    def aimed_pressure(self) -> float | None:
        """The I/O pressure W that the workload aims at; None if it has none."""
        return getattr(self.point.family(), "pressure", None)

    def instance(self, index: int) -> Instance:
        """Read or draw instance `index`."""
        if self.more:
            return self.points[index].family().instance(self.seed, 0)
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
@lru_cache(maxsize=32)
def read_input(path: str) -> Instance | dict[str, Any]:
    """Return the instance of a file, or the document of a result of a comparison.

    Raises `InputError` for a file that is neither.
    """
    document = read_document(path)
    if is_comparison(document):
        return document
    with inside(f"{path}: "):
        return instance_from_document(document)
