# SPDX-License-Identifier: MIT
"""How an application is served: response times and throughput, window by window.

A response time is what a request took from its arrival at the mount to its answer, time
in the queue included. Windows follow one another without gaps; a figure is of the last
one that is complete. Pure: time (s) is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.qos.feedback import percentile

__all__ = ["WINDOW_S", "Meter", "MeterWindow"]

#: Length of a window: that of papers/5 (Figure 4).
WINDOW_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class MeterWindow:
    """What was answered in one window."""

    p95_s: float | None = None
    """95th percentile of the response times; None: nothing was answered."""
    bytes_per_s: float = 0.0
    requests: int = 0


class Meter:
    """Measures one application.

    Parameters
    ----------
    latency_s
        Bound that its response times should keep.
    """

    def __init__(self, latency_s: float, now: float) -> None:
        self.latency_s = latency_s
        self.requests = 0
        self.bytes = 0
        self.windows = 0
        """Windows in which something was answered,"""
        self.kept = 0
        """and those of them whose 95th percentile kept the bound."""
        self._began = now
        self._number = 0
        self._times: list[float] = []
        self._bytes = 0
        self._last = MeterWindow()

    def answer(self, took_s: float, moved: int, now: float) -> None:
        """Note an answer: what it took, and what it has moved."""
        self._advance(now)
        self.requests += 1
        self.bytes += moved
        self._bytes += moved
        self._times.append(took_s)

    def last(self, now: float) -> MeterWindow:
        """Return the last complete window."""
        self._advance(now)
        return self._last

    def _advance(self, now: float) -> None:
        """Close all windows that have ended."""
        number = int((now - self._began) / WINDOW_S)
        if number == self._number:
            return
        self._last = self._closed()
        if number > self._number + 1:
            self._last = MeterWindow()
        self._number = number
        self._times, self._bytes = [], 0

    def _closed(self) -> MeterWindow:
        if not self._times:
            return MeterWindow()
        p95_s = percentile(self._times)
        self.windows += 1
        self.kept += p95_s <= self.latency_s
        return MeterWindow(p95_s, self._bytes / WINDOW_S, len(self._times))
