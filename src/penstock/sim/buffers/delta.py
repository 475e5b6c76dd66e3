# SPDX-License-Identifier: MIT
"""Delta-graphs: interference factors against the offset D of two writers.

Two equal applications write N requests of S bytes with a delay d between them; the
second one starts D later. The interference factor of an application is its I/O time
with the other divided by its I/O time alone. I/O time is measured from open to close:
(N - 1) d counts, D does not (burst-buffer coordination, section V-A).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from penstock.errors import InputError
from penstock.policies.policy import Policy
from penstock.sim.buffers.model import Act, Buffer, Step, Storage, Writer
from penstock.sim.buffers.simulation import BufferedRun, simulate_buffers
from penstock.staging import Strategy

__all__ = [
    "DeltaPoint",
    "WriterPair",
    "delta_graph",
    "factors",
    "interference_factors",
]


#: For this time, at least, a strategy does not know that an application has begun (s).
_UNNOTICED_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class WriterPair:
    """Two equal applications: the second one starts an offset D after the first.

    Raises `InputError` if an offset is negative or not finite.
    """

    requests: int
    """N: requests of each application."""
    size_bytes: float
    """S: size of a request, all processes of an application together."""
    delay_s: float
    """d: pause between two requests."""
    offsets_s: Sequence[float]
    """The values of D; each gives a point of the graph."""
    file_per_request: bool = False
    """True: each request goes to files of its own, one on each target, whose redirected
    data is merged when they are closed, before the next request. The first ones are
    opened before a strategy can know that the application begins."""

    def __post_init__(self) -> None:
        if not all(0 <= offset < float("inf") for offset in self.offsets_s):
            raise InputError(
                f"{list(self.offsets_s)} are not all delays",
                where="D",
                remedy="give 0 s or more",
            )

    def writer(self, name: str, start_s: float = 0.0) -> Writer:
        """Return one application of the pair."""
        plain = Writer.of_requests(
            name, self.requests, self.size_bytes, self.delay_s, start_s=start_s
        )
        if not self.file_per_request:
            return plain
        write, pause = Step(Act.WRITE, self.size_bytes), Step(Act.WORK, self.delay_s)
        later = (pause, Step(Act.REOPEN), write) * (self.requests - 1)
        return replace(
            plain,
            steps=(write, *later, Step(Act.CLOSE)),
            merges=True,
            by_file=True,
            opened_s=start_s - _UNNOTICED_S,
        )


@dataclass(frozen=True, slots=True)
class DeltaPoint:
    """One point of a delta-graph."""

    offset_s: float
    """D (s)."""
    factors: tuple[float, float]
    """Interference factors of the first and of the second application."""
    io_times_s: tuple[float, float]
    """I/O times (s)."""
    alone_s: float
    """I/O time of either application without the other (s)."""
    total_s: float
    """From the start of the first application to the end of the last (s)."""


def delta_graph(
    storage: Storage,
    pair: WriterPair,
    strategy: Strategy | str = "none",
    buffer: Buffer | None = None,
    *,
    sharing: Policy | str | None = None,
    draining: Policy | str | None = None,
) -> list[DeltaPoint]:
    """Simulate the pair of applications for every offset.

    The other parameters are those of `simulate_buffers`. Default of `buffer`: an
    unlimited buffer that is a thousand times as fast as the storage.
    """
    buffer = buffer or Buffer(speed_bytes_per_s=1000 * storage.bandwidth)
    first = pair.writer("A")
    # Alone without a strategy: a static partition would slow the application down.
    alone = simulate_buffers(storage, [first], "none", sharing=sharing).io_times[0]
    points = []
    for offset in map(float, pair.offsets_s):
        run = simulate_buffers(
            storage,
            [first, pair.writer("B", offset)],
            strategy,
            buffer,
            sharing=sharing,
            draining=draining,
        )
        a, b = run.io_times
        points.append(
            DeltaPoint(offset, (a / alone, b / alone), (a, b), alone, run.end_s)
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
    sharing: Policy | str | None = None,
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
