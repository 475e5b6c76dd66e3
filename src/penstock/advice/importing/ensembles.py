# SPDX-License-Identifier: MIT
"""Ensembles: several instances that all agree with what the logs say.

A log that has only totals fits many instances. The first member of an ensemble is the
instance that ``penstock import`` writes without ``--ensemble``. In each other member,
for every burst whose inner structure the log does not tell:

- the number of operations is drawn, log-uniform from 1 to one per minute, at most 64;
- their volumes are drawn uniformly from all that add up to the volume of the burst;
- the times between them are drawn uniformly from all that fit into the burst.

The time in I/O of a job is drawn log-uniform between the bounds that the log gives. The
assumed time in I/O of a job whose log counts no bytes is drawn between half and double.
Member k of seed s uses the random stream (s, k): the same numbers in every run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.random import Generator, default_rng

from penstock.advice.importing.instances import (
    Assumptions,
    assumed_burst,
    build,
)
from penstock.advice.logs.bursts import whole_parts
from penstock.advice.logs.record import Burst, LoggedJob
from penstock.model import Instance, Platform

__all__ = ["draw_ensemble"]

_SHORTEST_PERIOD_S: Final = 60.0
_MOST_PARTS: Final = 64


def draw_ensemble(
    records: Sequence[LoggedJob],
    platform: Platform,
    assumptions: Assumptions,
    *,
    count: int,
    seed: int,
) -> Iterator[Instance]:
    """Yield `count` instances; the first is the one without drawing."""
    for number in range(count):
        drawn = list(records)
        if number:
            generator = default_rng((seed, number))
            drawn = [_drawn(r, platform, assumptions, generator) for r in records]
        yield build(drawn, platform, assumptions)[0]


def _drawn(
    record: LoggedJob,
    platform: Platform,
    assumptions: Assumptions,
    generator: Generator,
) -> LoggedJob:
    """Return a record that agrees with the same totals; the same one if it is exact."""
    if record.log_bytes is not None and record.is_exact:
        return record
    cap = platform.cap(record.nodes)
    bursts = record.bursts
    if record.log_bytes is None:
        fraction = assumptions.io_fraction * 2.0 ** generator.uniform(-1.0, 1.0)
        bursts = (assumed_burst(record, cap, min(fraction, 1.0)),)
    factor = 1.0
    if 0.0 < record.io_low_s < record.io_high_s:
        low, high = math.log(record.io_low_s), math.log(record.io_high_s)
        factor = math.exp(generator.uniform(low, high)) / record.io_s
    parts: list[Burst] = []
    for burst in bursts:
        if burst.is_exact:
            parts.append(burst)
        else:
            io_s = factor * burst.io_s if burst.io_s > 0 else burst.volume_bytes / cap
            parts += _split(burst, io_s, generator)
    if not record.io_s:
        # The log has no times; the cap of the model stays the cap of the job.
        parts = [replace(part, io_s=0.0) for part in parts]
    parts.sort(key=lambda burst: burst.begin_s)
    moved = sum(burst.volume_bytes for burst in parts)
    return replace(record, bursts=tuple(parts), log_bytes=moved)


def _split(burst: Burst, io_s: float, generator: Generator) -> list[Burst]:
    """Return parts of a burst that move its volume, anywhere between begin and end."""
    length = burst.end_s - burst.begin_s
    most = min(max(length / _SHORTEST_PERIOD_S, 1.0), _MOST_PARTS, burst.volume_bytes)
    count = round(math.exp(generator.uniform(0.0, math.log(max(most, 1.0)))))
    shares = generator.dirichlet(np.ones(count))
    gaps = generator.dirichlet(np.ones(count + 1)) * max(length - io_s, 0.0)
    volumes = whole_parts(shares.tolist(), burst.volume_bytes)
    parts, now = [], burst.begin_s
    for gap, volume in zip(gaps.tolist(), volumes, strict=False):
        now += gap
        spent = io_s * volume / burst.volume_bytes
        if volume > 0:
            parts.append(Burst(now, now + spent, volume, spent))
        now += spent
    return parts
