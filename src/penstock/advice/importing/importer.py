# SPDX-License-Identifier: MIT
"""Import logs: the function behind ``penstock import``.

1. Find the logs (`sources`) and read them (`reading`): one record per job.
2. Join what two sources say about one job: Slurm knows the nodes of a Darshan log.
3. Leave out jobs whose clock cannot be compared with the others.
4. Build the instance (`instances`), and instances that fit as well (`ensembles`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Final, Literal, NotRequired, TypedDict

from msgspec.structs import asdict, replace

from penstock.advice.importing.ensembles import draw_ensemble
from penstock.advice.importing.instances import (
    Assumptions,
    ImportedJob,
    assumed_platform,
    build,
    named,
    releases_of,
)
from penstock.advice.importing.periods import with_periods
from penstock.advice.importing.reading import ImportJournal, read_logs
from penstock.advice.importing.sources import LogFile, find_logs
from penstock.advice.logs.bursts import DEFAULT_GAP_S
from penstock.advice.logs.record import LoggedJob, Skipped
from penstock.errors import InputError
from penstock.model import FORMAT, Instance, Platform, Window, instance_to_document
from penstock.model.formats import InstanceFormat
from penstock.workloads.darshan_log import check_reader

__all__ = [
    "EnsembleFormat",
    "ImportFormat",
    "ImportOptions",
    "Imported",
    "import_logs",
]

#: A log belongs to a job of Slurm if it begins at most this long outside of the job.
_CLOCK_SKEW_S: Final = 3600.0
#: Shortest time for which an I/O pressure is computed.
_SHORTEST_S: Final = 1e-9


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to import."""

    format: str = "auto"
    """One of `sources.FORMATS`."""
    gap_s: float = DEFAULT_GAP_S
    """Time without I/O that ends an operation."""
    assumptions: Assumptions = field(default_factory=Assumptions)
    strict: bool = False
    """Raise an error instead of skipping a log."""
    workers: int = 1
    """Number of processes that read logs."""
    periods: bool = False
    """Ask FTIO for the period of every job."""
    journal: Path | None = None
    """File that remembers the logs which are read, until the import is complete."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0.0 <= self.gap_s < math.inf:
            raise InputError(
                f"{self.gap_s} s is not a time of at least 0 s",
                where="gap",
                remedy='write e.g. "50 ms"',
            )


class EnsembleFormat(TypedDict):
    """Instances that agree with the same logs; the first is the instance."""

    seed: int
    instances: list[InstanceFormat]


class ImportFormat(TypedDict):
    """The result that ``penstock import --json`` writes."""

    penstock: Literal[1]
    jobs: list[ImportedJob]
    instance: InstanceFormat
    skipped: list[Skipped]
    notes: list[str]
    bandwidth_known: bool
    provenance: dict[str, Any]
    ensemble: NotRequired[EnsembleFormat]


@dataclass(frozen=True, slots=True)
class Imported:
    """The instance of the logs, and what is known about it."""

    instance: Instance
    jobs: list[ImportedJob]
    skipped: list[Skipped]
    notes: list[str]
    """What was assumed about the platform and the clock."""
    records: list[LoggedJob]
    assumptions: Assumptions

    @property
    def is_bandwidth_known(self) -> bool:
        """True if the bandwidth of the storage was given, not estimated."""
        return self.assumptions.bandwidth is not None

    @property
    def span_s(self) -> float:
        """Time from the begin of the first job to the end of the last one."""
        begins = releases_of(self.records, align=self.assumptions.align)
        return max(b + r.run_s for b, r in zip(begins, self.records, strict=True))

    @property
    def pressure(self) -> float:
        """I/O pressure in the time of the jobs; windows of past jobs are longer."""
        window = Window(0.0, max(self.span_s, _SHORTEST_S))
        return dataclasses.replace(self.instance, window=window).pressure()

    def ensemble(self, count: int, seed: int) -> list[Instance]:
        """Return `count` instances that agree with the logs, first the instance."""
        platform: Platform = self.instance.platform
        drawn = draw_ensemble(
            self.records, platform, self.assumptions, count=count, seed=seed
        )
        return list(drawn)

    def _repr_html_(self) -> str:
        from penstock.experiments.output.html import html_table  # noqa: PLC0415 - slow

        header = ("job", "detail", "nodes", "operations", "bytes")
        rows = [
            (j.name, j.detail, str(j.nodes), str(j.operations), f"{j.bytes_instance:g}")
            for j in self.jobs
        ]
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{html_table([header, *rows])}{notes}"

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON document."""
        return {
            "penstock": FORMAT,
            "jobs": [asdict(job) for job in self.jobs],
            "instance": instance_to_document(self.instance),
            "skipped": [asdict(item) for item in self.skipped],
            "notes": self.notes,
            "bandwidth_known": self.is_bandwidth_known,
        }


def import_logs(
    names: Iterable[str],
    options: ImportOptions | None = None,
    show: Callable[[int, int], None] = lambda _done, _total: None,
) -> Imported:
    """Return the instance of all logs below the named files and folders.

    `show` is called with the number of logs that are read, and of all logs.

    Raises `InputError` if no job can be imported; if `options.strict`, also if a log
    or a job would be skipped.
    """
    chosen = options or ImportOptions()
    records, skipped = _read(names, chosen, show)
    records = _joined_with_accounting(records)
    records, elsewhere = _on_one_clock(records, align=chosen.assumptions.align)
    skipped += elsewhere
    if skipped and (chosen.strict or not records):
        first = skipped[0]
        others = f" (and {len(skipped) - 1} more)" if len(skipped) > 1 else ""
        what = "--strict" if chosen.strict and records else "no job can be imported"
        raise InputError(f"{what}: {first.reason}{others}", where=first.source)
    if not records:
        raise InputError("no log in the named folders", remedy="name files with logs")
    if chosen.periods:
        records = with_periods(records)
    records = named(records)
    platform, notes = assumed_platform(records, chosen.assumptions)
    instance, jobs = build(records, platform, chosen.assumptions)
    notes += _overlap_notes(records, chosen.assumptions)
    return Imported(instance, jobs, skipped, notes, records, chosen.assumptions)


def _read(
    names: Iterable[str], options: ImportOptions, show: Callable[[int, int], None]
) -> tuple[list[LoggedJob], list[Skipped]]:
    logs: list[LogFile] = []
    skipped: list[Skipped] = []
    for item in find_logs(names, options.format):
        if isinstance(item, LogFile):
            logs.append(item)
        else:
            skipped.append(item)
    if any(log.format == "darshan" for log in logs):
        # A package that is missing is not the fault of the logs.
        check_reader()
    if options.journal is None:
        outcomes = read_logs(logs, options.gap_s, workers=options.workers, show=show)
    else:
        with ImportJournal(options.journal, options.gap_s) as journal:
            outcomes = read_logs(
                logs,
                options.gap_s,
                workers=options.workers,
                journal=journal,
                show=show,
            )
            journal.finish()
    records = [job for outcome in outcomes for job in outcome.jobs]
    skipped += [item for outcome in outcomes for item in outcome.skipped]
    return records, skipped


def _joined_with_accounting(records: Sequence[LoggedJob]) -> list[LoggedJob]:
    """Give logs what Slurm knows about their jobs; drop these jobs of Slurm."""
    accounted = {
        record.job_id: record
        for record in records
        if record.detail == "accounting" and record.job_id and not record.clock
    }
    joined, used = [], set()
    for record in records:
        job = accounted.get(record.job_id)
        if record.detail == "accounting" or job is None or not _is_inside(record, job):
            joined.append(record)
            continue
        used.add(record.job_id)
        joined.append(_described(record, job))
    return [r for r in joined if r.detail != "accounting" or r.job_id not in used]


def _is_inside(record: LoggedJob, job: LoggedJob) -> bool:
    """Return True if a log began while the job of Slurm ran."""
    since = record.start_s - job.start_s
    return not record.clock and -_CLOCK_SKEW_S <= since <= job.run_s + _CLOCK_SKEW_S


def _described(record: LoggedJob, job: LoggedJob) -> LoggedJob:
    notes = record.notes
    nodes = record.nodes
    if job.knows_nodes and not record.knows_nodes:
        nodes = job.nodes
        notes = tuple(note for note in notes if "nodes" not in note)
        notes += ("number of nodes from Slurm",)
    return replace(
        record,
        nodes=nodes,
        knows_nodes=record.knows_nodes or job.knows_nodes,
        user=job.user or record.user,
        group=job.group or record.group,
        notes=notes,
    )


def _on_one_clock(
    records: Sequence[LoggedJob], *, align: bool
) -> tuple[list[LoggedJob], list[Skipped]]:
    """Return the jobs whose begins can be compared, and the others as skipped.

    The clock is the wall clock, if a job has it; else the clock of the first job.
    """
    clocks = {record.clock for record in records}
    if align or len(clocks) < 2:
        return list(records), []
    clock = "" if "" in clocks else records[0].clock
    reason = (
        "its clock cannot be compared with that of the other jobs (import it alone, or "
        "let all jobs begin together with --align)"
    )
    return (
        [record for record in records if record.clock == clock],
        [Skipped(source=r.source, reason=reason) for r in records if r.clock != clock],
    )


def _overlap_notes(records: Sequence[LoggedJob], assumptions: Assumptions) -> list[str]:
    """Return a note if no two jobs ran at the same time."""
    begins = releases_of(records, align=assumptions.align)
    spans = sorted(
        (begin, begin + record.run_s)
        for begin, record in zip(begins, records, strict=True)
    )
    latest = -1.0
    for begin, end in spans:
        if begin < latest:
            return []
        latest = max(latest, end)
    if len(spans) < 2:
        return []
    return [
        "no two jobs ran at the same time: no policy can make a difference (--align "
        "lets all jobs begin together)"
    ]
