# SPDX-License-Identifier: MIT
"""The APEX workload of papers/1 section 6.3.1: NERSC or TRILAB jobs on machine M_t.

Jobs of the APEX table fill a machine for three months, first fit. An instance is one
of the `windows` longest intervals of such a schedule in which no job begins or ends,
and the jobs in it. Instance k: window k mod `windows` (0: the longest) of schedule
k div `windows`.

Rule
    tau_i = T_begin: every job is as if new when the window begins.

Readings
    - All jobs of a window count, those that only work in it too. (The authors'
      program leaves these out, lets jobs end inside a window and adds noise to the
      phases; the paper says none of this.)
    - Windows lie within the first `days`, where the machine is full.
    - Time is shifted: T_begin = 0.

What a job does is in `apex_phases`, how jobs are drawn and placed in
`apex_schedule`, the table and the machines in `apex_data`.

Seeds: schedule k of seed s uses the stream (s, k).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import SeedSequence, default_rng
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.model import Application, Instance, Window
from penstock.workloads.apex.phases import job_phases, phases_left
from penstock.workloads.apex.table import (
    JobClass,
    Machine,
    job_classes,
    scaled_celio,
)
from penstock.workloads.parameters import check_parameters, parameter

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
    windows: int = parameter(20, "windows", "longest windows of a schedule", low=1)

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def batch(self) -> int:
        """Consecutive instances that share a schedule: best drawn by one process."""
        return self.windows

    def instance(self, seed: int, index: int) -> Instance:
        """Draw instance `index` of `seed`."""
        number, rank = divmod(index, self.windows)
        schedule, windows = _schedule(self.trace, self.machine, self.days, seed, number)
        if rank >= len(windows):
            raise InputError(
                f"schedule {number} has {len(windows)} windows in {self.days:g} days, "
                f"not {self.windows}",
                where="windows",
                remedy="ask for more days or fewer windows",
            )
        begin, end = windows[rank].tolist()
        classes, host = job_classes(self.trace), scaled_celio(self.machine)
        running = np.flatnonzero((schedule.begin <= begin) & (begin < schedule.end))
        applications = tuple(
            _application(classes, host, schedule, job, begin)
            for job in running.tolist()
        )
        # Sums of phases round: no job may end before the window by the last bit.
        ends = [a.dedicated_times(host.platform.cap(a.nodes))[-1] for a in applications]
        window = Window(0.0, float(min(end - begin, *ends)))
        return Instance(host.platform, window, applications)


def window_statistics(
    trace: str, machine: int, schedules: int, seed: int
) -> list[dict[str, float]]:
    """Return a row for every window of some schedules: size, use and I/O pressure."""
    workload = Apex(trace=trace, machine=machine)
    instances = (
        workload.instance(seed, index) for index in range(schedules * workload.windows)
    )
    return [_statistics(i, scaled_celio(machine)) for i in instances]


def _statistics(instance: Instance, host: Machine) -> dict[str, float]:
    nodes = sum(a.nodes for a in instance.applications)
    return {
        "applications": len(instance.applications),
        "nodes": nodes,
        "usage": nodes / host.nodes,
        "duration": instance.window.length,
        "pressure": instance.pressure(),
    }


@lru_cache(maxsize=2)
def _schedule(
    trace: str, machine: int, days: float, seed: int, number: int
) -> tuple[Schedule, NDArray[np.float64]]:
    """Return schedule `number` of `seed` and all its windows, the longest first."""
    # Only here: it imports Numba, which the other workloads do without.
    from penstock.workloads.apex.schedule import draw_schedule  # noqa: PLC0415

    generator = default_rng(SeedSequence(seed, spawn_key=(number,)))
    schedule = draw_schedule(job_classes(trace), scaled_celio(machine), days, generator)
    return schedule, schedule.windows(days)


def _application(
    classes: Sequence[JobClass], host: Machine, schedule: Schedule, job: int, now: float
) -> Application:
    """Return what is left of a job at the instant `now`."""
    kind = classes[schedule.kind[job]]
    nodes = int(schedule.nodes[job])
    begin, end = float(schedule.begin[job]), float(schedule.end[job])
    work, volume = job_phases(kind, nodes, end - begin, host)
    cap = host.platform.cap(nodes)
    work, volume = phases_left(work, volume, cap, now - begin)
    name = f"{kind.name}-{job}"
    return Application(name, nodes, work, volume, group=kind.name)
