# SPDX-License-Identifier: MIT
"""The stacked picture of any time that the archive knows.

The rate inside an archived operation is taken to be as granted, but at most c, where c
is such that the volume of the operation comes out (`moved_pieces`). The picture has
`POINTS` intervals of equal lengths; the rate of a job in an interval is what it moved
in the interval, divided by the length. Operations that have not ended are not in the
archive: the daemon knows them (`ListUnderWay`), and they end now. The last hour is
better seen in `penstock.web.pictures.picture`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import inf, isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError
from penstock.live.archive.reader import ArchiveReader
from penstock.live.control.past import CompletedOperation
from penstock.live.wire.messages import ReportedOperation, RunWithOperations
from penstock.web.identity.readers import Reader
from penstock.web.pictures.picture import MOST_SERIES

__all__ = ["POINTS", "moved_pieces", "past_picture"]

POINTS: Final = 300
#: Longest time that a picture shows (s): a month.
_LONGEST_S: Final = 31 * 86400.0
#: Most operations that are added up for a picture.
_MOST_OPERATIONS: Final = 300_000
#: An operation that is shorter than this part of an interval is at one instant.
_INSTANT: Final = 1e-9


def past_picture(
    folder: Path,
    reader: Reader,
    begin_s: float,
    end_s: float,
    under_way: Sequence[RunWithOperations] = (),
) -> dict[str, Any]:
    """Return the picture between two instants, in the form of `picture`.

    ``times`` are the begins of the intervals, in seconds since 1970. ``unknown`` are
    pairs of instants between which no daemon ran: nobody knows what moved then.

    Parameters
    ----------
    under_way
        Jobs that run and that the reader may see, with their present operations.

    Raises
    ------
    InputError
        If the time is empty, too long, or has too many operations.
    """
    _check(begin_s, end_s)
    archive = ArchiveReader(folder)
    operations = archive.operations_at_most(
        _MOST_OPERATIONS, begin_s, end_s, reader.user
    )
    intervals = _Intervals(begin_s, end_s)
    archived_until_s: dict[str, float] = {}
    for run, done in operations.items():
        for operation in done:
            intervals.add(run.job_key, operation)
            until_s = max(operation.end_s, archived_until_s.get(run.job_key, 0.0))
            archived_until_s[run.job_key] = until_s
    for present in under_way:
        job_key = f"{present.job.user}:{present.job.job_name}"
        for reported in present.operations:
            # An operation that has ended since it was reported is in the archive.
            if reported.begin_s >= archived_until_s.get(job_key, 0.0):
                intervals.add(job_key, reported)
    unknown = archive.unrecorded(begin_s, end_s)
    return intervals.document() | {"unknown": unknown}


def _check(begin_s: float, end_s: float) -> None:
    # Not a number is in no order.
    if not 0.0 <= begin_s < end_s:
        raise InputError("the time is empty", remedy="give from < to")
    if not end_s - begin_s <= _LONGEST_S:
        raise InputError("the time is too long", remedy="look at a month at most")


def moved_pieces(
    operation: CompletedOperation | ReportedOperation,
) -> list[tuple[float, float, float]]:
    """Return begin, end and moved bytes of the parts of an operation; see the module.

    An operation that has moved more than was granted moved in proportion to the grants.
    """
    begin_s, end_s, moved_bytes = (
        operation.begin_s,
        operation.end_s,
        operation.moved_bytes,
    )
    steps = [(min(max(at_s, begin_s), end_s), rate) for at_s, rate in operation.grants]
    if not steps or steps[0][0] > begin_s:
        steps.insert(0, (begin_s, None))
    ends_s = [*(at_s for at_s, _ in steps[1:]), end_s]
    pieces = [
        (at_s, until_s, inf if rate is None else rate)
        for (at_s, rate), until_s in zip(steps, ends_s, strict=True)
        if until_s > at_s
    ]
    granted_bytes = sum((until_s - at_s) * rate for at_s, until_s, rate in pieces)
    if len(pieces) < 2 or not granted_bytes:
        return [(begin_s, end_s, moved_bytes)]
    if granted_bytes <= moved_bytes:
        factor = moved_bytes / granted_bytes
        return [(a, b, (b - a) * rate * factor) for a, b, rate in pieces]
    most = _highest_rate(pieces, moved_bytes)
    return [(a, b, (b - a) * min(rate, most)) for a, b, rate in pieces]


def _highest_rate(
    pieces: Sequence[tuple[float, float, float]], moved_bytes: float
) -> float:
    """Return c, for which the sum of length x min(grant, c) is `moved_bytes`."""
    left_s = sum(until_s - at_s for at_s, until_s, _ in pieces)
    left_bytes = moved_bytes
    for at_s, until_s, rate in sorted(pieces, key=itemgetter(2)):
        if rate * left_s >= left_bytes:
            break
        left_s -= until_s - at_s
        left_bytes -= (until_s - at_s) * rate
    return left_bytes / left_s if left_s > 0.0 else 0.0


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

    def add(
        self, job_key: str, operation: CompletedOperation | ReportedOperation
    ) -> None:
        """Add an operation; what is outside of the intervals is left out."""
        begin = (operation.begin_s - self._begin_s) / self._length_s
        end = (operation.end_s - self._begin_s) / self._length_s
        if end < 0.0 or begin >= POINTS:
            return
        first, last = max(int(begin), 0), min(int(end), POINTS - 1)
        for begin_s, end_s, moved_bytes in moved_pieces(operation):
            self._add_moved(job_key, moved_bytes, begin_s, end_s)
        if operation.capacity is not None and isfinite(operation.capacity):
            count = last + 1 - first
            self._bandwidth[first : last + 1] = [operation.capacity] * count

    def _add_moved(
        self, job_key: str, moved_bytes: float, begin_s: float, end_s: float
    ) -> None:
        """Add bytes that were moved at a constant rate between two instants."""
        # In units of intervals.
        begin = (begin_s - self._begin_s) / self._length_s
        end = (end_s - self._begin_s) / self._length_s
        if end < 0.0 or begin >= POINTS:
            return
        first, last = max(int(begin), 0), min(int(end), POINTS - 1)
        moved = self._moved.setdefault(job_key, [0.0] * POINTS)
        steps = self._steps.setdefault(job_key, [0.0] * (POINTS + 1))
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
