# SPDX-License-Identifier: MIT
"""Find the least depth at which the storage reaches its full throughput.

While requests wait, the storage is saturated, and what it does in a window is what it
can do at the current depth. The search tries the depths 1, 2, 4, ..., 1024:

- both neighbours of the best known depth, until they have been measured;
- after that one neighbour in every 16 windows, because the capacity may change.

A depth is better than another if it moves at least 5 % more bytes and does not answer
5 % fewer requests, or if it answers at least 5 % more requests and moves 2 % more
bytes. (More bytes for fewer requests only means that larger requests were served, and
more requests for the same bytes that smaller ones were.) The best depth is found from
depth 1 upwards: a deeper one replaces the best so far only if it is better.

Source: not in two-level scheduling, which makes the depth infinite under overload
(``overload=send``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["Pace", "Saturation"]

#: A ratio from which one pace counts as higher than another.
_MIN_GAIN: Final = 1.05
#: The ratio of the bytes from which more requests count as a gain.
_MIN_BYTES_GAIN: Final = 1.02
#: A pace is measured over at least so many answers.
_MIN_ANSWERS: Final = 16
#: Weight of the newest measurement in the moving average.
_NEWEST_WEIGHT: Final = 0.3
#: One window in this many tries a neighbour of the best depth.
_TRY_EVERY: Final = 16
#: Log2 of the largest depth that is tried.
_MAX_LEVEL: Final = 10


class Pace(NamedTuple):
    """What the storage does per second."""

    bytes_per_s: float
    requests_per_s: float

    def beats(self, other: Pace) -> bool:
        """Return True if this pace is higher by the rule of the module."""
        moved = self.bytes_per_s / other.bytes_per_s
        answered = self.requests_per_s / other.requests_per_s
        more_bytes = moved >= _MIN_GAIN and answered > 1 / _MIN_GAIN
        return more_bytes or (answered >= _MIN_GAIN and moved >= _MIN_BYTES_GAIN)


class Saturation:
    """Moving averages of the pace at the depths 2**level, and the search over them."""

    def __init__(self) -> None:
        self._paces: dict[int, Pace] = {}
        self._windows = 0
        self._level = 0
        self._sums: tuple[float, int, float] = (0.0, 0, 0.0)
        """Moved bytes, answers and busy time (s) at the level since the last pace."""

    def record(
        self, depth: float, moved_bytes: float, answered: int, busy_s: float
    ) -> None:
        """Record a window in which requests waited.

        Windows at one depth are added up until enough requests have been answered: a
        large request counts as a whole when it is complete.
        """
        level = min(max(int(depth), 1).bit_length() - 1, _MAX_LEVEL)
        if level != self._level:
            self._level, self._sums = level, (0.0, 0, 0.0)
        before = self._sums
        self._sums = (before[0] + moved_bytes, before[1] + answered, before[2] + busy_s)
        moved_bytes, answered, busy_s = self._sums
        if answered < max(_MIN_ANSWERS, 2 << level) or moved_bytes <= 0:
            return
        self._sums = (0.0, 0, 0.0)
        pace = Pace(moved_bytes / busy_s, answered / busy_s)
        old = self._paces.get(level, pace)
        mean = (a + _NEWEST_WEIGHT * (b - a) for a, b in zip(old, pace, strict=True))
        self._paces[level] = Pace(*mean)
        self._windows += 1

    def next_depth(self) -> float:
        """Return the depth for the next window: the best one, or one to be tried."""
        best = self.best_level()
        for level in (best - 1, best + 1):
            if level not in self._paces and 0 <= level <= _MAX_LEVEL and self._paces:
                return 2.0**level
        if self._windows % _TRY_EVERY == _TRY_EVERY - 1:
            return 2.0 ** self._neighbour(best)
        return 2.0**best

    def capacity_bytes_per_s(self) -> float:
        """Return the highest recent throughput near the best depth; 0: unknown."""
        best = self.best_level()
        near = (best - 1, best, best + 1)
        return max(
            (pace.bytes_per_s for level, pace in self._paces.items() if level in near),
            default=0.0,
        )

    def best_level(self) -> int:
        """Return log2 of the best depth."""
        levels = sorted(self._paces)
        best = levels[0] if levels else 0
        for level in levels:
            if self._paces[level].beats(self._paces[best]):
                best = level
        return best

    def _neighbour(self, best: int) -> int:
        """Return the level below or above the best one, alternately."""
        deeper = self._windows // _TRY_EVERY % 2
        return min(best + 1, _MAX_LEVEL) if deeper else max(best - 1, 0)
