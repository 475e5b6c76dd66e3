# SPDX-License-Identifier: MIT
"""The stacked picture of any time that the archive knows.

An archived operation has moved its bytes at a constant rate, from its begin to its end.
The picture has `POINTS` intervals of equal lengths; the rate of a job in an interval is
what it moved in the interval, divided by the length. Operations that have not ended are
not in the archive: the last hour is better seen in `penstock.web.picture`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from math import isfinite
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError
from penstock.live.archive.reader import ArchiveReader
from penstock.live.control.past import CompletedOperation
from penstock.web.picture import MOST_SERIES
from penstock.web.readers import Reader

__all__ = ["POINTS", "past_picture"]

POINTS: Final = 300
#: Longest time that a picture shows (s): a month.
_LONGEST_S: Final = 31 * 86400.0
#: Most operations that are added up for a picture.
_MOST_OPERATIONS: Final = 300_000
#: An operation that is shorter than this part of an interval is at one instant.
_INSTANT: Final = 1e-9


def past_picture(
    folder: Path, reader: Reader, begin_s: float, end_s: float
) -> dict[str, Any]:
    """Return the picture between two instants, in the form of `picture`.

    ``times`` are the begins of the intervals, in seconds since 1970.

    Raises
    ------
    InputError
        If the time is empty, too long, or has too many operations.
    """
    _check(begin_s, end_s)
    operations = ArchiveReader(folder).operations_at_most(
        _MOST_OPERATIONS, begin_s, end_s, reader.user
    )
    intervals = _Intervals(begin_s, end_s)
    for run, done in operations.items():
        for operation in done:
            intervals.add(run.job_key, operation)
    return intervals.document()


def _check(begin_s: float, end_s: float) -> None:
    # Not a number is in no order.
    if not 0.0 <= begin_s < end_s:
        raise InputError("the time is empty", remedy="give from < to")
    if not end_s - begin_s <= _LONGEST_S:
        raise InputError("the time is too long", remedy="look at a month at most")


class _Intervals:
    """What jobs moved in intervals of equal lengths."""

    def __init__(self, begin_s: float, end_s: float) -> None:
        self._begin_s = begin_s
        self._length_s = (end_s - begin_s) / POINTS
        #: Job -> bytes moved in each interval.
        self._moved: dict[str, list[float]] = {}
        #: Job -> changes of the rate at the begin of each interval (bytes/s), for the
        #: intervals that an operation covers from begin to end.
        self._steps: dict[str, list[float]] = {}
        self._bandwidth: list[float | None] = [None] * POINTS

    def add(self, job_key: str, operation: CompletedOperation) -> None:
        """Add an operation; what is outside of the intervals is left out."""
        begin = (operation.begin_s - self._begin_s) / self._length_s
        end = (operation.end_s - self._begin_s) / self._length_s
        if end < 0.0 or begin >= POINTS:
            return
        first, last = max(int(begin), 0), min(int(end), POINTS - 1)
        self._add_moved(job_key, operation.moved_bytes, (begin, end), (first, last))
        if isfinite(operation.capacity):
            count = last + 1 - first
            self._bandwidth[first : last + 1] = [operation.capacity] * count

    def _add_moved(
        self,
        job_key: str,
        moved_bytes: float,
        span: tuple[float, float],
        places: tuple[int, int],
    ) -> None:
        """Add bytes that were moved in a span, in units of intervals.

        `places` are the first and the last interval that the span touches.
        """
        moved = self._moved.setdefault(job_key, [0.0] * POINTS)
        steps = self._steps.setdefault(job_key, [0.0] * (POINTS + 1))
        (begin, end), (first, last) = span, places
        if end - begin < _INSTANT:
            moved[first] += moved_bytes
            return
        per_interval = moved_bytes / (end - begin)
        for place in {first, last}:
            inside = min(end, place + 1.0) - max(begin, float(place))
            moved[place] += per_interval * max(inside, 0.0)
        if last - first > 1:
            steps[first + 1] += per_interval
            steps[last] -= per_interval

    def document(self) -> dict[str, Any]:
        """Return the picture."""
        rates = {key: self._rates(key) for key in self._moved}
        order = sorted(rates, key=lambda key: (-sum(rates[key]), key))
        shown, rest = order[:MOST_SERIES], order[MOST_SERIES:]
        return {
            "times": [self._begin_s + n * self._length_s for n in range(POINTS)],
            "bandwidth": list(self._known_bandwidth()),
            "series": [
                {"job": key, "rates": [round(rate) for rate in rates[key]]}
                for key in shown
            ],
            "others": [
                round(sum(rates[key][n] for key in rest)) for n in range(POINTS)
            ],
        }

    def _rates(self, job_key: str) -> list[float]:
        covered = accumulate(self._steps[job_key][:POINTS])
        both = zip(self._moved[job_key], covered, strict=True)
        # Sums of differences may be a little below 0.
        return [max(moved + whole, 0.0) / self._length_s for moved, whole in both]

    def _known_bandwidth(self) -> Iterable[float | None]:
        """Yield the bandwidth of each interval; without operations, the one before."""
        last = None
        for bandwidth in self._bandwidth:
            last = last if bandwidth is None else bandwidth
            yield last
