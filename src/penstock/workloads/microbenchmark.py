# SPDX-License-Identifier: MIT
"""The microbenchmark of burst-buffer coordination, section V-A.

Two groups of processes, A and B, write N requests of S bytes per process, with a delay
d between requests. B begins D seconds after A. All processes of a group write at the
same time: an operation is one request of all of them. The workload is not random.

With the default bandwidth, 256 processes write 32 MB each in 30 s, which the paper
gives as the approximate length of an I/O phase. For the real applications, the paper
gives the volume of one checkpoint per process; requests of 1 MB without delay are our
choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from penstock.model import Application, Instance, Platform, Window
from penstock.workloads.iterative import MOST_ITERATIONS
from penstock.workloads.parameters import check_parameters, parameter

__all__ = ["SHAPES", "Microbenchmark", "WritePattern"]

_MB: Final = 1e6


@dataclass(frozen=True, slots=True)
class WritePattern:
    """What one application writes in an I/O phase."""

    processes: int
    requests: int
    """N."""
    size_bytes: float
    """S: bytes per request and process."""
    delay_s: float = 0.0
    """d: time between requests (s)."""

    @property
    def volume(self) -> float:
        """Volume of all requests of all processes (bytes)."""
        return self.processes * self.requests * self.size_bytes

    def application(self, name: str, start: float = 0.0) -> Application:
        """Return the application; all its processes write at the same time."""
        work = np.full(self.requests + 1, self.delay_s)
        work[[0, -1]] = 0.0
        volume = np.full(self.requests, self.processes * self.size_bytes)
        return Application(
            name, self.processes, work, volume, release=start, start=start
        )


#: One checkpoint of the real applications of section V-B.4, one file per process.
SHAPES: Final = {
    "cm1": WritePattern(256, 52, _MB),
    "lanl-app1": WritePattern(256, 50, _MB),
    "lanl-app2": WritePattern(256, 50, _MB),
}
_OWN: Final = "benchmark"
_CHOICES: Final = (_OWN, *SHAPES)


@dataclass(frozen=True, slots=True)
class Microbenchmark:
    """Parameters of the microbenchmark."""

    bandwidth: float = parameter(
        256 * 32 * _MB / 30, "B", "bandwidth of the storage (bytes/s)", low=1e-300
    )
    processes: int = parameter(256, "P", "processes of a group", low=1)
    requests: int = parameter(
        32, "N", "requests of a process", low=1, high=MOST_ITERATIONS
    )
    size: float = parameter(_MB, "S", "bytes per request and process", low=1e-300)
    delay: float = parameter(0.0, "d", "time between requests (s)", low=0.0)
    offset: float = parameter(0.0, "D", "begin of B after that of A (s)", low=0.0)
    first: str = parameter(_OWN, "A", "what A writes", choices=_CHOICES)
    second: str = parameter(_OWN, "B_shape", "what B writes", choices=_CHOICES)

    def __post_init__(self) -> None:
        check_parameters(self)

    def shape(self, name: str) -> WritePattern:
        """Return the pattern of an application: a real one, or the benchmark's own."""
        own = WritePattern(self.processes, self.requests, self.size, self.delay)
        return SHAPES.get(name, own)

    def instance(self, seed: int, index: int) -> Instance:  # noqa: ARG002 - not random
        """Return the instance with A and B.

        The window ends when the first of them would end in dedicated mode, or the
        second, if B begins only after A has ended.
        """
        a = self.shape(self.first).application("A")
        b = self.shape(self.second).application("B", self.offset)
        ends = [x.dedicated_times(self.bandwidth)[-1] for x in (a, b)]
        end = min(ends) if self.offset < min(ends) else max(ends)
        # Every process alone can saturate the storage.
        platform = Platform(self.bandwidth, self.bandwidth)
        return Instance(platform, Window(0.0, float(end)), (a, b))
