# SPDX-License-Identifier: MIT
"""The requests of a job: how large they are, and how long its processes pause.

Both are means over the last operation in which the job wrote to its files directly.
With P processes, n write calls of V bytes together in T seconds, and b seconds inside
calls (added over the processes), a round of one request per process moves P V / n, and
a process pauses for (P T - b) / n between two requests. Staging strategies warn by
these numbers (burst-buffer coordination, section V-D).

Times are in seconds, volumes in bytes. Nothing here reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["RequestCounts", "RequestMeter"]


class RequestCounts(NamedTuple):
    """What the processes of a job have done so far."""

    write_calls: int = 0
    written_bytes: float = 0.0
    busy_s: float = 0.0
    """Time inside calls, held up or not, added over callers."""


@dataclass(slots=True)
class RequestMeter:
    """Measures the requests of one job."""

    round_bytes: float = 0.0
    """Bytes of one request of every process; 0: not known."""
    pause_s: float = 0.0
    """Mean time between two requests of a process."""
    _begin: RequestCounts = field(default_factory=RequestCounts)

    def begin(self, counts: RequestCounts) -> None:
        """Note that an operation begins."""
        self._begin = counts

    def end(self, counts: RequestCounts, length_s: float, processes: int) -> None:
        """Note that an operation of `length_s` has ended, in which nothing was staged.

        Without calls, nothing is learnt. Counts may fall when the job leaves a node.
        """
        calls = counts.write_calls - self._begin.write_calls
        written_bytes = counts.written_bytes - self._begin.written_bytes
        busy_s = counts.busy_s - self._begin.busy_s
        if calls <= 0 or written_bytes <= 0.0 or busy_s < 0.0:
            return
        self.round_bytes = processes * written_bytes / calls
        self.pause_s = max(processes * length_s - busy_s, 0.0) / calls
