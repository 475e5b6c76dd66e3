# SPDX-License-Identifier: MIT
"""The requests of a job: how large they are, and how long its processes pause.

Both are means over the last operation in which the job wrote to its files directly,
and no part was merged.
With P processes, n write calls of V bytes together in T seconds, and b seconds inside
calls (added over the processes), a round of one request per process moves P V / n, and
a process pauses for (P T - b) / n between two requests. Staging strategies warn by
these numbers (burst-buffer coordination, section V-D), and forecasts use them.

Processes with several threads may be inside calls for longer than P T in all. If they
leave no room for the time s in which the whole job was seen to pause (P T - b < P s),
the k pauses of the job count instead: V / (k + 1) and s / k.

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
    pauses: int = 0
    """Gaps inside its operations in which no call of the job began or ended."""
    paused_s: float = 0.0
    """Length of these pauses."""
    merged_bytes: float = 0.0
    """Volume copied from parts into files: its steps count as calls."""


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

        Without calls, nothing is learnt; nor if parts were merged, because the steps
        of a merge are not requests. Counts may fall when the job leaves a node.
        """
        if counts.merged_bytes != self._begin.merged_bytes:
            return
        calls = counts.write_calls - self._begin.write_calls
        written_bytes = counts.written_bytes - self._begin.written_bytes
        busy_s = counts.busy_s - self._begin.busy_s
        if calls <= 0 or written_bytes <= 0.0 or busy_s < 0.0:
            return
        outside_s = max(processes * length_s - busy_s, 0.0)
        pauses = counts.pauses - self._begin.pauses
        paused_s = counts.paused_s - self._begin.paused_s
        if pauses > 0 and outside_s < processes * paused_s:
            self.round_bytes = written_bytes / (pauses + 1)
            self.pause_s = paused_s / pauses
        else:
            self.round_bytes = processes * written_bytes / calls
            self.pause_s = outside_s / calls
