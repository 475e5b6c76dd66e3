# SPDX-License-Identifier: MIT
"""What a job does on a storage in one window of time, from its growing counters.

A job

- is *held* if control held it up for `HELD_PART` of the time or more: it would draw
  more;
- *waits* if it is not held, and inside calls for `BUSY_PART` of the time or more: it
  may draw more if the storage is faster. Its calls may *take longer* per byte than in
  its best window so far;
- limits itself otherwise.

Times are in seconds, volumes in bytes, rates in bytes/s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

__all__ = ["JobWindow", "Kind", "Usage", "kind_of"]

#: A job that is held up for this part of the time or more would draw more.
HELD_PART: Final = 0.01
#: A job that is inside calls for less than this part of the time limits itself.
BUSY_PART: Final = 0.5
#: A call that moves no bytes for this time, and is not held up, is a sync.
SYNC_S: Final = 0.5
#: An interval without bytes is a sync if its end brings less than this part of what
#: the job drew before.
_SYNC_PART: Final = 0.25
#: A part of the bytes below this does not make a mixture of reads and writes.
_ONE_SIDED: Final = 0.05
_LEAST_S: Final = 1e-9


class Kind(StrEnum):
    """What the jobs on a storage do."""

    READS = "reads"
    WRITES = "writes"
    MIXED = "mixed"


class Usage(NamedTuple):
    """Growing counters of one job."""

    read_bytes: float
    written_bytes: float
    busy_s: float
    """Time inside calls that reached the storage, added over callers."""
    held_up_s: float
    """Time that control held calls up, added over callers."""
    in_call: bool = False
    """True if a call is under way now."""

    @property
    def moved_bytes(self) -> float:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes


@dataclass(slots=True, eq=False)
class JobWindow:
    """One job in the present window."""

    base: Usage | None = None
    """Counters at the last report that is added up; None: the next one is the base."""
    base_s: float = 0.0
    latest: Usage | None = None
    elapsed_s: float = 0.0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    busy_s: float = 0.0
    held_up_s: float = 0.0
    stayed: bool = True
    """False if the job has joined or left in this window."""
    drawn: float = 0.0
    """Rate that it drew in the last interval that was added."""
    kind: Kind | None = None
    """What it did last."""
    least_busy: dict[Kind, float] = field(default_factory=dict)
    """Least time inside calls per byte in any window (s), by kind."""
    lends: bool = False
    """True if it lends a part of its grant to others."""
    lent: int = 0
    """Windows in a row in which it lent."""
    is_slowed: bool = False
    """True if the storage slowed it much in the last window."""

    def read(self, now: float, usage: Usage, *, lends: bool = False) -> None:
        """Add a report. Time without new bytes is added when the next bytes come."""
        self.lends = lends
        base, self.latest = self.base, usage
        if base is None or any(a < b for a, b in zip(usage[:4], base[:4], strict=True)):
            self.base, self.base_s = usage, now
            return
        moved_bytes = usage.moved_bytes - base.moved_bytes
        elapsed_s = now - self.base_s
        if moved_bytes <= 0.0 or elapsed_s <= 0.0:
            return
        self.base, self.base_s = usage, now
        before, self.drawn = self.drawn, moved_bytes / elapsed_s
        if (
            elapsed_s > SYNC_S
            and usage.held_up_s == base.held_up_s
            and self.drawn < _SYNC_PART * before
        ):
            return
        self.elapsed_s += elapsed_s
        self.read_bytes += usage.read_bytes - base.read_bytes
        self.written_bytes += usage.written_bytes - base.written_bytes
        self.busy_s += usage.busy_s - base.busy_s
        self.held_up_s += usage.held_up_s - base.held_up_s
        self.kind = kind_of(self.read_bytes, self.written_bytes)

    def clear(self, *, rebase: bool) -> None:
        """Begin a new window; with `rebase`, from the next report on."""
        self.elapsed_s = self.read_bytes = self.written_bytes = 0.0
        self.busy_s = self.held_up_s = 0.0
        self.stayed = True
        self.lent = self.lent + 1 if self.lends else 0
        if rebase:
            self.base = self.latest = None
            self.is_slowed = False

    @property
    def moved_bytes(self) -> float:
        """Bytes read and written in this window."""
        return self.read_bytes + self.written_bytes

    @property
    def is_held(self) -> bool:
        """True if control holds it up."""
        if self.elapsed_s > 0.0:
            return self.held_up_s >= HELD_PART * self.elapsed_s
        base, latest = self.base, self.latest
        return bool(base and latest and latest.held_up_s > base.held_up_s)

    @property
    def service(self) -> float:
        """The rate at which it moved bytes inside calls."""
        return self.moved_bytes / max(self.busy_s, _LEAST_S)

    def rate(self, length_s: float, now: float) -> float:
        """Return the rate at which it moved bytes in a window of this length.

        Bytes count at the end of their call. A call that is under way for a short time
        is taken to move bytes at the rate of those before.
        """
        if self.elapsed_s > 0.0:
            return self.moved_bytes / (self.elapsed_s if self.stayed else length_s)
        latest = self.latest
        moves = latest is not None and latest.in_call and not self.is_held
        return self.drawn if moves and now - self.base_s < SYNC_S else 0.0

    @property
    def waits(self) -> bool:
        """True if it is not held, and inside calls most of the time."""
        if self.is_held or self.elapsed_s <= 0.0:
            return False
        return self.busy_s >= BUSY_PART * self.elapsed_s

    def takes_longer(self, by: float, *, without_best: bool) -> bool:
        """Return True if its calls take longer per byte than before by a part `by`.

        `without_best` is the result if there is no window to compare with.
        """
        if not self.waits or self.kind is None:
            return False
        if self.kind not in self.least_busy:
            return without_best
        return self.busy_s > (1.0 + by) * self.least_busy[self.kind] * self.moved_bytes

    def syncs(self, now: float) -> bool:
        """Return True if a call has moved nothing for long, and is not held up."""
        base, latest = self.base, self.latest
        return (
            base is not None
            and latest is not None
            and latest.in_call
            and latest.held_up_s == base.held_up_s
            and now - self.base_s > SYNC_S
        )

    def remember_busy(self) -> None:
        """Remember the time inside calls per byte, if it is the least so far."""
        if self.kind is not None and self.moved_bytes > 0.0:
            busy = self.busy_s / self.moved_bytes
            self.least_busy[self.kind] = min(busy, self.least_busy.get(self.kind, busy))


def kind_of(read_bytes: float, written_bytes: float) -> Kind:
    """Return what is done by the bytes read and written."""
    least = _ONE_SIDED * (read_bytes + written_bytes)
    if written_bytes <= least:
        return Kind.READS
    return Kind.WRITES if read_bytes <= least else Kind.MIXED
