# SPDX-License-Identifier: MIT
"""The period of a job, where FTIO finds a clear one (Tarraf et al., IPDPS 2024).

FTIO looks for the dominant frequency of the bandwidth over time, here of the bursts of
a job. The period does not change the phases; policies that know periods may use it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import Final

from msgspec.structs import replace

from penstock.advice.logs.record import LoggedJob
from penstock.analysis.frequency import dominant_frequency
from penstock.errors import MissingExtraError
from penstock.units import format_time

__all__ = ["with_periods"]

#: FTIO is asked about jobs with so many bursts.
_FEWEST: Final = 4
_MOST: Final = 10_000


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
    note = f"FTIO finds a period of {format_time(period_s)}"
    return replace(record, period_s=period_s, notes=(*record.notes, note))


@contextmanager
def _quiet() -> Iterator[None]:
    """Discard what FTIO prints."""
    with ExitStack() as stack:
        silence = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, silence)
        for stream in (1, 2):
            kept = os.dup(stream)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, stream)
            os.dup2(silence, stream)
        yield
