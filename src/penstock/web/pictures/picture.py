# SPDX-License-Identifier: MIT
"""The stacked picture of who had which share: the rates of the last hour.

`RecentRates` keeps one point per poll: the instant, the shared bandwidth and the rate
of every job that moved data. A rate is what the job has moved since the poll before,
divided by the time: so the picture shows what was moved, however unevenly. A point of
1,000 jobs takes 12 kB, an hour of them 43 MB. Points whose jobs are the same share the
tuple of their keys.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from penstock.live.wire.messages import JobStatus, StatusDocument
from penstock.web.identity.readers import Reader

__all__ = ["MOST_POINTS", "MOST_SERIES", "RatePoint", "RecentRates", "picture"]

#: Points that are kept: an hour.
_KEPT: Final = 3600
#: Points that a picture has at most; neighbours are joined to their mean.
MOST_POINTS: Final = 600
#: Jobs that a picture shows one by one; all others are added up.
MOST_SERIES: Final = 10


@dataclass(frozen=True, slots=True)
class RatePoint:
    """The rates of all jobs at one instant."""

    number: int
    """Number of the poll; numbers increase by 1."""
    time_s: float
    """Seconds since 1970."""
    bandwidth: float | None
    """Bandwidth that is shared (bytes/s); None: not known."""
    job_keys: tuple[str, ...]
    """Jobs that moved data."""
    rates: array[float]
    """Rate of each of these jobs (bytes/s)."""


class RecentRates:
    """The points of the last hour, oldest first."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._points: deque[RatePoint] = deque(maxlen=kept)
        #: Job -> bytes that it had moved at the last poll.
        self._moved: dict[str, float] = {}

    def add(self, number: int, time_s: float, status: StatusDocument) -> None:
        """Add the point of a status."""
        elapsed_s = time_s - self._points[-1].time_s if self._points else 0.0
        lines = {f"{line.user}:{line.job_name}": line for line in status.jobs}
        all_rates = {key: self._rate(key, lines[key], elapsed_s) for key in lines}
        self._moved = {key: line.moved_bytes for key, line in lines.items()}
        job_keys = tuple(key for key, rate in all_rates.items() if rate > 0.0)
        if self._points and self._points[-1].job_keys == job_keys:
            job_keys = self._points[-1].job_keys
        rates = array("f", [all_rates[key] for key in job_keys])
        self._points.append(
            RatePoint(number, time_s, status.bandwidth, job_keys, rates)
        )

    def _rate(self, job_key: str, line: JobStatus, elapsed_s: float) -> float:
        """Return the rate of a job since the last poll (bytes/s).

        A job that was not there before, or whose counters began again, has the rate
        that the daemon has measured.
        """
        before_bytes = self._moved.get(job_key)
        if before_bytes is None or elapsed_s <= 0.0 or line.moved_bytes < before_bytes:
            return line.drawn_bytes_per_s
        return (line.moved_bytes - before_bytes) / elapsed_s

    def latest_rates(self, reader: Reader) -> dict[str, int]:
        """Return the last rates of the jobs that a reader may see (bytes/s)."""
        if not self._points:
            return {}
        means = _means([self._points[-1]], reader)
        return {job_key: round(rate) for job_key, rate in means.items()}

    def after(self, number: int) -> list[RatePoint]:
        """Return the points whose number is greater, oldest first."""
        points = self._points
        if not points:
            return []
        begin = max(number + 1 - points[0].number, 0)
        return list(islice(points, begin, None))


def picture(points: Sequence[RatePoint], reader: Reader) -> dict[str, Any]:
    """Return a picture of the jobs that a reader may see, as a JSON document.

    ``times`` are instants, ``bandwidth`` and all rates are in bytes/s. ``series`` has
    the jobs that moved most, the largest first; ``others`` is the sum of all others.
    """
    groups = list(_groups(points))
    means = [_means(group, reader) for group in groups]
    totals: Counter[str] = Counter()
    for rates in means:
        totals.update(rates)
    shown = [job_key for job_key, _ in totals.most_common(MOST_SERIES)]
    return {
        "times": [group[-1].time_s for group in groups],
        "bandwidth": [group[-1].bandwidth for group in groups],
        "series": [
            {"job": key, "rates": [round(rates.get(key, 0.0)) for rates in means]}
            for key in shown
        ],
        "others": [_rest(rates, shown) for rates in means],
    }


def _groups(points: Sequence[RatePoint]) -> Iterator[Sequence[RatePoint]]:
    """Yield at most `MOST_POINTS` groups of neighbours, of equal sizes."""
    size = max(-(-len(points) // MOST_POINTS), 1)
    for begin in range(0, len(points), size):
        yield points[begin : begin + size]


def _means(group: Sequence[RatePoint], reader: Reader) -> dict[str, float]:
    """Return the mean rate of each job that a reader may see."""
    totals: dict[str, float] = {}
    for point in group:
        for job_key, rate in zip(point.job_keys, point.rates, strict=True):
            if reader.may_see(job_key):
                totals[job_key] = totals.get(job_key, 0.0) + rate
    return {job_key: total / len(group) for job_key, total in totals.items()}


def _rest(rates: dict[str, float], shown: Sequence[str]) -> int:
    """Return the sum of the rates of jobs that are not shown one by one."""
    total = sum(rates.values()) - sum(rates.get(key, 0.0) for key in shown)
    return max(round(total), 0)
