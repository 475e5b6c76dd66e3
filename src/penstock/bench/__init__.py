# SPDX-License-Identifier: MIT
"""Benchmarks of live control: its cost and its accuracy on this machine.

A benchmark is one module with ``measure(settings)``, which yields measurements as soon
as they are taken, and one row in `BENCHES`. A measurement may have a goal. Because
machines are noisy, rounds are interleaved, and a measurement is the minimum or the
median of its rounds.

Here is what benchmarks share: `testbed`, `moosefs`, and real processes as `writers` and
`applications`. ``programs/`` has their C sources.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock.errors import UnknownNameError

__all__ = [
    "BENCHES",
    "ROUNDS",
    "ROUNDS_OF",
    "USERS_OF_OPTION",
    "BenchSettings",
    "Benchmark",
    "Measurement",
    "measure",
]


class Benchmark(NamedTuple):
    """One row of `BENCHES`."""

    module: str
    """Its module in this package."""
    summary: str
    """What it measures."""


#: Name of a benchmark -> its module and what it measures.
BENCHES: Final = {
    "overhead": Benchmark(
        "cost.overhead", "processor time that the preload library adds to a call"
    ),
    "pacing": Benchmark(
        "accuracy.pacing", "bandwidth achieved divided by bandwidth granted"
    ),
    "learn": Benchmark(
        "accuracy.learn", "shares and learnt bandwidth on a mount of unknown limit"
    ),
    "harmless": Benchmark(
        "cost.harmless",
        "time of real programs alone under penstock run, divided by plain",
    ),
    "decisions": Benchmark(
        "cost.decisions", "events per second and latency of the controller"
    ),
    "fidelity": Benchmark(
        "accuracy.fidelity",
        "live yields divided by simulated yields, under every policy",
    ),
    "fidelity-moosefs": Benchmark(
        "accuracy.fidelity_moosefs",
        "the same of programs without hints on a real MooseFS",
    ),
    "advice": Benchmark(
        "accuracy.advice",
        "predicted gain of the advised policy against the measured gain",
    ),
    "delta": Benchmark(
        "accuracy.delta",
        "interference factors under staging strategies, live and simulated",
    ),
    "partition": Benchmark(
        "partition", "slowdowns on a real MooseFS under strategies and placements"
    ),
    "slo": Benchmark(
        "slo", "throughput and latency of applications at a mount, by scheduler"
    ),
}
#: Field of `BenchSettings` -> the benchmarks that use it.
USERS_OF_OPTION: Final = {
    "policies": ("fidelity", "fidelity-moosefs", "delta", "partition"),
    "output": ("delta", "slo", "harmless", "partition"),
    "storage": ("delta", "harmless"),
    "cluster": ("slo", "delta"),
}
#: Number of rounds, unless the user gives one.
ROUNDS: Final = 15
#: Benchmark -> its own default number of rounds.
ROUNDS_OF: Final = {"harmless": 5}


@dataclass(frozen=True)
class BenchSettings:
    """What to measure, how often, and where."""

    rounds: int
    folder: Path
    """Temporary files go here."""
    policies: tuple[str, ...] = ()
    """Policies or strategies to compare; empty: all."""
    output: Path | None = None
    """Folder for tables and plots; None: none are written."""
    storage: Path | None = None
    """Folder to write to without a limit; None: a mount with a limit."""
    bandwidth_bytes_per_s: float = 0.0
    """Bandwidth of `storage`; 0: measure it."""
    cluster: bool = False
    """Measure on a real parallel file system."""
    quick: bool = False
    """Measure for a short time, without goals."""
    scenes: tuple[str, ...] = ()
    """On a cluster: parts of the names of the scenes to run; empty: all scenes."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Version, command and so on, for the tables."""


@dataclass(frozen=True)
class Measurement:
    """One measured number."""

    name: str
    value: float
    unit: str
    least: float = -inf
    """Lower end of the goal."""
    most: float = inf
    """Upper end of the goal."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """The numbers behind the value, by name."""

    @property
    def has_goal(self) -> bool:
        """Return True if there is a goal."""
        return (self.least, self.most) != (-inf, inf)

    @property
    def is_reached(self) -> bool:
        """Return True if the goal is reached or there is none."""
        return self.least <= self.value <= self.most

    @property
    def goal(self) -> str:
        """The goal in words; empty if there is none."""
        if not self.has_goal:
            return ""
        if self.most == inf:
            return f"at least {self.least:g}"
        if self.least == -inf:
            return f"at most {self.most:g}"
        return f"{self.least:g} to {self.most:g}"


def measure(name: str, settings: BenchSettings) -> Iterator[Measurement]:
    """Run a benchmark; yield each measurement as soon as it is taken."""
    if name not in BENCHES:
        raise UnknownNameError("benchmark", name, BENCHES)
    module = importlib.import_module(f"{__name__}.{BENCHES[name].module}")
    yield from module.measure(settings)
