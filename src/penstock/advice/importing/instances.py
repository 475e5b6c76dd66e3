# SPDX-License-Identifier: MIT
"""From job records to an instance: one clock, one storage, a cap for each job.

**Clock.** The earliest job begins at 0, the others as much later as their logs say.
With `align`, every job begins at 0.

**Cap of a job.** A job that never waits draws its bytes in its time in I/O. Without
`node_bandwidth` this rate, bytes / time in I/O, is the cap of the job in the instance
(the key ``bandwidth`` of the application). With `node_bandwidth`, or for a job whose
log has no times, the cap is the one of the model: min(nodes x node bandwidth,
bandwidth).

A past job of penstock has the rate of its I/O without the time that it lost as its cap
(`penstock.advice.logs.history`), and its waiting is not copied.

**Bandwidth of the storage.** If it is not given: the bandwidth that past jobs of
penstock shared, if they did; else the highest rate at which the jobs moved bytes
together. The storage has at least this bandwidth; it may have more.

**Window.** It ends with the last job. If all jobs are past jobs of penstock, it ends
`HORIZON_S` later: some policies look at the end of the window, and live control never
shows them one that is nearer.

Times are in seconds, volumes in bytes.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from penstock.advice.importing.phases import (
    operations_of,
    phases_between,
    phases_of,
)
from penstock.advice.logs.record import Burst, Detail, LoggedJob
from penstock.errors import InputError
from penstock.model import Application, Instance, Platform, Window
from penstock.policies.view import HORIZON_S
from penstock.units import format_bandwidth, format_time

__all__ = [
    "Assumptions",
    "ImportedJob",
    "assumed_burst",
    "assumed_platform",
    "build",
    "named",
    "releases_of",
]

#: The window ends this part later than the last job, which is then inside.
_MARGIN: Final = 1e-9
#: A bandwidth may be this part below the highest rate in the logs.
_TOLERANCE: Final = 0.01
#: Above this multiple of the highest rate in the logs, a bandwidth is doubted.
_ABSURD: Final = 1000


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What the user says about the storage and the jobs; None: find it in the logs."""

    bandwidth: float | None = None
    """Bandwidth of the storage (bytes/s)."""
    node_bandwidth: float | None = None
    """Bandwidth of one compute node (bytes/s)."""
    align: bool = False
    """Let every job begin at 0."""
    io_fraction: float = 0.1
    """Part of its length that a job spends in I/O if its log does not say."""

    def __post_init__(self) -> None:
        """Check the part."""
        if not 0.0 < self.io_fraction < 1.0:
            raise InputError(
                f"{self.io_fraction} is not between 0 and 1",
                where="io_fraction",
                remedy="write e.g. 0.1",
            )


class ImportedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the result: a job in the log against the same job in the instance."""

    name: str
    source: str
    detail: Detail
    nodes: int
    operations: int
    bytes_log: float | None
    bytes_instance: float
    io_seconds_log: float | None
    io_seconds_instance: float
    notes: list[str]


def named(records: Iterable[LoggedJob]) -> list[LoggedJob]:
    """Return the records with different names: the second ``a`` becomes ``a-2``."""
    used: dict[str, int] = {}
    renamed = []
    for record in records:
        name = record.name
        while name in used:
            used[record.name] += 1
            name = f"{record.name}-{used[record.name]}"
        used[name] = 1
        renamed.append(replace(record, name=name))
    return renamed


# --- The platform ---------------------------------------------------------------------


def assumed_platform(
    records: Sequence[LoggedJob], assumptions: Assumptions
) -> tuple[Platform, list[str]]:
    """Return the platform, and a note for each bandwidth that was not given.

    Raises `InputError` if no log says at which rate bytes moved and no bandwidth is
    given.
    """
    total, notes = _assumed_bandwidth(records, assumptions.bandwidth)
    node = assumptions.node_bandwidth
    if node is None:
        # Past jobs of penstock do not tell what a node could draw.
        timed = [r for r in records if r.io_s > 0 and r.detail != "history"]
        node = max((_rate(r) / r.nodes for r in timed), default=total)
        source = "the highest rate per node in the logs" if timed else "not limited"
        notes.append(
            f"node bandwidth {format_bandwidth(node)}: {source} (--node-bandwidth)"
        )
    return Platform(total, node), notes


def _assumed_bandwidth(
    records: Sequence[LoggedJob], given: float | None
) -> tuple[float, list[str]]:
    """Return the bandwidth of the storage (bytes/s), and notes about it."""
    if given is not None:
        return given, _doubts(given, records)
    shared = [rate for record in records for rate in record.shared_rates]
    if shared:
        total = statistics.median(shared)
        source = "what the jobs shared, median over their operations"
    else:
        timed = [record for record in records if record.io_s > 0]
        if not timed:
            raise InputError(
                "no log says how fast the storage is",
                where="bandwidth",
                remedy="give its bandwidth, e.g. --bandwidth 100GB/s, in Python "
                'bandwidth="100 GB/s"',
            )
        total = _highest_rate(timed)
        source = (
            "the highest rate at which the jobs moved bytes together; the storage may "
            "have more"
        )
    return total, [f"bandwidth {format_bandwidth(total)}: {source} (--bandwidth)"]


def _doubts(bandwidth: float, records: Sequence[LoggedJob]) -> list[str]:
    """Return a note if a bandwidth that was given cannot be that of the logs."""
    timed = [record for record in records if record.io_s > 0]
    if not timed:
        return []
    shown = _highest_rate(timed)
    doubt = ""
    if bandwidth < (1.0 - _TOLERANCE) * shown:
        doubt = f"less than the {format_bandwidth(shown)}"
    elif bandwidth > _ABSURD * shown:
        doubt = f"more than {_ABSURD} times the {format_bandwidth(shown)}"
    if not doubt:
        return []
    return [
        f"WARNING: the bandwidth that was given, {format_bandwidth(bandwidth)}, is "
        f"{doubt} at which the jobs moved bytes together: check it"
    ]


def releases_of(records: Sequence[LoggedJob], *, align: bool) -> list[float]:
    """Return the begin of every job on the one clock (s)."""
    if align:
        return [0.0] * len(records)
    first = min(record.start_s for record in records)
    return [record.start_s - first for record in records]


def _rate(record: LoggedJob) -> float:
    """Return the rate of a job during its I/O, without what it lost (bytes/s)."""
    return record.cap or record.volume_bytes / record.io_s


def _highest_rate(records: Sequence[LoggedJob]) -> float:
    """Return the highest sum of the rates of jobs that did I/O at the same time.

    The times are those of the logs, also if the jobs are aligned later.
    """
    highest = max(map(_rate, records))
    for clock in {record.clock for record in records}:
        times, changes = [], []
        for record in [record for record in records if record.clock == clock]:
            rate = _rate(record)
            for burst in record.bursts:
                begin = record.start_s + burst.begin_s
                times += [begin, begin + burst.volume_bytes / rate]
                changes += [rate, -rate]
        # At equal times, ends come first.
        order = np.lexsort((changes, times))
        highest = max(highest, float(np.cumsum(np.array(changes)[order]).max()))
    return highest


# --- Applications ---------------------------------------------------------------------


def build(
    records: Sequence[LoggedJob], platform: Platform, assumptions: Assumptions
) -> tuple[Instance, list[ImportedJob]]:
    """Return the instance of the records, and a row for each job."""
    releases = releases_of(records, align=assumptions.align)
    applications, rows, end = [], [], _MARGIN
    for record, release in zip(records, releases, strict=True):
        application, row = _application(record, release, platform, assumptions)
        applications.append(application)
        rows.append(row)
        length = float(application.work.sum()) + row.io_seconds_instance
        end = max(end, (release + max(length, record.run_s)) * (1.0 + _MARGIN))
    if all(record.detail == "history" for record in records):
        end += HORIZON_S
    return Instance(platform, Window(0.0, end), tuple(applications)), rows


def _application(
    record: LoggedJob, release: float, platform: Platform, assumptions: Assumptions
) -> tuple[Application, ImportedJob]:
    is_past = record.detail == "history"
    has_own_cap = record.io_s > 0 and assumptions.node_bandwidth is None
    own = platform.cap(record.nodes)
    if has_own_cap:
        own = (record.cap or platform.bandwidth) if is_past else _rate(record)
    cap = min(own, platform.bandwidth)
    bursts, notes = record.bursts, list(record.notes)
    if record.log_bytes is None:
        bursts = (assumed_burst(record, cap, assumptions.io_fraction),)
        notes.append(
            "the log does not count bytes: it is assumed that "
            f"{100 * assumptions.io_fraction:g} % of the time is I/O (--io-fraction)"
        )
    phases = phases_of(operations_of(bursts), cap, record.run_s)
    if is_past:
        phases = phases_between(bursts, record.run_s)
    volumes = [amount for kind, amount in phases if kind == "io"]
    moved = float(sum(volumes))
    notes += _cap_notes(record, own, moved, platform)
    application = Application.from_phases(
        record.name,
        record.nodes,
        phases,
        release=release,
        user=record.user,
        group=record.group,
        period=record.period_s,
        profile=np.array([own] if has_own_cap else []),
    )
    return application, ImportedJob(
        name=record.name,
        source=record.source,
        detail=record.detail,
        nodes=record.nodes,
        operations=len(volumes),
        bytes_log=record.log_bytes,
        bytes_instance=moved,
        io_seconds_log=record.io_s or None,
        io_seconds_instance=moved / cap,
        notes=notes,
    )


def assumed_burst(record: LoggedJob, cap: float, io_fraction: float) -> Burst:
    """Return the assumed I/O of a job: part of its time, at its cap."""
    io_s = io_fraction * record.run_s
    return Burst(0.0, record.run_s, max(round(io_s * cap), 1), io_s, is_exact=False)


def _cap_notes(
    record: LoggedJob, own: float, moved: float, platform: Platform
) -> list[str]:
    """Return notes about caps with which the I/O takes longer than in the log."""
    notes = []
    if own > platform.bandwidth * (1.0 + 1e-9):
        notes.append(
            f"drew {format_bandwidth(own)} in the log, more than the whole bandwidth"
        )
    io_s = moved / min(own, platform.bandwidth)
    if io_s > record.run_s * (1.0 + 1e-9):
        notes.append(
            f"its I/O takes {format_time(io_s)} at its cap, the whole job only "
            f"{format_time(record.run_s)} in the log"
        )
    return notes
