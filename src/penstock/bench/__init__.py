# SPDX-License-Identifier: MIT
"""What live control costs and how exact it is, measured on this machine.

A benchmark is one file with ``measure(setting)``, which yields figures as it finds
them, and one row in `BENCHES`. A figure that has a goal says whether it is reached.
Machines are noisy: rounds are interleaved, and a figure is the least or the median of
its rounds.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final

from penstock.errors import UnknownNameError

__all__ = [
    "ANYWHERE",
    "BENCHES",
    "COMPARING",
    "DRAWING",
    "Figure",
    "Setting",
    "measure",
    "module_name",
]

#: Name -> what is measured.
BENCHES: Final = {
    "overhead": "processor time that the preload library adds to a call",
    "pacing": "bandwidth achieved over bandwidth granted",
    "decisions": "events per second and latency of the controller",
    "fidelity": "yields on a limited mount over simulated ones, under every policy",
    "delta": "interference factors under staging strategies, real and simulated",
    "slo": "throughput and latency of applications at a mount, by scheduler",
}
#: Benchmarks whose module is not named like them.
_MODULES: Final = {"slo": "slo.schedulers"}
#: Those that look at `Setting.policies`,
COMPARING: Final = ("fidelity", "delta")
#: and at `Setting.output`,
DRAWING: Final = ("delta", "slo")
#: and at `Setting.storage`.
ANYWHERE: Final = ("delta",)


@dataclass(frozen=True)
class Setting:
    """How much to measure, and where files may lie."""

    rounds: int
    folder: Path
    policies: tuple[str, ...] = ()
    """Those to be compared; none: all."""
    output: Path | None = None
    """Where tables and drawings go; None: there are none."""
    storage: Path | None = None
    """What is written to, as it is; None: a mount with a limit."""
    bandwidth: float = 0.0
    """Of `storage` (bytes/s); 0: it is measured."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """What made them: version, command ..."""


@dataclass(frozen=True)
class Figure:
    """One measured number."""

    name: str
    value: float
    unit: str
    least: float = -inf
    """It should not be less,"""
    most: float = inf
    """nor more."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Numbers that it was made of, by name."""

    @property
    def has_goal(self) -> bool:
        """Whether there is something to reach."""
        return (self.least, self.most) != (-inf, inf)

    @property
    def is_reached(self) -> bool:
        """Whether the goal is reached, if there is one."""
        return self.least <= self.value <= self.most


def measure(name: str, setting: Setting) -> Iterator[Figure]:
    """Run a benchmark; its figures come as they are found."""
    if name not in BENCHES:
        raise UnknownNameError("benchmark", name, BENCHES)
    module = importlib.import_module(f"{__name__}.{module_name(name)}")
    yield from module.measure(setting)


def module_name(name: str) -> str:
    """Return the module of a benchmark, relative to this package."""
    return _MODULES.get(name, name)
