# SPDX-License-Identifier: MIT
"""The period of a job, where FTIO finds a clear one (Tarraf et al., IPDPS 2024).

FTIO looks for the dominant frequency of the bandwidth over time, here of the bursts of
a job. The application gets the period, which some policies use.

Bursts that are not exact (bins of a heatmap) are joined: those of one period are one
operation, because a bin ends where Darshan's clock says, and not where the operation
does. A burst that begins up to a quarter of a period early belongs to the next period.
Bins show no period that is shorter than two of them (the limit of Nyquist). Exact
bursts stay: they are the operations that live control would see.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Final

from msgspec.structs import replace

from penstock.advice.logs.record import Burst, LoggedJob
from penstock.analysis.frequency import dominant_frequency
from penstock.errors import MissingExtraError
from penstock.units import format_time

__all__ = ["with_periods"]

#: FTIO is asked about jobs with so many bursts.
_FEWEST: Final = 4
_MOST: Final = 10_000
#: Part of a period by which a burst may come early.
_EARLY: Final = 0.25


def with_periods(records: Sequence[LoggedJob]) -> list[LoggedJob]:
    """Return the records; those with a clear period have it.

    Raises `MissingExtraError` if the package of FTIO is missing.
    """
    if find_spec("ftio") is None:
        raise MissingExtraError("ftio", "ftio", where="--periods")
    with _quiet():
        return [_with_period(record) for record in records]


def _with_period(record: LoggedJob) -> LoggedJob:
    if not _FEWEST <= len(record.bursts) <= _MOST:
        return record
    operations = [
        (b.begin_s, b.begin_s + b.io_s, b.volume_bytes) for b in record.bursts
    ]
    frequency = dominant_frequency(
        operations, max(record.run_s, record.bursts[-1].end_s)
    )
    if not frequency > 0.0:
        return record
    period_s = 1.0 / frequency
    notes = [f"FTIO finds a period of {format_time(period_s)}"]
    bursts = record.bursts
    are_bins = not any(burst.is_exact for burst in bursts)
    if are_bins and period_s < 2.0 * min(
        burst.end_s - burst.begin_s for burst in bursts
    ):
        notes.append("it is not used: a period must be at least two bins long")
        return replace(record, notes=(*record.notes, *notes))
    if are_bins:
        bursts = _joined_by_period(bursts, period_s)
        notes.append(f"its bins are joined to one operation per period: {len(bursts)}")
    return replace(
        record, period_s=period_s, bursts=bursts, notes=(*record.notes, *notes)
    )


def _joined_by_period(bursts: Sequence[Burst], period_s: float) -> tuple[Burst, ...]:
    """Return one burst for every period in which there are bursts."""
    first_s = bursts[0].begin_s
    periods: dict[int, list[Burst]] = {}
    for burst in bursts:
        number = math.floor((burst.begin_s - first_s) / period_s + _EARLY)
        periods.setdefault(number, []).append(burst)
    return tuple(
        Burst(
            begin_s=group[0].begin_s,
            end_s=max(burst.end_s for burst in group),
            volume_bytes=sum(burst.volume_bytes for burst in group),
            io_s=sum(burst.io_s for burst in group),
            is_exact=False,
        )
        for group in periods.values()
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard what FTIO prints."""
    with ExitStack() as stack:
        # Python holds text back: what came before is printed, what FTIO wrote is not.
        _flush()
        silence = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, silence)
        for stream in (1, 2):
            kept = os.dup(stream)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, stream)
            os.dup2(silence, stream)
        stack.callback(_flush)
        yield


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
