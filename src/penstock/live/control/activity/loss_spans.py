# SPDX-License-Identifier: MIT
"""The time that an operation has lost, as users see it.

Policies count what grants cost: the integral of 1 - grant / cap (bandwidth sharing,
equation 6). Users see this time, but not more than calls were held up: a grant that
nobody was held to costs nothing. The two are compared in each *span* of an operation. A
new span begins when the job becomes free (it then loses nothing) or is held to a share
again, and when an operator changes its limit: the time that a limit has held up calls
must not count for grants of another span.

Times are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LossSpans"]


@dataclass(slots=True)
class LossSpans:
    """The spans of one operation so far.

    Both arguments of its methods grow with time: what grants have cost the job, and
    how long its calls were held up.
    """

    is_free: bool = True
    """True if the job is free in the present span, or if there is none yet."""
    _ended_s: float = 0.0
    """Time lost in spans that have ended."""
    _by_grants_s: float = 0.0
    """What grants had cost when the present span began."""
    _held_up_s: float = 0.0
    """How long calls had been held up then."""

    def begin(self, by_grants_s: float, held_up_s: float, *, is_free: bool) -> None:
        """Begin a span."""
        self._ended_s = self.lost_s(by_grants_s, held_up_s)
        self._by_grants_s, self._held_up_s = by_grants_s, held_up_s
        self.is_free = is_free

    def lost_s(self, by_grants_s: float, held_up_s: float) -> float:
        """Return the time that the operation has lost by now."""
        if self.is_free:
            return self._ended_s
        span_s = min(by_grants_s - self._by_grants_s, held_up_s - self._held_up_s)
        return self._ended_s + max(span_s, 0.0)
