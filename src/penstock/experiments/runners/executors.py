# SPDX-License-Identifier: MIT
"""Where pieces are computed: this process, a pool of processes, or Dask.

All follow the same rules. Pieces are begun in the order given. A piece whose worker
dies is begun again, and the message names the worker and the piece. An error inside
a piece is not tried again: it would come back, so it is raised here as it was there.
When the iteration ends, for whatever reason, no process of ours is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from penstock.experiments.runners.answers import Results, Warn
from penstock.experiments.runners.dask_executor import DaskExecutor
from penstock.experiments.runners.local_pool import LocalPool
from penstock.experiments.study import Piece

__all__ = [
    "DaskExecutor",
    "Executor",
    "Inline",
    "LocalPool",
    "Progress",
    "local_executor",
]

#: Called with the cost done, the cost in all, and a message worth showing or "".
Progress: TypeAlias = Callable[[float, float, str], None]


class Executor(Protocol):
    """Computes pieces, somewhere."""

    def run(self, pieces: Sequence[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows as it is done; begin in the order given."""


class Inline:
    """Computes in this process."""

    def run(self, pieces: Sequence[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows."""
        del warn
        for piece in pieces:
            yield piece, piece.run()


def local_executor(jobs: int) -> Executor:
    """Return what computes with `jobs` processes on this machine."""
    return LocalPool(jobs) if jobs > 1 else Inline()
