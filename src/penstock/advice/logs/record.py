# SPDX-License-Identifier: MIT
"""The job record: what every reader makes of the log of a job.

Times inside a job are in seconds since the job began, volumes in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

__all__ = [
    "Burst",
    "Detail",
    "LoggedJob",
    "Reader",
    "Skipped",
    "plain_name",
    "skipped_line",
]

#: What the I/O of a job was read from, from the most to the least exact source.
Detail: TypeAlias = Literal["dxt", "heatmap", "counters", "accounting", "history"]


class Burst(msgspec.Struct, frozen=True, array_like=True):
    """A time in which a job reads or writes, without a long gap."""

    begin_s: float
    end_s: float
    volume_bytes: float
    io_s: float
    """Time during which at least one process reads or writes, 0 if it is not known."""
    is_exact: bool = True
    """False: the I/O may be anywhere between begin and end, in any number of parts."""


class LoggedJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a log."""

    name: str
    source: str
    """File, and the number of the job in it if there are several."""
    detail: Detail
    bursts: tuple[Burst, ...]
    start_s: float
    """Begin of the job on its clock."""
    run_s: float
    """Length of the job."""
    clock: str = ""
    """Empty: seconds since 1970. Else a name: only jobs of this clock compare."""
    nodes: int = 1
    job_id: str = ""
    """Number of the job in the batch system."""
    user: str = ""
    group: str = ""
    log_bytes: float | None = None
    """Bytes read and written according to the log; None if it does not count them."""
    io_low_s: float = 0.0
    io_high_s: float = 0.0
    """Least and greatest time in I/O that agrees with the log; 0 if not known."""
    period_s: float = 0.0
    """Mean time from one operation to the next, if the log tells it; else 0."""
    cap: float = 0.0
    """What the job could draw at most (bytes/s); 0 if the log does not tell."""
    shared_rates: tuple[float, ...] = ()
    """Bandwidths that all jobs shared during the operations (bytes/s), if known."""
    policy: str = ""
    """Policy that shared the bandwidth while it ran, if the log tells it."""
    knows_nodes: bool = False
    """True if the log says on how many nodes the job ran."""
    notes: tuple[str, ...] = ()
    """What is assumed, missing or uncertain."""

    @property
    def volume_bytes(self) -> float:
        """Bytes of all bursts."""
        return sum(burst.volume_bytes for burst in self.bursts)

    @property
    def io_s(self) -> float:
        """Time in I/O of all bursts (s); 0 if it is not known."""
        return sum(burst.io_s for burst in self.bursts)

    @property
    def is_exact(self) -> bool:
        """True if the log says when each of the bursts happened."""
        return all(burst.is_exact for burst in self.bursts)


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A file, a job or a line that is not imported, and why."""

    source: str
    reason: str


#: Reads the jobs of a file; the second argument is the gap that ends a burst (s).
Reader: TypeAlias = Callable[[Path, float], Iterable[LoggedJob | Skipped]]


def skipped_line(path: Path, number: int, reason: str) -> Skipped:
    """Return a line of a file, counted from 1, that is not imported."""
    return Skipped(source=f"{path}: line {number}", reason=reason)


def plain_name(words: Iterable[object]) -> str:
    """Return a name of words joined by hyphens, without control characters."""
    name = "-".join(text for word in words if (text := str(word).strip()))
    plain = "".join(sign if sign.isprintable() else "?" for sign in name)
    return plain or "job"
