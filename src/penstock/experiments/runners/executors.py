# SPDX-License-Identifier: MIT
"""Executors compute pieces: in this process, in a pool of processes, or on Dask.

All executors follow the same rules:

1. They begin pieces in the given order. Executors of this machine take a piece only
   when a processor is free for it; Dask takes all pieces at once.
2. A piece whose worker dies is tried again; the message names the worker and the piece.
3. An error inside a piece is raised in this process, and the piece is not tried again.
4. When the iteration ends, for any reason, no process of penstock is left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar

from penstock.experiments.runners.dask_executor import DaskExecutor
from penstock.experiments.runners.local_pool import LocalPool
from penstock.experiments.runners.tasks import Results, Task, Warn
from penstock.experiments.study import Piece

__all__ = [
    "DaskExecutor",
    "Executor",
    "Inline",
    "LocalPool",
    "Progress",
    "local_executor",
]

_Task = TypeVar("_Task", bound=Task[Any])

#: Called with the work done, the total work, and a message for the user or "".
Progress: TypeAlias = Callable[[float, float, str], None]


class Executor(Protocol):
    """Computes pieces of a study."""

    def run(self, pieces: Iterable[Piece], warn: Warn, /) -> Results:
        """Yield every piece with its rows as soon as it is done."""


class Inline:
    """Computes pieces, or other tasks, in this process."""

    def run(
        self, tasks: Iterable[_Task], warn: Warn
    ) -> Generator[tuple[_Task, Any], None, None]:
        """Yield every task with its result."""
        del warn
        for task in tasks:
            yield task, task.run()


def local_executor(jobs: int) -> Executor:
    """Return an executor that uses `jobs` processes on this machine."""
    return LocalPool(jobs) if jobs > 1 else Inline()
