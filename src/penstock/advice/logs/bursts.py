# SPDX-License-Identifier: MIT
"""From intervals of I/O to bursts.

1. Intervals in which some process reads or writes are joined where they overlap. The
   length of this union is the job's time in I/O.
2. A *burst* is a series of joined intervals with gaps of at most `gap_s` between them.
   The default is the gap of ``penstock serve``: bursts are the operations that live
   control would see.

Times are in seconds since the job began, volumes in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.advice.logs.record import Burst, LoggedJob, Skipped

__all__ = [
    "DEFAULT_GAP_S",
    "IntervalUnion",
    "interval_record",
    "saturating_times",
    "whole_parts",
]

#: Time without I/O that ends a burst: the default of the setting `gap`.
DEFAULT_GAP_S: Final = 0.05
#: Number of intervals that are kept before they are joined.
_BUFFERED: Final = 1 << 20

_Floats = NDArray[np.float64]


class _Joined(NamedTuple):
    """Intervals in their order: begin, end, bytes, and the time in I/O inside."""

    begin: _Floats
    end: _Floats
    volume: _Floats
    io: _Floats


class IntervalUnion:
    """The union of many intervals of I/O, in bounded memory.

    More than `_BUFFERED` intervals that do not overlap are joined over short gaps,
    shorter than a millionth of the time that they cover, if that is possible.
    """

    def __init__(self) -> None:
        self._parts: list[_Joined] = []
        self._count = 0

    def add(self, begin: _Floats, end: _Floats, volume: NDArray[np.int64]) -> None:
        """Add intervals; an interval that ends before it begins takes no time."""
        if not len(begin):
            return
        start = np.maximum(begin, 0.0)
        length = np.maximum(end - start, 0.0)
        moved = np.maximum(volume, 0).astype(np.float64)
        self._parts.append(_Joined(start, start + length, moved, length))
        self._count += len(start)
        if self._count > _BUFFERED:
            self._compact()

    def bursts(self, gap_s: float) -> list[Burst]:
        """Return the bursts: intervals with gaps of at most `gap_s` are joined."""
        if not self._count:
            return []
        joined = _joined(_joined(_concatenated(self._parts), 0.0), gap_s)
        rows = zip(*(column.tolist() for column in joined), strict=True)
        return [Burst(*row) for row in rows]

    def _compact(self) -> None:
        joined = _joined(_concatenated(self._parts), 0.0)
        tolerance = 1e-6 * float(joined.end[-1] - joined.begin[0])
        while len(joined.begin) > _BUFFERED // 2:
            joined = _joined(joined, tolerance)
            tolerance *= 2.0
        self._parts, self._count = [joined], len(joined.begin)


def _concatenated(parts: Sequence[_Joined]) -> _Joined:
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return _Joined(*(column[order] for column in columns))


def _joined(intervals: _Joined, gap_s: float) -> _Joined:
    """Join intervals, sorted by their begin, with gaps of at most `gap_s`."""
    latest = np.maximum.accumulate(intervals.end)
    is_first = np.ones(len(latest), dtype=bool)
    is_first[1:] = intervals.begin[1:] > latest[:-1] + gap_s
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], len(latest)) - 1
    begin, end = intervals.begin[first], latest[last]
    # Overlapping intervals cover the whole span; intervals with gaps, their sum.
    io = np.minimum(np.add.reduceat(intervals.io, first), end - begin)
    return _Joined(begin, end, np.add.reduceat(intervals.volume, first), io)


def saturating_times(
    volumes: Sequence[float], widths: Sequence[float], total_s: float
) -> list[float]:
    """Return the time in I/O of every bin: at one rate, at most the width of the bin.

    The rate is such that the times add up to `total_s`, or to all widths if `total_s`
    is longer than that.
    """
    volume, width = np.asarray(volumes, float), np.asarray(widths, float)
    times = np.where(volume > 0, width, 0.0)
    if total_s >= times.sum():
        return [float(time) for time in times]
    # Bins in the order in which they saturate as the rate falls.
    density = np.divide(volume, width, out=np.zeros_like(volume), where=width > 0)
    order = np.argsort(-density, kind="stable")
    left_bytes, left_s = float(volume.sum()), total_s
    for index in order:
        if left_bytes <= 0 or volume[index] * left_s <= width[index] * left_bytes:
            break
        left_bytes -= float(volume[index])
        left_s -= float(width[index])
    slowness = left_s / left_bytes if left_bytes > 0 else 0.0
    return [float(t) for t in np.minimum(volume * slowness, times)]


def whole_parts(parts: Sequence[float], total: float) -> list[float]:
    """Return whole numbers in the proportions of `parts` that add up to `total`.

    The sum of whole numbers is exact in every order.
    """
    sums = np.cumsum(np.asarray(parts, float))
    edges = np.rint(sums * (total / sums[-1]))
    edges[-1] = total
    return [float(part) for part in np.diff(edges, prepend=0.0)]


def interval_record(
    source: str, rows: list[tuple[float, float, int]], gap_s: float
) -> LoggedJob | Skipped:
    """Return the job with these intervals: begin, end (s) and bytes.

    The job begins with the first of them, on their clock.
    """
    begin, end, volume = (np.array(column) for column in zip(*rows, strict=True))
    start_s = float(begin.min())
    union = IntervalUnion()
    moving = volume > 0
    union.add(
        begin[moving] - start_s,
        end[moving] - start_s,
        volume[moving].astype(np.int64),
    )
    bursts = union.bursts(gap_s)
    if not bursts:
        return Skipped(source=source, reason="the job has no I/O")
    io_s = sum(burst.io_s for burst in bursts)
    return LoggedJob(
        name="job",
        source=source,
        detail="dxt",
        bursts=tuple(bursts),
        start_s=start_s,
        run_s=float(end.max()) - start_s,
        log_bytes=int(volume.sum()),
        io_low_s=io_s,
        io_high_s=io_s,
        knows_nodes=True,
    )
