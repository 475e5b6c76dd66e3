# SPDX-License-Identifier: MIT
"""From bursts to the phases of an application.

A burst becomes one I/O operation of the same volume, posted at the instant at which the
burst began in the log, or when the operation before it ends, if that is later. The rest
of the time is work.

In a burst that is not exact (a bin of a heatmap, the time between the first and the
last access to a file) the log does not tell when the I/O happened. It becomes one
operation per hour or part of an hour, at equal distances.

In a history of penstock the operations of a job include the time that they waited.
There the work between two operations is kept, and not the instants at which they began.

Times are in seconds since the job began, volumes in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from penstock.advice.logs.bursts import whole_parts
from penstock.advice.logs.record import Burst

__all__ = ["LoggedOperation", "operations_of", "phases_between", "phases_of"]

#: Distance of the operations of a burst whose inner structure is not known.
_UNKNOWN_PERIOD_S: Final = 3600.0


class LoggedOperation(NamedTuple):
    """An I/O operation: when it is posted, and how much it moves."""

    begin_s: float
    volume_bytes: float


def operations_of(bursts: Iterable[Burst]) -> list[LoggedOperation]:
    """Return the operations of bursts, in the order of their begin."""
    operations: list[LoggedOperation] = []
    for burst in bursts:
        length = burst.end_s - burst.begin_s
        count = 1
        if not burst.is_exact:
            count = max(1, math.ceil(length / _UNKNOWN_PERIOD_S - 1e-9))
        volumes = whole_parts([1.0] * count, burst.volume_bytes)
        operations += [
            LoggedOperation(burst.begin_s + k * length / count, volume)
            for k, volume in enumerate(volumes)
        ]
    return sorted(operation for operation in operations if operation.volume_bytes > 0)


def phases_of(
    operations: Iterable[LoggedOperation], cap: float, run_s: float
) -> list[tuple[str, float]]:
    """Return the phases of an application that draws `cap` (bytes/s) when alone.

    It posts each operation when the log says, or when the one before it ends, if that
    is later. It ends after `run_s`, or with its last operation.
    """
    phases: list[tuple[str, float]] = []
    now = 0.0
    for operation in operations:
        if operation.begin_s > now:
            phases.append(("work", operation.begin_s - now))
            now = operation.begin_s
        phases.append(("io", operation.volume_bytes))
        now += operation.volume_bytes / cap
    if run_s > now:
        phases.append(("work", run_s - now))
    return phases


def phases_between(bursts: Iterable[Burst], run_s: float) -> list[tuple[str, float]]:
    """Return the bursts as operations, and the times between them as work."""
    phases: list[tuple[str, float]] = []
    previous_s = 0.0
    for burst in bursts:
        phases.append(("work", max(burst.begin_s - previous_s, 0.0)))
        phases.append(("io", burst.volume_bytes))
        previous_s = burst.end_s
    return [*phases, ("work", max(run_s - previous_s, 0.0))]
