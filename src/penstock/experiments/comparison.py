# SPDX-License-Identifier: MIT
"""Compare policies on the instances of one source, with the bound on MinYield.

A comparison is a study whose rows stay in memory. Its points are one workload, or files
with one instance each. Its rows have, beside the columns of every study, what the
outputs of ``penstock compare`` show:

- ``file``: the file of the instance, or None;
- ``window``: begin and end of the window (s), ``digest`` of the instance;
- ``bound``: the `Bound` on MinYield, or None;
- ``applications``: their names, and ``yields``: their yields, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from penstock.analysis import min_yield_bound
from penstock.experiments.runners.executors import Executor, Progress
from penstock.experiments.source import FilePoint, Source
from penstock.experiments.study import Piece, Row, Study
from penstock.model import Instance
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.sim import Run, simulate

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison(Study):
    """A study whose rows hold all that ``penstock compare`` shows."""

    steady: bool = True
    """True if no application may end inside the window."""
    own: tuple[Policy, ...] = ()
    """Policies that no registry lists, e.g. functions of a notebook."""

    def identity_columns(self, point: int, index: int) -> Row:
        """Return the number of the instance, and its file or None."""
        declared = self.points[point]
        file = declared.path if isinstance(declared, FilePoint) else None
        return {"instance": point + index, "file": file}

    def message_prefix(self, point: int, index: int) -> str:
        """Return the file, or the number of the instance."""
        return self.points[point].message_prefix(index)

    def instance_columns(self, instance: Instance) -> Row:
        """Return the columns that describe an instance."""
        return {
            "pressure": instance.pressure(),
            "window": (instance.window.begin, instance.window.end),
            "digest": instance.digest(),
            "bound": min_yield_bound(instance) if self.bounded else None,
            "applications": tuple(a.name for a in instance.applications),
        }

    def simulate(self, instance: Instance, policy: Policy) -> Run:
        """Run one policy on one instance."""
        return simulate(instance, policy, steady=self.steady)

    def pieces(self) -> Iterator[Piece]:
        """Make every instance a piece, so that a few instances use all processors."""
        return (
            Piece(self, point, index, 1)
            for point in range(len(self.points))
            for index in range(self.instances)
        )

    def bound_policies(self) -> list[Policy]:
        """Return the policies, ready to run."""
        own = {policy.label: policy for policy in self.own}
        return [own.get(text) or get_policy(text) for text in self.policies]

    def name_of(self, piece: Piece) -> str:
        """Return the file, or the number of the instance."""
        return self.message_prefix(piece.point, piece.first).removesuffix(": ")


def compare(
    source: Source,
    policies: Sequence[Policy],
    executor: Executor,
    *,
    steady: bool = True,
    bounded: bool = True,
    own: Sequence[Policy] = (),
    progress: Progress = lambda _done, _total, _message: None,
) -> list[Row]:
    """Simulate every policy on every instance; return the rows in that order.

    The rows do not depend on the executor, except for their column ``seconds``.

    Parameters
    ----------
    bounded
        True to compute the bound on MinYield.
    own
        Those of `policies` that no registry lists. The executor must run in this
        process, because functions of a notebook cannot be sent to another one.
    progress
        Called with the number of instances done, that of all instances, and a message
        to show or "".
    """
    comparison = Comparison(
        "comparison",
        source.points,
        1 if source.more else source.count,
        tuple(policy.label for policy in policies),
        bounded=bounded,
        yields=True,
        seed=source.seed,
        steady=steady,
        own=tuple(own),
    )
    pieces = list(comparison.pieces())
    rows: dict[str, list[Row]] = {}
    done = 0

    def show(message: str = "") -> None:
        progress(done, source.count, message)

    show()
    with closing(executor.run(pieces, show)) as results:
        for piece, computed in results:
            rows[piece.key] = computed
            done += piece.count
            show()
    return [row for piece in pieces for row in rows[piece.key]]
