# SPDX-License-Identifier: MIT
"""The applications of the benchmark, and what they run under.

Four applications write to four storage targets, which carry about 19 MB/s together:

- *micro*: the microbenchmark of burst-buffer coordination, with pauses;
- *cm1* and *lanl*: checkpoints of CM1 and of LANL App1 in small: the volumes have the
  proportion of the paper (52 : 50), and there are no pauses;
- *ior*: a checkpoint as IOR writes it, in few large requests.

Each has several I/O phases with work between them. Slowdown of an application: its time
in I/O phases, divided by that alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from penstock.bench.moosefs import ClusterSpec

__all__ = [
    "CALL_BYTES",
    "CLUSTER",
    "FILES",
    "PLACEMENTS",
    "STRATEGIES",
    "TARGETS",
    "PartitionApp",
    "PartitionPlan",
    "PhaseSpan",
    "scenes",
    "total_s",
]

#: Begin and end of an I/O phase (s after the start of the scene).
PhaseSpan = tuple[float, float]

TARGETS: Final = 4
#: Files of an application on each of its targets; two: a target is never idle.
FILES: Final = 2
#: Size of a write call. A request is complete when the slowest target has its part, so
#: the larger the calls, the longer applications with small requests wait at the end of
#: each: under `none` one was 19 % slower than simulated with calls of 64 KiB, 11 % with
#: 32 KiB, and 5 % with 16 KiB. With smaller ones the processors limit the bandwidth.
CALL_BYTES: Final = 1 << 14
#: The chunk servers have links of 5 MB/s, all headers included. A write is answered
#: when a chunk server has it: no write-back.
CLUSTER: Final = ClusterSpec(TARGETS, 1, 5e6, mount_options="sync,mfswritecachesize=16")
STRATEGIES: Final = ("none", "1a", "1b", "2a", "2b", "3a", "3b", "auto")
#: Allocations and placements of target allocation. All targets for every application:
#: the strategy none.
PLACEMENTS: Final = (
    "t-cpu+greedy-non-clairvoyant",
    "static+greedy-non-clairvoyant",
    "best-bandwidth+greedy-clairvoyant",
)
#: A quick run writes this part of the volume.
_QUICK: Final = 4


@dataclass(frozen=True)
class PartitionApp:
    """An application: phases of equal requests, with work between phases."""

    name: str
    requests: int
    """Requests of a phase."""
    size_bytes: int
    """Bytes of a request."""
    delay_s: float
    """Pause between requests."""
    start_s: float
    """Begin of its first phase."""
    work_s: float
    """Work between two phases."""
    phases: int = 2

    @property
    def volume_bytes(self) -> int:
        """Bytes of a phase."""
        return self.requests * self.size_bytes


@dataclass(frozen=True)
class PartitionPlan:
    """What to run beside a cluster: every scene under every setting."""

    scenes: dict[str, tuple[PartitionApp, ...]]
    settings: tuple[str, ...]
    probe_bytes: int = 8_000_000
    """What is written to measure the bandwidth on a number of targets."""


_MICRO: Final = PartitionApp("micro", 8, 4_000_000, 0.3, start_s=0.0, work_s=3.0)
_CM1: Final = PartitionApp("cm1", 10, 2_600_000, 0.0, start_s=0.8, work_s=4.0)
_LANL: Final = PartitionApp("lanl", 10, 2_500_000, 0.0, start_s=1.6, work_s=3.5)
_IOR: Final = PartitionApp("ior", 2, 16_000_000, 0.0, start_s=1.2, work_s=4.5)


def scenes(*, quick: bool) -> dict[str, tuple[PartitionApp, ...]]:
    """Return the applications of each scene."""
    if quick:
        return {"two": (_shortened(_MICRO), _shortened(_IOR))}
    return {"two": (_MICRO, _IOR), "four": (_MICRO, _CM1, _LANL, _IOR)}


def _shortened(app: PartitionApp) -> PartitionApp:
    """Return the application with fewer requests, or with smaller ones."""
    app = replace(app, start_s=app.start_s / _QUICK, work_s=0.5)
    if app.requests < _QUICK:
        return replace(app, size_bytes=app.size_bytes // _QUICK)
    return replace(app, requests=app.requests // _QUICK)


def total_s(phases: Iterable[PhaseSpan]) -> float:
    """Return the length of all phases together (s)."""
    return sum(end - begin for begin, end in phases)
