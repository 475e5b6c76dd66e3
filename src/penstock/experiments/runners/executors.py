# SPDX-License-Identifier: MIT
"""Where pieces are computed: this process, a pool of processes, or Dask.

All follow the same rules. Pieces are begun in the order given. A piece whose worker
dies is begun again, and the message names the worker and the piece. An error inside
a piece is not tried again: it would come back, so it is raised here as it was there.
When the iteration ends, for whatever reason, no process of ours is left.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.experiments.runners.answers import Results, Warn
from penstock.experiments.runners.dask_executor import DaskExecutor
from penstock.experiments.runners.local_pool import LocalPool
from penstock.experiments.study import Piece

__all__ = ["DaskExecutor", "Inline", "LocalPool"]


class Inline:
    """Computes in this process."""

    def run(self, pieces: Sequence[Piece], warn: Warn) -> Results:
        """Yield every piece with its rows."""
        del warn
        for piece in pieces:
            yield piece, piece.run()
