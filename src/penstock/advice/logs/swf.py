# SPDX-License-Identifier: MIT
"""The Standard Workload Format of the Parallel Workloads Archive: many jobs per file.

Lines with 18 numbers, -1 for unknown ones; lines with ``;`` are comments. Fields used
(counted from 1): 1 job, 2 submit (s), 3 wait (s), 4 run time (s), 5 processors used, 8
processors requested, 12 user, 13 group. Times count from the instant in the comment
``UnixStartTime``; ``MaxNodes`` and ``MaxProcs`` give the processors of a node.

The format does not say anything about I/O: the import assumes it (``--io-fraction``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from penstock.advice.logs.record import LoggedJob, Skipped, skipped_line

__all__ = ["FIELDS", "read_swf"]

#: Number of fields of a line.
FIELDS: Final = 18
_COMMENT: Final = re.compile(r";\s*(UnixStartTime|MaxNodes|MaxProcs)\s*:\s*(\d+)")


def read_swf(path: Path, _: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the jobs of a file."""
    facts: dict[str, int] = {}
    with path.open(encoding="utf-8", errors="replace") as stream:
        for number, line in enumerate(stream, 1):
            comment = _COMMENT.match(line)
            if comment:
                facts[comment[1]] = int(comment[2])
            if line.startswith(";") or not line.strip():
                continue
            try:
                values = [float(word) for word in line.split()]
            except ValueError:
                values = []
            if len(values) != FIELDS:
                yield skipped_line(path, number, f"not {FIELDS} numbers, as in SWF")
            else:
                yield _job(path, values, facts)


def _job(path: Path, values: list[float], facts: dict[str, int]) -> LoggedJob | Skipped:
    job, submit_s, wait_s, run_s = values[:4]
    job_id = f"{job:.0f}"
    source = f"{path}: job {job_id}"
    if run_s <= 0 or submit_s < 0:
        return Skipped(source=source, reason="the job did not run")
    processors = values[4] if values[4] > 0 else max(values[7], 1.0)
    per_node = 1
    if facts.get("MaxNodes") and facts.get("MaxProcs"):
        per_node = max(facts["MaxProcs"] // facts["MaxNodes"], 1)
    begin_s = facts.get("UnixStartTime", 0)
    return LoggedJob(
        name=f"job-{job_id}",
        source=source,
        detail="accounting",
        bursts=(),
        start_s=begin_s + submit_s + max(wait_s, 0.0),
        run_s=run_s,
        clock="" if begin_s else str(path),
        nodes=max(1, math.ceil(processors / per_node)),
        knows_nodes=True,
        job_id=job_id,
        user=f"{values[11]:.0f}" if values[11] >= 0 else "",
        group=f"{values[12]:.0f}" if values[12] >= 0 else "",
    )
