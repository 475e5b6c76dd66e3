# SPDX-License-Identifier: MIT
"""Slurm accounting: ``sacct --parsable2`` or ``sacct --json``, many jobs per file.

Text: the first line names the columns. Needed: ``JobID`` (or ``JobIDRaw``), ``Start``
and ``End`` (or ``Elapsed``). Used if there: ``JobName``, ``NNodes`` (or
``AllocNodes``), ``User``, ``Account``. The bytes of a job are those of its steps:
``fs/disk`` of ``TRESUsageInTot`` and ``TRESUsageOutTot``, else ``AveDiskRead`` and
``AveDiskWrite`` times ``NTasks``. A command that gives everything::

    sacct --parsable2 --format=JobIDRaw,JobName,User,Account,NNodes,NTasks,Start,End,\
TRESUsageInTot,TRESUsageOutTot

Accounting has totals only: it is not known when a job did its I/O, or how fast.
Times without a zone are taken as local time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from penstock.advice.logs.record import (
    Burst,
    LoggedJob,
    Skipped,
    plain_name,
    skipped_line,
)
from penstock.errors import InputError
from penstock.units import parse_volume

__all__ = ["read_slurm"]

_DISK: Final = re.compile(r"fs/(\w+)=(\d+(?:\.\d+)?[KMGTP]?)")
_ELAPSED: Final = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")


class _AccountedJob(msgspec.Struct):
    """A job and its steps, from either form of the file."""

    job_id: str
    name: str = ""
    user: str = ""
    group: str = ""
    nodes: int = 0
    start_s: float | None = None
    end_s: float | None = None
    volume: float | None = None
    """None if the file does not count bytes."""


def read_slurm(path: Path, _: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the jobs of a file."""
    data = path.read_bytes()
    is_json = data.lstrip()[:1] == b"{"
    jobs: dict[str, _AccountedJob] = {}
    if is_json:
        yield from _read_json(data, path, jobs)
    else:
        yield from _read_text(data.decode(errors="replace"), path, jobs)
    for job in jobs.values():
        yield _record(job, f"{path}: job {job.job_id}")


def _record(job: _AccountedJob, source: str) -> LoggedJob | Skipped:
    if job.start_s is None or job.end_s is None:
        return Skipped(source=source, reason="the job has not run or not ended")
    run_s = job.end_s - job.start_s
    if run_s <= 0:
        return Skipped(source=source, reason="the job ends before it begins")
    if job.volume == 0:
        return Skipped(source=source, reason="the job has no I/O")
    bursts: tuple[Burst, ...] = ()
    if job.volume is not None:
        bursts = (Burst(0.0, run_s, float(round(job.volume)), 0.0, is_exact=False),)
    notes = () if job.nodes else ("the file has no number of nodes: 1 is assumed",)
    return LoggedJob(
        name=plain_name([job.name, job.job_id]),
        source=source,
        detail="accounting",
        bursts=bursts,
        start_s=job.start_s,
        run_s=run_s,
        nodes=max(job.nodes, 1),
        knows_nodes=job.nodes > 0,
        job_id=job.job_id,
        user=job.user,
        group=job.group,
        log_bytes=None if job.volume is None else round(job.volume),
        notes=notes,
    )


# --- sacct --parsable2 ----------------------------------------------------------------


def _read_text(
    text: str, path: Path, jobs: dict[str, _AccountedJob]
) -> Iterator[Skipped]:
    """Add the jobs of a text to `jobs`; yield the lines that are skipped."""
    # Names of jobs may have other characters at which `str.splitlines` ends a line.
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    columns = lines[0].strip("|").split("|")
    known = {name.lower(): number for number, name in enumerate(columns)}
    if not known.keys() & {"jobid", "jobidraw"} or "start" not in known:
        raise InputError(
            "no column JobID or Start",
            where="line 1",
            remedy="write it with sacct --parsable2, without --noheader",
        )
    for number, line in enumerate(lines[1:], 2):
        # sacct --parsable ends each line with a separator.
        cells = line.split("|")
        if len(cells) == len(columns) + 1 and not cells[-1]:
            cells.pop()
        if len(cells) != len(columns):
            reason = f"{len(cells)} of {len(columns)} columns"
            if len(cells) > len(columns):
                reason = f"{reason}: a name contains | (use sacct --json)"
            yield skipped_line(path, number, reason)
            continue
        row = {name: cells[place] for name, place in known.items()}
        try:
            _add_row(jobs, row)
        except (ValueError, InputError) as error:
            yield skipped_line(path, number, f"not a line of sacct: {error}")


def _add_row(jobs: dict[str, _AccountedJob], row: dict[str, str]) -> None:
    """Add a job, or a step (``4711.batch``, ``4711.0``) to its job."""
    job_id, _, step = (row.get("jobidraw") or row["jobid"]).partition(".")
    job = jobs.setdefault(job_id, _AccountedJob(job_id))
    if not step:
        job.name, job.user = row.get("jobname", ""), row.get("user", "")
        job.group = row.get("account", "")
        job.nodes = int(row.get("nnodes") or row.get("allocnodes") or 0)
        job.start_s = _instant(row["start"])
        job.end_s = _instant(row.get("end", ""))
        if job.end_s is None and job.start_s is not None and row.get("elapsed"):
            job.end_s = job.start_s + _duration(row["elapsed"])
    volume = _step_volume(row)
    if volume is not None:
        job.volume = (job.volume or 0.0) + volume


def _step_volume(row: dict[str, str]) -> float | None:
    """Return the bytes of a row; None if it has none."""
    usage = [row.get("tresusageintot", ""), row.get("tresusageouttot", "")]
    found = [_disk(dict(_DISK.findall(text))) for text in usage if text]
    if found:
        return sum(found)
    means = [row.get("avediskread", ""), row.get("avediskwrite", "")]
    if not any(means):
        return None
    tasks = int(row.get("ntasks") or 1)
    return tasks * sum(_volume(text) for text in means if text)


def _disk(usage: dict[str, str]) -> float:
    """Return the bytes of ``fs/disk``; else of all file systems that are counted."""
    chosen = {"disk": usage["disk"]} if "disk" in usage else usage
    return sum(_volume(text) for text in chosen.values())


def _volume(text: str) -> float:
    """Parse a volume of Slurm, whose K is 1024."""
    number = text.strip()
    return parse_volume(f"{number}iB" if number[-1:].isalpha() else f"{number} B")


def _instant(text: str) -> float | None:
    """Parse a time; None for ``Unknown`` and ``None``."""
    if not text or text.lower() in ("unknown", "none"):
        return None
    if text.isdigit():
        return float(text)
    return datetime.fromisoformat(text).timestamp()


def _duration(text: str) -> float:
    match = _ELAPSED.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not an elapsed time")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60.0 + seconds


# --- sacct --json ---------------------------------------------------------------------


def _read_json(
    data: bytes, path: Path, jobs: dict[str, _AccountedJob]
) -> Iterator[Skipped]:
    """Add the jobs of a document to `jobs`; yield those that are skipped."""
    try:
        listed = list(msgspec.json.decode(data)["jobs"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise InputError(
            f"not a document of sacct: {error!r}", remedy="write it with sacct --json"
        ) from None
    for number, entry in enumerate(listed):
        try:
            job = _json_job(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"not a job of sacct: {error!r}"
            yield Skipped(source=f"{path}: jobs[{number}]", reason=reason)
        else:
            jobs[job.job_id] = job


def _json_job(job: dict[str, Any]) -> _AccountedJob:
    times = job["time"]
    start, end = _number(times["start"]), _number(times["end"])
    volume: float | None = None
    for step in job.get("steps") or ():
        usage = step.get("tres") or {}
        # The usage is filed under these words: in = requested, out = consumed.
        totals = [
            entry
            for kind in ("requested", "consumed")
            for entry in ((usage.get(kind) or {}).get("total") or ())
            if entry.get("type") == "fs"
        ]
        for entry in totals:
            volume = (volume or 0.0) + max(_number(entry.get("count")), 0.0)
    return _AccountedJob(
        str(job["job_id"]),
        name=str(job.get("name") or ""),
        user=str(job.get("user") or ""),
        group=str(job.get("account") or ""),
        nodes=int(_number(job.get("allocation_nodes"))),
        start_s=start if start > 0 else None,
        end_s=end if end > 0 else None,
        volume=volume,
    )


def _number(value: Any) -> float:
    """Return a number; newer versions write ``{"set": true, "number": 5}``."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") else 0
    return float(value or 0)
