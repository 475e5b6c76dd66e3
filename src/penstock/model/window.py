# SPDX-License-Identifier: MIT
"""The interval of time in which a run is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.errors import InputError

__all__ = ["Window"]


@dataclass(frozen=True, slots=True)
class Window:
    """[T_begin, T_end] of papers/1 section 3.2 (s)."""

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
                f"[{self.begin}, {self.end}] is empty",
                remedy="the end must come after the begin",
            )

    @property
    def length(self) -> float:
        """T_end - T_begin (s)."""
        return self.end - self.begin
