# SPDX-License-Identifier: MIT
"""The rates at which a past job moved data, rebuilt from the archive.

The archive has the volume and the grants of every operation, and not its single calls.
So the rate inside an operation is taken to be as granted, but at most c, where c is
such that the volume of the operation comes out. An operation without a limit moves at a
constant rate.

Instants are seconds since 1970, rates bytes per second.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.advice.job_report.simulation import runs_of_report
from penstock.live.wire.messages import (
    JobReport,
    ReportedOperation,
    RunWithOperations,
)

__all__ = [
    "OTHERS",
    "Band",
    "bands_of",
    "grant_steps",
    "length_of",
    "moved_between",
    "recorded_shares",
    "shared_bandwidth",
]

#: Number of other jobs that are shown by name: those that cost the job most time.
_MOST_OTHERS: Final = 6
#: Name of all jobs that are not shown by name.
OTHERS: Final = "other jobs"

_Floats = NDArray[np.float64]


def shared_bandwidth(runs: Sequence[RunWithOperations]) -> float:
    """Return the bandwidth that jobs shared, the median over their operations.

    If it is not known, this is the highest mean rate of an operation, at least 1.
    """
    operations = [operation for run in runs for operation in run.operations]
    known = [o.capacity for o in operations if o.capacity is not None]
    if known:
        return statistics.median(known)
    lengths = ((o, o.end_s - o.begin_s) for o in operations)
    rates = [o.moved_bytes / length for o, length in lengths if length > 0.0]
    return max(rates, default=1.0)


def moved_between(run: RunWithOperations, edges: _Floats) -> _Floats:
    """Return the volume that a job moved between instants (seconds since 1970)."""
    times, moved = [0.0], [0.0]
    for operation in run.operations:
        begin_s = max(operation.begin_s, times[-1])
        times.append(begin_s)
        moved.append(moved[-1])
        for length_s, rate in _rates(operation):
            times.append(times[-1] + length_s)
            moved.append(moved[-1] + length_s * rate)
    return np.diff(np.interp(edges, times, moved))


def _rates(operation: ReportedOperation) -> Iterator[tuple[float, float]]:
    """Yield durations and rates of an operation; see the module."""
    steps = list(grant_steps(operation))
    lengths = np.array([length for length, _ in steps])
    grants = np.array([grant for _, grant in steps])
    moved = operation.moved_bytes
    if float(lengths @ np.minimum(grants, 1e300)) <= moved:
        # It moved more than it was granted: in proportion to the grants.
        rates = grants * moved / max(float(lengths @ grants), 1e-300)
    else:
        rates = np.minimum(grants, _limit(lengths, grants, moved))
    yield from zip(lengths.tolist(), rates.tolist(), strict=True)


def grant_steps(operation: ReportedOperation) -> Iterator[tuple[float, float]]:
    """Yield durations and grants of an operation; a grant without limit is infinite."""
    begin_s, end_s = operation.begin_s, operation.end_s
    steps = [(min(max(t, begin_s), end_s), rate) for t, rate in operation.grants]
    if not steps or steps[0][0] > begin_s:
        steps.insert(0, (begin_s, None))
    ends = [instant for instant, _ in steps[1:]] + [end_s]
    for (instant, rate), end in zip(steps, ends, strict=True):
        if end > instant:
            yield end - instant, inf if rate is None else rate


def _limit(lengths: _Floats, grants: _Floats, moved: float) -> float:
    """Return the rate c for which the sum of lengths x min(grants, c) is `moved`."""
    left_s, left_bytes = float(lengths.sum()), moved
    for place in np.argsort(grants, kind="stable").tolist():
        if grants[place] * left_s >= left_bytes:
            break
        left_s -= lengths[place]
        left_bytes -= lengths[place] * grants[place]
    return left_bytes / left_s if left_s > 0.0 else 0.0


class Band(NamedTuple):
    """One line of the drawing: a job, or all jobs that are not drawn by name."""

    name: str
    places: list[int]
    """Numbers of its jobs among those of the report; 0 is the job itself."""


def bands_of(report: JobReport) -> list[Band]:
    """Return the job, those that cost it most time, then all others as one band."""
    names = [run.job.job_name for run in report.others]
    costly = [delay.job_name for delay in report.delays][:_MOST_OTHERS]
    bands = [Band(report.job.job_name, [0])]
    for name in costly:
        # A job that ran twice meanwhile is one band.
        places = [place for place, other in enumerate(names, 1) if other == name]
        if places:
            bands.append(Band(name, places))
    rest = [place for place, name in enumerate(names, 1) if name not in costly]
    return [*bands, Band(OTHERS, rest)] if rest else bands


def length_of(report: JobReport) -> float:
    """Return the time from joining to leaving, or to the last operation (s)."""
    job = report.job
    last_s = max((each.end_s for each in report.operations), default=job.joined_s)
    end_s = last_s if job.left_s is None else max(job.left_s, last_s)
    return max(end_s - job.joined_s, 1e-3)


def recorded_shares(report: JobReport, edges: _Floats, bandwidth: float) -> _Floats:
    """Return the part of the bandwidth that every job had between the edges.

    The edges are seconds since the job joined.
    """
    instants = edges + report.job.joined_s
    most = np.diff(edges) * bandwidth
    runs = runs_of_report(report)
    return np.array([moved_between(run, instants) / most for run in runs])
