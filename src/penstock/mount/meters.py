# SPDX-License-Identifier: MIT
"""Response times and throughput of an application, window by window.

A response time runs from the arrival of a request at the mount to its answer, including
the time in queues. Windows follow one another without gaps. Figures are those of the
last complete window. Pure: time (s) is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.qos.feedback import percentile

__all__ = ["WINDOW_S", "Meter", "MeterWindow"]

#: Length of a window, as in Figure 4 of two-level scheduling.
WINDOW_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class MeterWindow:
    """Figures of one window."""

    p95_s: float | None = None
    """95th percentile of the response times; None: no request was answered."""
    bytes_per_s: float = 0.0
    requests: int = 0
    """Number of answered requests."""


class Meter:
    """Measures the service of one application.

    Parameters
    ----------
    latency_s
        The latency bound of its SLO.
    """

    def __init__(self, latency_s: float, now: float) -> None:
        self.latency_s = latency_s
        self.requests = 0
        """Answered requests in total."""
        self.moved_bytes = 0
        """Moved bytes in total."""
        self.windows = 0
        """Number of windows with at least one answer."""
        self.kept_windows = 0
        """Number of these whose 95th percentile was within the bound."""
        self._began_s = now
        self._number = 0
        self._times_s: list[float] = []
        self._window_bytes = 0
        self._last = MeterWindow()

    def record(self, response_s: float, moved_bytes: int, now: float) -> None:
        """Record an answered request."""
        self._advance(now)
        self.requests += 1
        self.moved_bytes += moved_bytes
        self._window_bytes += moved_bytes
        self._times_s.append(response_s)

    def last_window(self, now: float) -> MeterWindow:
        """Return the last complete window."""
        self._advance(now)
        return self._last

    def _advance(self, now: float) -> None:
        """Close the present window if it has ended; later empty windows count too."""
        number = int((now - self._began_s) / WINDOW_S)
        if number == self._number:
            return
        self._last = self._close_window()
        if number > self._number + 1:
            self._last = MeterWindow()
        self._number = number
        self._times_s, self._window_bytes = [], 0

    def _close_window(self) -> MeterWindow:
        """Return the figures of the present window, and count it."""
        if not self._times_s:
            return MeterWindow()
        p95_s = percentile(self._times_s)
        self.windows += 1
        self.kept_windows += p95_s <= self.latency_s
        return MeterWindow(p95_s, self._window_bytes / WINDOW_S, len(self._times_s))
