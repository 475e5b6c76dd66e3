# SPDX-License-Identifier: MIT
"""Histories of ``penstock serve``: the SQLite file of its setting `state`.

The file has one row per job: its age, the time that it lost, the number and total
length of its iterations, and the volumes of its last operations. An iteration is work
and an operation without waiting, so the job is rebuilt as equal iterations, with the
volumes that are known and their mean for the earlier ones. Lost time is left out: the
instance says what the job would do alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from penstock.advice.logs.record import Burst, LoggedJob, Skipped, plain_name
from penstock.errors import InputError

__all__ = ["read_history"]

_JOBS: Final = (
    "SELECT job, seen, age, lost, iterations, iteration_time, volumes FROM past "
    "ORDER BY job"
)
_LOCK_S: Final = 5.0


def read_history(path: Path, _: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the jobs of a history."""
    try:
        address = f"{path.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_LOCK_S)) as database:
            rows = database.execute(_JOBS).fetchall()
    except sqlite3.Error as error:
        raise InputError(
            f"not a history of penstock serve: {error}",
            remedy="give the file of the setting `state`",
        ) from None
    for row in rows:
        try:
            yield _record(path, *row)
        except (TypeError, ValueError):
            reason = "the row of the job is damaged"
            yield Skipped(source=f"{path}: {row[0]}", reason=reason)


def _record(
    path: Path,
    job_key: str,
    seen: float,
    age: float,
    lost: float,
    iterations: int,
    iteration_time: float,
    volumes: str,
) -> LoggedJob | Skipped:
    source = f"{path}: {job_key}"
    known = [float(volume) for volume in json.loads(volumes)]
    if not known or not sum(known):
        return Skipped(source=source, reason="the job has no I/O")
    count = max(int(iterations), len(known))
    mean = round(sum(known) / len(known))
    moved = [float(mean)] * (count - len(known)) + [float(round(v)) for v in known]
    # The last iteration ends with its operation: `iterations` of them, equally long.
    length = iteration_time / iterations if iterations else (age - lost) / count
    user, _, name = job_key.rpartition(":")
    bursts = [
        Burst((k + 1) * length, (k + 1) * length, volume, 0.0)
        for k, volume in enumerate(moved)
        if volume > 0
    ]
    return LoggedJob(
        name=plain_name([name]),
        source=source,
        detail="history",
        bursts=tuple(bursts),
        start_s=seen - age,
        run_s=max(age - lost, count * length),
        user=user,
        log_bytes=sum(moved),
        period_s=max(length, 0.0),
        notes=(
            f"the volumes of the last {len(known)} of {count} operations are known",
            "the history does not tell the number of nodes: 1 is assumed",
        ),
    )
