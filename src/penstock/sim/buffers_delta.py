# SPDX-License-Identifier: MIT
"""Delta-graphs: interference factors against the offset D of two writers.

Two equal applications write N requests of S bytes with a delay d between them; the
second one starts D later. The interference factor of an application is its I/O time
with the other divided by its I/O time alone. I/O time is measured from open to close:
(N - 1) d counts, D does not (burst-buffer coordination, section V-A).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import InputError
from penstock.policies.policy import Policy
from penstock.sim.buffers import BufferedRun, simulate_buffers
from penstock.sim.buffers_model import Buffer, Storage, Writer
from penstock.staging import Strategy

__all__ = ["DeltaPoint", "delta_graph", "factors", "interference_factors"]


@dataclass(frozen=True, slots=True)
class DeltaPoint:
    """One point of a delta-graph."""

    offset: float
    """D (s)."""
    factors: tuple[float, float]
    """Interference factors of the first and of the second application."""
    io_times: tuple[float, float]
    """I/O times (s)."""
    alone: float
    """I/O time of either application without the other (s)."""
    total: float
    """From the start of the first application to the end of the last (s)."""


def delta_graph(
    rate: float,
    requests: int,
    size: float,
    delay: float,
    offsets: Sequence[float],
    strategy: Strategy | str = "none",
    *,
    buffer: Buffer | None = None,
    targets: int = 1,
    sharing: Policy | str = "fair-share",
    draining: Policy | str | None = None,
) -> list[DeltaPoint]:
    """Simulate the microbenchmark for every offset.

    Parameters
    ----------
    rate
        Bandwidth of the storage, all targets together (bytes/s).
    requests, size, delay
        N, S (bytes, all processes of an application together) and d (s).
    offsets
        D (s), 0 or more.
    buffer
        Default: an unlimited buffer that is a thousand times as fast as the storage.
    """
    if not all(0 <= offset < float("inf") for offset in offsets):
        raise InputError(
            f"{list(offsets)} are not all delays", where="D", remedy="give 0 s or more"
        )
    storage = Storage(rate, targets)
    buffer = buffer or Buffer(speed=1000 * rate)

    def run(writers: Sequence[Writer]) -> BufferedRun:
        return simulate_buffers(
            storage, writers, strategy, buffer, sharing=sharing, draining=draining
        )

    first = Writer.of_requests("A", requests, size, delay)
    # Alone without a strategy: a static partition would slow the application down.
    alone = simulate_buffers(storage, [first], "none", sharing=sharing).io_times[0]
    points = []
    for offset in offsets:
        second = Writer.of_requests("B", requests, size, delay, start=float(offset))
        done = run([first, second])
        a, b = done.io_times
        points.append(
            DeltaPoint(float(offset), (a / alone, b / alone), (a, b), alone, done.end)
        )
    return points


def factors(together: BufferedRun, alone: Sequence[float]) -> tuple[float, ...]:
    """Return the interference factors for the I/O times `alone` (s).

    The factor of an application without I/O is 1.
    """
    pairs = zip(together.io_times, alone, strict=True)
    return tuple(t / a if a else 1.0 for t, a in pairs)


def interference_factors(
    storage: Storage,
    writers: Sequence[Writer],
    strategy: Strategy | str = "none",
    buffer: Buffer | None = None,
    *,
    sharing: Policy | str = "fair-share",
    draining: Policy | str | None = None,
) -> tuple[float, ...]:
    """Return the I/O time of every writer with the others, divided by that alone."""
    alone = [
        simulate_buffers(storage, [writer], "none", sharing=sharing).io_times[0]
        for writer in writers
    ]
    together = simulate_buffers(
        storage, writers, strategy, buffer, sharing=sharing, draining=draining
    )
    return factors(together, alone)
