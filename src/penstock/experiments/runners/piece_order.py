# SPDX-License-Identifier: MIT
"""The order in which the pieces of several studies are computed: longest first.

If a long piece came last, one processor would compute it and all others would wait. How
long a piece takes is estimated: its cost, which `penstock.experiments.study.Piece`
gives in a unit of its study, times the seconds per unit of cost that the finished
pieces of the same study took. So the first pieces to be computed are one of each study,
the costliest; then always the piece with the longest estimate.

The order has no influence on results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from penstock.experiments.study import Piece

__all__ = ["PieceOrder"]


@dataclass(slots=True)
class _StudyPace:
    """The pieces of one study, and how fast they are computed."""

    waiting: list[tuple[float, Piece]]
    """Costs and pieces that have not begun, the costliest last."""
    unfinished: dict[str, float]
    """Costs of all pieces that are not finished, by key."""
    missing: float
    """The sum of these costs."""
    cost: float = 0.0
    """Cost of the finished pieces whose time is known."""
    seconds: float = 0.0
    """Time that these took (s)."""
    begun: dict[str, float] = field(default_factory=dict)
    """When the pieces that are being computed began, by key."""

    @property
    def rate(self) -> float | None:
        """Seconds per unit of cost; None as long as it is unknown."""
        return self.seconds / self.cost if self.cost else None

    def next_duration(self, now_s: float) -> float:
        """Return the estimated duration of the next piece (s)."""
        if self.rate is not None:
            return self.rate * self.waiting[-1][0]
        if not self.begun:
            return float("inf")
        # The time since the first piece of the study began is the least it takes.
        return now_s - min(self.begun.values())


class PieceOrder:
    """Gives out the pieces of several studies, and estimates the remaining work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._paces: list[_StudyPace] = []
        self._of_study: dict[int, _StudyPace] = {}

    def add(
        self, costs: Iterable[tuple[Piece, float]], kept: Iterable[tuple[float, float]]
    ) -> None:
        """Add a study: its missing pieces with their costs, and what is known.

        `kept` holds the costs and the seconds of pieces that are finished already.
        """
        # Reversed: of equal costs, the first piece is to come first.
        pairs = [(cost, piece) for piece, cost in costs][::-1]
        waiting = sorted(pairs, key=lambda pair: pair[0])
        kept = list(kept)
        pace = _StudyPace(
            waiting,
            {piece.key: cost for cost, piece in waiting},
            sum(cost for cost, _ in waiting),
            sum(cost for cost, _ in kept),
            sum(seconds for _, seconds in kept),
        )
        self._paces.append(pace)
        for _, piece in waiting:
            self._of_study[id(piece.study)] = pace

    def __iter__(self) -> Iterator[Piece]:
        """Yield the pieces, each when it is needed; the longest estimate first."""
        while open_paces := [pace for pace in self._paces if pace.waiting]:
            now_s = self._clock()
            # The first of equals: studies come in the order in which they were added.
            pace = max(open_paces, key=lambda p: p.next_duration(now_s))
            _, piece = pace.waiting.pop()
            pace.begun[piece.key] = self._clock()
            yield piece

    def finish(self, piece: Piece) -> float:
        """Take note that a piece is done; return how long it took (s)."""
        pace = self._of_study[id(piece.study)]
        seconds = self._clock() - pace.begun.pop(piece.key)
        cost = pace.unfinished.pop(piece.key)
        # The last piece ends it: a sum of differences would leave a rounding error.
        pace.missing = pace.missing - cost if pace.unfinished else 0.0
        pace.cost += cost
        pace.seconds += seconds
        return seconds

    def done_s(self) -> float:
        """Return the time that the finished pieces took (s)."""
        return sum(pace.seconds for pace in self._paces)

    def remaining_s(self) -> float:
        """Return the estimated time of the pieces that are not finished (s).

        This is processor time: two workers need half of it. A study without a finished
        piece counts as much as the mean of the other studies; one second per unit of
        cost if there are none.
        """
        known = [pace for pace in self._paces if pace.rate is not None]
        if not known:
            return sum(pace.missing for pace in self._paces)
        estimates = {id(p): (p.rate or 0.0) * p.missing for p in known}
        typical = (self.done_s() + sum(estimates.values())) / len(known)
        return sum(
            estimates.get(id(pace), typical if pace.missing > 0 else 0.0)
            for pace in self._paces
        )
