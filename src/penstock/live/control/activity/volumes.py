# SPDX-License-Identifier: MIT
"""Volumes of operations that nobody announced, estimated from what was seen before.

A volume is *known* if the program announced it, or if the last two volumes of the job
are equal to its median. Otherwise `VolumePredictor.estimate` estimates it. The formula
V(m) and an example are in ``docs/background/live-control.md`` ("Volumes").

Nothing here reads a clock. Times are in seconds, volumes in bytes, caps in bytes/s.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

__all__ = ["FIRST_S", "REMEMBERED", "SAME", "OperationLengths", "VolumePredictor"]

#: How many past operations of a job an estimate uses.
REMEMBERED: Final = 5
#: Volumes that differ by less than this part are taken to be the same.
SAME: Final = 1e-3
#: Length of an operation if none was ever seen (s).
FIRST_S: Final = 1.0
#: How many lengths of operations are remembered for each user.
_LENGTHS: Final = 64


class OperationLengths:
    """Lengths of the last operations of each user: volume / cap (s)."""

    def __init__(self) -> None:
        self._by_user: dict[int, deque[float]] = {}
        #: The longest of each user, and of all: they are asked for in every report.
        self._longest: dict[int, float] = {}
        self._longest_of_all: float | None = None

    def add(self, user: int, length_s: float) -> None:
        """Remember the length of an operation of a user."""
        lengths = self._by_user.setdefault(user, deque(maxlen=_LENGTHS))
        lengths.append(length_s)
        self._longest[user] = max(lengths)
        self._longest_of_all = max(self._longest.values())

    def longest_s(self, user: int) -> float:
        """Return a bit more than the longest length of this user, else of all users.

        A bit more: in a tie, the measured operation goes first.
        """
        longest_s = self._longest.get(user, self._longest_of_all)
        return FIRST_S if longest_s is None else (1.0 + SAME) * longest_s


@dataclass(slots=True)
class VolumePredictor:
    """Predicts the volume of a job's operations."""

    hint_bytes: float = 0.0
    """Volume of every operation, announced when the job started; 0: unknown."""
    next_hint_bytes: float = 0.0
    """Volume of the next operation only; 0: unknown."""
    expected_bytes: float = 0.0
    """Volume that FTIO expects of the next operation; 0: unknown."""
    past_bytes: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """Volumes of the last operations."""

    @property
    def is_hinted(self) -> bool:
        """True if the volume of the next operation was announced."""
        return bool(self.next_hint_bytes or self.hint_bytes)

    @property
    def likely_bytes(self) -> float:
        """Volume of the next operation, announced or as the last ones; 0: unknown."""
        hint_bytes = self.next_hint_bytes or self.hint_bytes
        return hint_bytes or (median(self.past_bytes) if self.past_bytes else 0.0)

    def known(self) -> float:
        """Return the volume of an operation that begins; 0 if it is not certain."""
        hint_bytes = self.next_hint_bytes or self.hint_bytes
        self.next_hint_bytes = 0.0
        if hint_bytes:
            return max(hint_bytes, 1.0)
        if len(self.past_bytes) < 2:
            return 0.0
        likely = max(median(self.past_bytes), 1.0)
        latest = list(self.past_bytes)[-2:]
        same = all(abs(volume - likely) <= SAME * likely for volume in latest)
        return likely if same else 0.0

    def estimate(self, moved_bytes: float, cap: float, longest_s: float) -> float:
        """Return the volume of an operation that has moved `moved_bytes` so far.

        Parameters
        ----------
        cap
            b: most that the job can draw (bytes/s).
        longest_s
            L, see `OperationLengths.longest_s` (s).
        """
        if self.expected_bytes > moved_bytes and self.past_bytes:
            return self.expected_bytes
        larger = [volume for volume in self.past_bytes if volume > moved_bytes]
        if larger:
            return fmean(larger)
        newcomer_bytes = 0.0 if self.past_bytes else longest_s * cap
        return moved_bytes + max(moved_bytes, newcomer_bytes, 1.0)

    def learn(self, moved_bytes: float) -> None:
        """Remember the volume of an operation that is complete."""
        self.past_bytes.append(moved_bytes)
