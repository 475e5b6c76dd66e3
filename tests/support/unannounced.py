# SPDX-License-Identifier: MIT
"""Jobs that announce no volumes: their yields in virtual time, and simulated ones.

The simulator knows all volumes; the controller knows those of jobs that it has seen
before. `benchmarks/volumes.py` and `test_coordinator_volumes` compare both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf

import numpy as np

from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.wire.messages import AgentConfig
from penstock.model import Application, Column, Instance, Platform, Window
from penstock.sim import simulate
from support.virtual_site import VirtualProgram, VirtualSite

__all__ = ["B", "UnannouncedJob", "live_yields", "recall_all", "simulated_yields"]

#: The shared bandwidth (bytes/s).
B = 40e6
#: A job: its release (s) and its phases of work (s) and volume (bytes).
UnannouncedJob = tuple[float, list[tuple[float, float]]]
Recall = Callable[[str], JobHistory | None]


def recall_all(jobs: list[UnannouncedJob], newcomers: Collection[int] = ()) -> Recall:
    """Return the memory of a controller that has seen all jobs but the newcomers.

    It knows two operations of each.
    """

    def recall(job_key: str) -> JobHistory | None:
        number = int(job_key.partition(":")[2])
        release, phases = jobs[number]
        volumes = (phases[0][1],) * 2
        return None if number in newcomers else JobHistory(release, past_bytes=volumes)

    return recall


def live_yields(jobs: list[UnannouncedJob], policy: str, recall: Recall) -> Column:
    """Return the yields under the controller, in virtual time."""
    programs = [
        VirtualProgram(f"0:{number}", phases, release)
        for number, (release, phases) in enumerate(jobs)
    ]
    config = AgentConfig("control", ["/s"], 0.05, 0.1, 3.0, inf, reads=True)
    controller = Controller(policy, B, inf, compiled=False)
    site = VirtualSite(Coordinator(controller, config, recall), programs, (0.001,))
    site.run(600.0)
    alone = [sum(w + v / B for w, v in phases) for _, phases in jobs]
    spans = [program.end_s - program.release_s for program in programs]
    yields: Column = np.array(alone) / np.array(spans)
    return yields


def simulated_yields(jobs: list[UnannouncedJob], policy: str) -> Column:
    """Return the yields if all volumes are known."""
    applications = (
        Application.from_phases(
            f"a{number}",
            1,
            [part for w, v in phases for part in (("work", w), ("io", v))],
            release=release,
        )
        for number, (release, phases) in enumerate(jobs)
    )
    instance = Instance(Platform(B, B), Window(0.0, 3600.0), tuple(applications))
    return simulate(instance, policy, steady=False).yields
