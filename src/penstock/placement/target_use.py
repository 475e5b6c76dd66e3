# SPDX-License-Identifier: MIT
"""How the storage targets are used: what a placement knows of applications in place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

__all__ = ["TargetUse"]


@dataclass(slots=True)
class TargetUse:
    """The number of applications on every target, and their load."""

    counts: list[int]
    """Number of applications by target."""
    loads: list[float]
    """Sum of T_io / (T_cpu + T_io) over the applications, by target."""
    turn: int = 0
    """The target after the last one that was given."""

    @classmethod
    def none(cls, resources: int) -> Self:
        """Return the use of N targets without applications."""
        return cls([0] * resources, [0.0] * resources)

    def add(self, targets: Iterable[int], load: float = 0.0) -> None:
        """Put an application on targets, in the order in which it was given them."""
        for target in targets:
            self.counts[target] += 1
            self.loads[target] += load
            self.turn = (target + 1) % len(self.counts)

    def remove(self, targets: Iterable[int], load: float = 0.0) -> None:
        """Free the targets of an application that has ended."""
        for target in targets:
            self.counts[target] -= 1
            # Without applications nothing is left of earlier roundings.
            left = self.loads[target] - load
            self.loads[target] = left if self.counts[target] else 0.0
