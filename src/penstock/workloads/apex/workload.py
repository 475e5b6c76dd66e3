# SPDX-License-Identifier: MIT
"""The APEX workload: NERSC or TRILAB jobs on machine M_t.

Bandwidth sharing, section 6.3.1. Jobs of the APEX table fill a machine for three
months, first fit. An instance is one of the `windows` longest intervals of such a
schedule in which no job begins or ends, with the jobs that run in it. Instance k is
window k mod `windows` (0: the longest) of schedule k div `windows`.

Rule
    tau_i = T_begin: the age of every job is counted from the begin of the window.

Readings
    - ``reading=inferred``: what the windows that the authors published say, and the
      text does not. The machines are those of `penstock.workloads.apex.table`; a job
      that only works inside the window is dropped from it; operations shorter than 1 s
      are carried to the next one of their job (`penstock.workloads.apex.phases`). A
      window from which all jobs are dropped is no window: the next longest takes its
      place.
    - ``reading=literal``: the text alone. Other machines; all jobs of a window count,
      even those without I/O in it, and every operation stands by itself.
    - In both: windows lie within the first `days`, in which the machine is full. Begins
      and ends of jobs bound a window. (The authors' program also lets jobs end inside a
      window and adds noise to the phases.)
    - Time is shifted so that T_begin = 0.

`phases` defines the phases of a job, `schedule` draws and places the jobs, and `table`
holds the job classes and the machines.

Seeds: schedule k of seed s uses the random stream (s, k).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import Application, Instance, Window
from penstock.workloads.apex.phases import (
    carry_short,
    is_busy,
    job_phases,
    may_do_io,
    phases_around,
    phases_left,
)
from penstock.workloads.apex.table import (
    INFERRED,
    READINGS,
    Machine,
    celio_successor,
    job_classes,
)
from penstock.workloads.parameters import check_parameters, parameter
from penstock.workloads.random_streams import seed_sequence

if TYPE_CHECKING:
    from penstock.workloads.apex.schedule import Schedule

__all__ = ["Apex", "window_statistics"]


@dataclass(frozen=True, slots=True)
class Apex:
    """Parameters of the APEX workload."""

    trace: str = parameter(
        "NERSC", "trace", "table of jobs", choices=("NERSC", "TRILAB")
    )
    machine: int = parameter(0, "t", "machine M_t; 0: Celio", low=0, high=10)
    days: float = parameter(90.0, "days", "days of machine use", low=1.0, high=36_500.0)
    windows: int = parameter(
        20, "windows", "instances taken from one schedule: its longest windows", low=1
    )
    reading: str = parameter(
        INFERRED,
        "reading",
        "what fills gaps of the paper's text: inferred from the data that the authors "
        "published, or literal, the text alone",
        choices=READINGS,
    )

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def batch(self) -> int:
        """Number of consecutive instances with the same schedule.

        One process should draw them, because drawing a schedule takes longest.
        """
        return self.windows

    def instance(self, seed: int, index: int) -> Instance:
        """Draw instance `index` of `seed`."""
        number, rank = divmod(index, self.windows)
        source = _schedule(
            _Source(self.trace, self.machine, self.days, self.reading), seed, number
        )
        instance = source.instance(rank)
        if instance is None:
            raise InputError(
                f"schedule {number} has {len(source.used)} windows in {self.days:g} "
                f"days, not {self.windows}",
                where="windows",
                remedy="give more days or fewer windows",
            )
        return instance


class _Source(NamedTuple):
    """The parameters that decide about schedules."""

    trace: str
    machine: int
    days: float
    reading: str


@dataclass(slots=True)
class _Drawn:
    """A schedule and its windows, longest first."""

    source: _Source
    schedule: Schedule
    windows: NDArray[np.float64]
    used: list[int] = field(default_factory=list)
    """The longest windows that are known not to be empty, by their place."""

    def instance(self, rank: int) -> Instance | None:
        """Return window `rank` of those that are not empty; None if there is none."""
        if rank < len(self.used):
            return self._instance(self.used[rank])
        place = self.used[-1] + 1 if self.used else 0
        while place < len(self.windows):
            instance = self._instance(place)
            if instance is not None:
                self.used.append(place)
                if rank < len(self.used):
                    return instance
            place += 1
        return None

    def _instance(self, place: int) -> Instance | None:
        """Return the window at a place of `windows`; None if it has no jobs."""
        begin, end = self.windows[place].tolist()
        platform = celio_successor(self.source.machine, self.source.reading).platform
        applications = tuple(self._applications(begin, end - begin))
        if not applications:
            return None
        # Rounding in sums of phases must not let a job end before the window does.
        ends = [a.dedicated_times(platform.cap(a.nodes))[-1] for a in applications]
        window = Window(0.0, float(min(end - begin, *ends)))
        return Instance(platform, window, applications)

    def _applications(self, begin: float, length: float) -> Iterator[Application]:
        """Iterate over the jobs of a window, with the phases that remain to them."""
        schedule, classes = self.schedule, job_classes(self.source.trace)
        machine = celio_successor(self.source.machine, self.source.reading)
        for job in self._candidates(begin, length, machine).tolist():
            job_class = classes[schedule.job_class[job]]
            nodes = int(schedule.nodes[job])
            cap = machine.platform.cap(nodes)
            started, ends = float(schedule.begin[job]), float(schedule.end[job])
            elapsed = begin - started
            if self.source.reading == INFERRED:
                span = elapsed, elapsed + length
                work, volume = phases_around(
                    job_class, nodes, ends - started, machine, span
                )
                work, volume = carry_short(work, volume, cap)
                if not is_busy(work, volume, cap, length):
                    continue
            else:
                work, volume = job_phases(job_class, nodes, ends - started, machine)
                work, volume = phases_left(work, volume, cap, elapsed)
            name = f"{job_class.name}-{job}"
            yield Application(name, nodes, work, volume, group=job_class.name)

    def _candidates(
        self, begin: float, length: float, machine: Machine
    ) -> NDArray[np.int64]:
        """Return the jobs that run in a window, less those without I/O in it."""
        schedule = self.schedule
        running = np.flatnonzero((schedule.begin <= begin) & (begin < schedule.end))
        if self.source.reading != INFERRED:
            return running
        nodes, elapsed = schedule.nodes[running], begin - schedule.begin[running]
        platform = machine.platform
        cap = np.minimum(nodes * platform.node_bandwidth, platform.bandwidth)
        busy = may_do_io(
            job_classes(self.source.trace),
            schedule.job_class[running],
            nodes * machine.memory / cap,
            schedule.end[running] - schedule.begin[running],
            (elapsed, elapsed + length),
        )
        return running[busy]


@lru_cache(maxsize=2)
def _schedule(source: _Source, seed: int, number: int) -> _Drawn:
    """Return schedule `number` of `seed`."""
    # Imported late: the module needs Numba, which the other workloads do not.
    from penstock.workloads.apex.schedule import draw_schedule  # noqa: PLC0415

    generator = default_rng(seed_sequence(seed, number))
    machine = celio_successor(source.machine, source.reading)
    schedule = draw_schedule(job_classes(source.trace), machine, source.days, generator)
    return _Drawn(source, schedule, schedule.windows(source.days))


def window_statistics(
    workload: Apex, schedules: int, seed: int
) -> list[dict[str, float]]:
    """Return one row per window of the first schedules of a workload.

    ``applications``, their ``nodes`` and ``mean_capped_nodes`` (a job counts with at
    most the nodes that saturate the storage, the mean over jobs); ``usage`` is the part
    of the nodes of the machine, ``duration`` is in seconds, ``pressure`` is W.
    """
    instances = (
        workload.instance(seed, index) for index in range(schedules * workload.windows)
    )
    machine = celio_successor(workload.machine, workload.reading)
    return [_statistics(i, machine) for i in instances]


def _statistics(instance: Instance, machine: Machine) -> dict[str, float]:
    sizes = [a.nodes for a in instance.applications]
    most = math.ceil(machine.platform.bandwidth / machine.platform.node_bandwidth)
    return {
        "applications": len(sizes),
        "nodes": sum(sizes),
        "mean_capped_nodes": sum(min(n, most) for n in sizes) / len(sizes),
        "usage": sum(sizes) / machine.nodes,
        "duration": instance.window.length,
        "pressure": instance.pressure(),
    }
