# SPDX-License-Identifier: MIT
"""Where instances come from: a file, or a workload with a seed.

A source is small and picklable, so that a worker process draws or reads the
instances it needs by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, cast

from penstock.model import Instance, read_instance
from penstock.workloads import Workload

__all__ = ["MOST_INSTANCES", "FileSource", "Source", "WorkloadSource"]

#: Most instances of a comparison or a study: each has its tasks and its rows.
MOST_INSTANCES: Final = 100_000


class Source(Protocol):
    """Numbered instances."""

    @property
    def count(self) -> int:
        """How many instances there are."""

    @property
    def aimed_pressure(self) -> float | None:
        """The I/O pressure W that the instances are drawn for, if there is one."""

    def instance(self, index: int) -> Instance:
        """Return instance `index`."""

    def place(self, index: int) -> str:
        """Return what messages about instance `index` begin with."""


@dataclass(frozen=True, slots=True)
class FileSource:
    """The one instance of a file."""

    path: str
    count: int = 1
    aimed_pressure: float | None = None

    def instance(self, index: int) -> Instance:  # noqa: ARG002 - there is only one
        """Read the file (once per process)."""
        return _read(self.path)

    def place(self, index: int) -> str:  # noqa: ARG002 - there is only one
        """Return the name of the file."""
        return f"{self.path}: "


@dataclass(frozen=True, slots=True)
class WorkloadSource:
    """Instances 0 to count - 1 of a workload."""

    workload: Workload
    seed: int
    count: int

    @property
    def aimed_pressure(self) -> float | None:
        """The pressure that the workload is set to, if it can be."""
        return getattr(self.workload, "pressure", None)

    def instance(self, index: int) -> Instance:
        """Draw instance `index` (the last few drawn are kept)."""
        instance: Instance = _draw(cast(Any, self.workload), self.seed, index)
        return instance

    def place(self, index: int) -> str:
        """Return the number of the instance."""
        return f"instance {index}: "


@lru_cache(maxsize=1)
def _read(path: str) -> Instance:
    return read_instance(path)


@lru_cache(maxsize=2)
def _draw(workload: Any, seed: int, index: int) -> Instance:
    instance: Instance = workload.instance(seed, index)
    return instance
