# SPDX-License-Identifier: MIT
"""The interval of time in which a run is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.errors import InputError

__all__ = ["Window"]


@dataclass(frozen=True, slots=True)
class Window:
    """The interval [T_begin, T_end] (s); bandwidth sharing, section 3.2."""

    begin: float
    end: float

    def __post_init__(self) -> None:
        for name in ("begin", "end"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not (math.isfinite(self.begin) and math.isfinite(self.end)):
            raise InputError(
                f"[{self.begin}, {self.end}] is not a pair of times",
                remedy="give two finite times in seconds",
            )
        if not self.begin < self.end:
            raise InputError(
                f"the window [{self.begin}, {self.end}] is empty",
                remedy="its end must be later than its begin",
            )

    @property
    def length(self) -> float:
        """T_end - T_begin (s)."""
        return self.end - self.begin
