# SPDX-License-Identifier: MIT
"""The least depth that keeps the storage as busy as any would.

While requests wait, what the storage does in a window tells what it can do at that
depth. Depths 1, 2, 4, ... are tried: the neighbours of the best one until they are
known, and now and again, since capacity changes. One depth is better than another if it
moves at least 5 % more bytes, or answers at least 5 % more requests, and not 5 % less
of the other: more bytes for fewer requests only means that other requests are served.
From depth 1 on, the best is the last that is better than the best before it.

Source: beyond papers/5, which sends all there is (``overload=send``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["Pace", "Saturation"]

#: What counts as more.
_MORE: Final = 1.05
#: Weight of the newest measurement.
_NEWEST: Final = 0.3
#: Of so many windows one is given to a neighbour of the best depth.
_TRY_EVERY: Final = 16
#: Log2 of the deepest that is tried.
_DEEPEST: Final = 10


class Pace(NamedTuple):
    """What the storage does in a second."""

    moved: float
    """Bytes."""
    answered: float
    """Requests."""

    def beats(self, other: Pace) -> bool:
        """Tell whether it is more of one, and not less of the other."""
        moved, answered = self.moved / other.moved, self.answered / other.answered
        return max(moved, answered) >= _MORE and min(moved, answered) > 1 / _MORE


class Saturation:
    """Learns what the storage does at which depth."""

    def __init__(self) -> None:
        self._known: dict[int, Pace] = {}
        self._windows = 0

    def note(self, depth: float, pace: Pace) -> None:
        """Note what was done at a depth while requests waited."""
        if min(pace) <= 0:
            return
        level = min(max(int(depth), 1).bit_length() - 1, _DEEPEST)
        old = self._known.get(level, pace)
        mean = (a + _NEWEST * (b - a) for a, b in zip(old, pace, strict=True))
        self._known[level] = Pace(*mean)
        self._windows += 1

    def next(self) -> float:
        """Return the depth to use: the best that is known, or one to be tried."""
        best = self.best()
        for level in (best - 1, best + 1):
            if level not in self._known and 0 <= level <= _DEEPEST and self._known:
                return 2.0**level
        if self._windows % _TRY_EVERY == _TRY_EVERY - 1:
            return 2.0 ** self._neighbour(best)
        return 2.0**best

    def capacity(self) -> float:
        """Return the most that the storage has moved (bytes/s), of late; 0: unknown."""
        best = self.best()
        near = (best - 1, best, best + 1)
        return max((p.moved for k, p in self._known.items() if k in near), default=0.0)

    def best(self) -> int:
        """Return the log2 of the least depth that is good enough."""
        levels = sorted(self._known)
        best = levels[0] if levels else 0
        for level in levels:
            if self._known[level].beats(self._known[best]):
                best = level
        return best

    def _neighbour(self, best: int) -> int:
        """Return one of the two depths beside the best one, in turn."""
        deeper = self._windows // _TRY_EVERY % 2
        return min(best + 1, _DEEPEST) if deeper else max(best - 1, 0)
