# SPDX-License-Identifier: MIT
"""The APEX workload: NERSC or TRILAB jobs on machine M_t.

Bandwidth sharing, section 6.3.1. Jobs of the APEX table fill a machine for three
months, first fit. An instance is one of the `windows` longest intervals of such a
schedule in which no job begins or ends, with the jobs that run in it. Instance k is
window k mod `windows` (0: the longest) of schedule k div `windows`.

Rule
    tau_i = T_begin: the age of every job is counted from the begin of the window.

Readings
    - All jobs of a window count, even those without I/O in it. (The authors' program
      leaves these out, lets jobs end inside a window, and adds noise to the phases; the
      paper does not mention any of this.)
    - Windows lie within the first `days`, in which the machine is full.
    - Time is shifted so that T_begin = 0.

`phases` defines the phases of a job, `schedule` draws and places the jobs, and `table`
holds the job classes and the machines.

Seeds: schedule k of seed s uses the random stream (s, k).
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
        """Number of consecutive instances with the same schedule.

        One process should draw them, because drawing a schedule takes longest.
        """
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
                remedy="give more days or fewer windows",
            )
        begin, end = windows[rank].tolist()
        classes, host = job_classes(self.trace), scaled_celio(self.machine)
        running = np.flatnonzero((schedule.begin <= begin) & (begin < schedule.end))
        applications = tuple(
            _application(classes, host, schedule, job, begin)
            for job in running.tolist()
        )
        # Rounding in sums of phases must not let a job end before the window does.
        ends = [a.dedicated_times(host.platform.cap(a.nodes))[-1] for a in applications]
        window = Window(0.0, float(min(end - begin, *ends)))
        return Instance(host.platform, window, applications)


def window_statistics(
    trace: str, machine: int, schedules: int, seed: int
) -> list[dict[str, float]]:
    """Return one row per window of the first schedules: size, usage, I/O pressure."""
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
    """Return schedule `number` of `seed` and all its windows, longest first."""
    # Imported late: the module needs Numba, which the other workloads do not.
    from penstock.workloads.apex.schedule import draw_schedule  # noqa: PLC0415

    generator = default_rng(SeedSequence(seed, spawn_key=(number,)))
    schedule = draw_schedule(job_classes(trace), scaled_celio(machine), days, generator)
    return schedule, schedule.windows(days)


def _application(
    classes: Sequence[JobClass], host: Machine, schedule: Schedule, job: int, now: float
) -> Application:
    """Return the phases of a job that remain at the instant `now`."""
    kind = classes[schedule.kind[job]]
    nodes = int(schedule.nodes[job])
    begin, end = float(schedule.begin[job]), float(schedule.end[job])
    work, volume = job_phases(kind, nodes, end - begin, host)
    cap = host.platform.cap(nodes)
    work, volume = phases_left(work, volume, cap, now - begin)
    name = f"{kind.name}-{job}"
    return Application(name, nodes, work, volume, group=kind.name)
