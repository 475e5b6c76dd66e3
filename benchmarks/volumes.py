# SPDX-License-Identifier: MIT
"""How far live yields are from simulated ones if nobody announces volumes.

Random workloads of 4 to 6 jobs on 40 MB/s run in virtual time under the controller,
with programs that announce nothing, and in the simulator, which knows all volumes. A
job that was seen before has a history of two operations. The workloads are not
selected. Beside the present estimate stands the former one: a first operation lasts a
second at the cap, and a volume that proves too small is doubled.

    python benchmarks/volumes.py [WORKLOADS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import exp, inf, log
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

from penstock.live.control.controller import Controller
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.jobs import JobHistory
from penstock.live.control.volumes import VolumePredictor
from penstock.live.wire.messages import AgentConfig
from penstock.model import Application, Column, Instance, Platform, Window
from penstock.sim import simulate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.virtual_site import VirtualProgram, VirtualSite

B = 40e6
#: A job: its release (s) and its phases of work (s) and volume (bytes).
Job = tuple[float, list[tuple[float, float]]]


def workloads(count: int) -> Iterator[list[Job]]:
    """Yield random workloads; volumes are log-uniform between 15 and 250 MB."""
    draw = np.random.default_rng(7)
    for _ in range(count):
        jobs: list[Job] = []
        for _ in range(draw.integers(4, 7)):
            volume = exp(draw.uniform(log(15e6), log(250e6)))
            times = int(draw.integers(1, 5 if volume < 150e6 else 3))
            release = float(draw.uniform(0.0, 4.0))
            jobs.append((release, [(float(draw.uniform(1.0, 8.0)), volume)] * times))
        yield jobs


def former_estimate(
    predictor: VolumePredictor, moved_bytes: float, cap: float, longest_s: float
) -> float:
    """Return a second at the cap or the median, doubled until it exceeds `moved`."""
    del longest_s
    volume = max(median(predictor.past_bytes) if predictor.past_bytes else cap, 1.0)
    while volume <= moved_bytes:
        volume *= 2.0
    return volume


def live_yields(jobs: list[Job], policy: str, newcomers: set[int]) -> Column:
    """Return the yields under the controller, in virtual time."""

    def recall(job_key: str) -> JobHistory | None:
        number = int(job_key.partition(":")[2])
        release, phases = jobs[number]
        volumes = (phases[0][1],) * 2
        return None if number in newcomers else JobHistory(release, past_bytes=volumes)

    programs = [
        VirtualProgram(f"0:{number}", phases, release, call_bytes=256 << 10)
        for number, (release, phases) in enumerate(jobs)
    ]
    config = AgentConfig("control", ["/s"], 0.05, 0.1, 3.0, inf, reads=True)
    controller = Controller(policy, B, inf, compiled=False)
    VirtualSite(Coordinator(controller, config, recall), programs, (0.002,)).run(600.0)
    alone = [sum(w + v / B for w, v in phases) for _, phases in jobs]
    spans = [program.end_s - program.release_s for program in programs]
    yields: Column = np.array(alone) / np.array(spans)
    return yields


def simulated_yields(jobs: list[Job], policy: str) -> Column:
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


def largest(jobs: list[Job]) -> set[int]:
    """Return the number of the job with the largest operations."""
    return {max(range(len(jobs)), key=lambda number: jobs[number][1][0][1])}


#: What is not known before -> the jobs that were never seen.
CASES: dict[str, Callable[[list[Job]], set[int]]] = {
    "nothing": lambda _: set(),
    "the largest job": largest,
    "all jobs": lambda jobs: set(range(len(jobs))),
}


def main() -> None:
    """Print the largest difference of a yield: median over workloads, and counts."""
    scenes = list(workloads(int(sys.argv[1]) if len(sys.argv) > 1 else 24))
    print("policy, not seen before, estimate: median, mean; within 5 %")
    for policy in ("greedy-com", "soft-deadline"):
        simulated = [simulated_yields(jobs, policy) for jobs in scenes]
        for case, newcomers in CASES.items():
            for name, estimate in (
                ("former", former_estimate),
                ("present", VolumePredictor.estimate),
            ):
                with patch.object(VolumePredictor, "estimate", estimate):
                    differences = [
                        float(
                            abs(
                                live_yields(jobs, policy, newcomers(jobs)) / y - 1
                            ).max()
                        )
                        for jobs, y in zip(scenes, simulated, strict=True)
                    ]
                close = sum(difference <= 0.05 for difference in differences)
                print(
                    f"{policy}, {case}, {name}: {100 * median(differences):.1f} %, "
                    f"{100 * sum(differences) / len(scenes):.1f} %; "
                    f"{close} of {len(scenes)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
