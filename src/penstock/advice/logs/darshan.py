# SPDX-License-Identifier: MIT
"""Darshan logs: one job per log.

**Bytes.** The counters of POSIX and STDIO, reads and writes. MPI-IO moves its bytes
through POSIX; its counters are used only for files that have no POSIX counters. So no
byte is counted twice. A log without counters has the bytes of its heatmap or its DXT.

**Times**, from the most exact source that the log has:

1. DXT: begin and end of every access, from POSIX, and from MPI-IO for the files that
   only MPI-IO counts.
2. HEATMAP: bytes per bin of time. Inside a bin nothing is known.
3. Counters: for each file, the first and last access and the time spent in accesses.

If DXT or a heatmap does not cover all bytes, the rest comes from the counters: spread
over the known bursts in proportion if it is less than 1 % of all bytes, else between
the first and the last access to the file.

**Time in I/O** is the time during which at least one process reads or writes. DXT gives
it exactly. Counters give bounds. At least: the time of the slowest process. At most:
the sum over all processes, the time between the first and the last accesses, and the
bins with bytes. The geometric mean of both is used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from penstock.advice.logs.bursts import IntervalUnion, saturating_times, whole_parts
from penstock.advice.logs.record import (
    Burst,
    Detail,
    LoggedJob,
    Skipped,
    plain_name,
)
from penstock.errors import InputError
from penstock.workloads.darshan_log import CounterRecord, DarshanJob, DarshanLog

__all__ = ["DETAILS", "darshan_job", "read_darshan"]

#: The sources of times, from the most to the least exact.
DETAILS: Final[tuple[Detail, ...]] = ("dxt", "heatmap", "counters")
#: Bytes that DXT does not cover are spread over its bursts up to this part.
_SMALL_REST: Final = 0.01
#: Bounds that differ by less than this part are one time.
_CLOSE: Final = 0.01
#: What Darshan's library says about records of a version that it does not know; the
#: other modules of the log can still be read.
_NEWER: Final = "module version"
#: Modules that also move bytes, but are not read.
_OTHERS: Final = ("DFS", "DAOS")


class _Window(NamedTuple):
    """The accesses to a file in one direction, as the counters tell them."""

    begin: float
    end: float
    volume: int


class _CounterTotals(NamedTuple):
    """What the counters of a log say."""

    volume: int
    windows: list[_Window]
    slowest_s: float
    """Time in I/O of the slowest process."""
    sum_s: float
    """Time in I/O, summed over all processes."""
    posix_files: frozenset[int]


class _Timeline(NamedTuple):
    """Bursts from one source of times."""

    detail: Detail
    bursts: list[Burst]
    notes: list[str]
    nodes: int = 0
    """Number of nodes that did I/O; 0 if not known."""


def read_darshan(path: Path, gap_s: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the job of a log."""
    yield darshan_job(path, gap_s)


def darshan_job(
    path: Path, gap_s: float, details: tuple[Detail, ...] = DETAILS
) -> LoggedJob:
    """Return the job of a log; use only the sources of times in `details`."""
    with DarshanLog(path) as log:
        totals = _totals(log)
        timeline = _timeline(log, totals, gap_s, details)
        notes = [*timeline.notes, *_warnings(log)]
        job = log.job
    covered = sum(burst.volume_bytes for burst in timeline.bursts)
    volume = totals.volume or covered
    if not volume:
        raise InputError("the job has no I/O", remedy="nothing to import")
    bursts, rest = _with_rest(timeline, totals, volume)
    low, high = _io_bounds(timeline, totals, bursts)
    if timeline.detail != "dxt" or rest:
        bursts = _bridged(_timed(bursts, math.sqrt(low * high)), gap_s)
        if high > low * (1.0 + _CLOSE):
            notes.append(f"time in I/O is between {low:.3g} s and {high:.3g} s")
    run_s, clock_notes = _length(job, bursts)
    nodes, node_notes = _nodes(job, timeline)
    program = Path((job.program.split() or ["job"])[0]).name
    return LoggedJob(
        name=plain_name([program, job.job_id]),
        source=str(path),
        detail=timeline.detail,
        bursts=tuple(bursts),
        start_s=job.start_s,
        run_s=run_s,
        clock="" if job.start_s > 0 else str(path),
        nodes=nodes,
        knows_nodes=not node_notes,
        job_id=str(job.job_id),
        user=str(job.user_id) if job.user_id > 0 else "",
        log_bytes=volume,
        io_low_s=low,
        io_high_s=high,
        notes=(*notes, *rest, *clock_notes, *node_notes),
    )


# --- Counters -------------------------------------------------------------------------


def _totals(log: DarshanLog) -> _CounterTotals:
    """Add up the counters of all files."""
    posix = list(log.counters("POSIX"))
    files = frozenset(record.file_id for record in posix)
    records = [
        *posix,
        *log.counters("STDIO"),
        *(record for record in log.counters("MPI-IO") if record.file_id not in files),
    ]
    by_rank: Counter[int] = Counter()
    shared_s = 0.0
    for record in records:
        spent = record.read_s + record.written_s
        if record.rank < 0:
            shared_s += min(record.slowest_s, spent) if record.slowest_s > 0 else 0.0
        else:
            by_rank[record.rank] += spent  # type: ignore[assignment]
    windows = [window for record in records for window in _windows(record)]
    return _CounterTotals(
        volume=sum(window.volume for window in windows),
        windows=windows,
        slowest_s=shared_s + max(by_rank.values(), default=0.0),
        sum_s=sum(record.read_s + record.written_s for record in records),
        posix_files=files,
    )


def _windows(record: CounterRecord) -> Iterator[_Window]:
    for volume, (begin, end) in (
        (record.read_bytes, record.reading_s),
        (record.written_bytes, record.writing_s),
    ):
        if volume:
            start = max(begin, 0.0)
            yield _Window(start, max(end, start), volume)


# --- Sources of times -----------------------------------------------------------------


def _timeline(
    log: DarshanLog, totals: _CounterTotals, gap_s: float, details: tuple[Detail, ...]
) -> _Timeline:
    """Return the bursts from the most exact source that can be read."""
    notes = []
    readers = {"dxt": _from_dxt, "heatmap": _from_heatmap}
    for detail in [name for name in details if name in readers]:
        try:
            timeline = readers[detail](log, totals, gap_s)
        except InputError as error:
            if _NEWER not in error.what:
                raise  # The log is damaged.
            notes.append(error.what)
            continue
        if timeline.bursts:
            return timeline._replace(notes=[*timeline.notes, *notes])
    if notes and not totals.windows:
        raise InputError(notes[0], remedy="nothing else in the log has bytes")
    windows = _joined_windows(totals.windows, gap_s)
    return _Timeline("counters", windows, notes)


def _from_dxt(log: DarshanLog, totals: _CounterTotals, gap_s: float) -> _Timeline:
    union = IntervalUnion()
    hosts, ranks = set(), set()
    for module in ("DXT_POSIX", "DXT_MPIIO"):
        for record in log.segments(module):
            if module == "DXT_MPIIO" and record.file_id in totals.posix_files:
                continue
            hosts.add(record.hostname)
            ranks.add(record.rank)
            for segments in (record.reads, record.writes):
                union.add(
                    segments["start_time"], segments["end_time"], segments["length"]
                )
    bursts = union.bursts(gap_s)
    notes = []
    if len(ranks) < log.job.processes and bursts:
        notes.append(
            f"{len(ranks)} of {log.job.processes} processes did I/O; nodes without "
            "I/O are not counted"
        )
    return _Timeline("dxt", bursts, notes, nodes=len(hosts))


def _from_heatmap(log: DarshanLog, totals: _CounterTotals, _: float) -> _Timeline:
    modules = {"POSIX", "STDIO"} if totals.posix_files else {"MPIIO", "STDIO"}
    bins, bin_s = np.zeros(0), 0.0
    for record in log.heatmaps():
        if totals.windows and record.module not in modules:
            continue
        moved = (record.read_bytes + record.written_bytes).astype(float)
        # Every process has bins of the same width; some have fewer of them.
        bins = np.pad(bins, (0, max(0, len(moved) - len(bins))))
        bins[: len(moved)] += np.maximum(moved, 0.0)
        bin_s = record.bin_s
    bursts = [
        Burst(k * bin_s, (k + 1) * bin_s, float(bins[k]), bin_s, is_exact=False)
        for k in np.flatnonzero(bins).tolist()
    ]
    notes = [f"times are known to {bin_s:g} s (bins of the heatmap)"]
    return _Timeline("heatmap", bursts, notes)


def _joined_windows(windows: Iterable[_Window], gap_s: float) -> list[Burst]:
    """Return the times from first to last accesses, joined where they overlap."""
    union = IntervalUnion()
    columns = list(zip(*windows, strict=True))
    if columns:
        begin, end, volume = columns
        union.add(np.array(begin), np.array(end), np.array(volume, dtype=np.int64))
    return [
        Burst(b.begin_s, b.end_s, b.volume_bytes, b.io_s, is_exact=False)
        for b in union.bursts(gap_s)
    ]


# --- Bytes and times that agree with the counters -------------------------------------


def _with_rest(
    timeline: _Timeline, totals: _CounterTotals, volume: float
) -> tuple[list[Burst], list[str]]:
    """Return bursts that move `volume` in all, and a note if much was not covered."""
    covered = sum(burst.volume_bytes for burst in timeline.bursts)
    rest = volume - covered
    if rest <= _SMALL_REST * volume:
        return _scaled(timeline.bursts, volume), []
    last = max((burst.end_s for burst in timeline.bursts), default=0.0)
    end = max(window.end for window in totals.windows)
    begin = last if end > last else min(window.begin for window in totals.windows)
    unknown = Burst(begin, end, rest, end - begin, is_exact=False)
    bursts = sorted([*timeline.bursts, unknown], key=lambda burst: burst.begin_s)
    part = 100.0 * covered / volume
    note = f"{timeline.detail} covers {part:.2g} % of the bytes, counters the rest"
    return _scaled(bursts, volume), [note]


def _scaled(bursts: list[Burst], volume: float) -> list[Burst]:
    """Return the bursts with whole numbers of bytes that add up to `volume`."""
    parts = whole_parts([burst.volume_bytes for burst in bursts], volume)
    pairs = zip(bursts, parts, strict=True)
    return [_with(burst, volume_bytes=part) for burst, part in pairs]


def _io_bounds(
    timeline: _Timeline, totals: _CounterTotals, bursts: list[Burst]
) -> tuple[float, float]:
    """Return the least and greatest time in I/O that agrees with the log (s)."""
    covered_s = sum(burst.io_s for burst in bursts)
    exact_s = sum(burst.io_s for burst in bursts if burst.is_exact)
    if timeline.detail == "dxt" and exact_s == covered_s:
        return exact_s, exact_s
    windows_s = sum(burst.io_s for burst in _joined_windows(totals.windows, 0.0))
    bounds = [covered_s, totals.sum_s, windows_s]
    high = max(min((bound for bound in bounds if bound > 0), default=0.0), exact_s)
    low = min(max(totals.slowest_s, exact_s), high)
    return (low if low > 0 else high), high


def _timed(bursts: list[Burst], io_s: float) -> list[Burst]:
    """Give the bursts that are not exact the rest of a time in I/O, at one rate."""
    left = max(io_s - sum(burst.io_s for burst in bursts if burst.is_exact), 0.0)
    unknown = [burst for burst in bursts if not burst.is_exact]
    times = saturating_times(
        [burst.volume_bytes for burst in unknown],
        [burst.end_s - burst.begin_s for burst in unknown],
        left,
    )
    known = iter(times)
    return [b if b.is_exact else _with(b, io_s=next(known)) for b in bursts]


def _bridged(bursts: list[Burst], gap_s: float) -> list[Burst]:
    """Join bins with I/O until `gap_s` before the next bin: one burst."""
    joined: list[Burst] = []
    for burst in bursts:
        last = joined[-1] if joined else burst
        idle_s = burst.begin_s - last.begin_s - last.io_s
        if joined and not (last.is_exact or burst.is_exact) and idle_s <= gap_s:
            joined[-1] = Burst(
                last.begin_s,
                burst.end_s,
                last.volume_bytes + burst.volume_bytes,
                last.io_s + burst.io_s,
                is_exact=False,
            )
        else:
            joined.append(burst)
    return joined


def _with(burst: Burst, **changes: float) -> Burst:
    fields = {name: getattr(burst, name) for name in burst.__struct_fields__}
    return Burst(**{**fields, **changes})


# --- The job --------------------------------------------------------------------------


def _length(job: DarshanJob, bursts: list[Burst]) -> tuple[float, list[str]]:
    """Return the length of the job (s); its last I/O is inside."""
    last = max(burst.begin_s + burst.io_s for burst in bursts)
    run_s = max(job.run_s, 0.0)
    if job.end_s < job.start_s:
        return max(last, run_s), ["the clock was set back while the job ran"]
    if last > run_s * 1.01 + 1.0:
        return last, [f"the last I/O is {last - run_s:.3g} s after the end of the job"]
    return max(last, run_s), []


def _nodes(job: DarshanJob, timeline: _Timeline) -> tuple[int, list[str]]:
    if timeline.nodes:
        return timeline.nodes, []
    processes = max(job.processes, 1)
    if processes == 1:
        return 1, []
    note = "the log does not name its nodes: one node per process is assumed"
    return processes, [note]


def _warnings(log: DarshanLog) -> list[str]:
    notes = []
    partial = [name for name in sorted(log.modules) if log.is_partial(name)]
    if partial:
        notes.append(f"Darshan ran out of memory for {', '.join(partial)}")
    others = [name for name in _OTHERS if name in log.modules]
    if others:
        notes.append(f"bytes of {', '.join(others)} are not counted")
    return notes
