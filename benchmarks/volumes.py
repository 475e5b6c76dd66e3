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
from math import exp, log
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

from penstock.live.control.activity.volumes import VolumePredictor
from penstock.model import Column

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.unannounced import (
    UnannouncedJob,
    live_yields,
    recall_all,
    simulated_yields,
)


def workloads(count: int) -> Iterator[list[UnannouncedJob]]:
    """Yield random workloads; volumes are log-uniform between 15 and 250 MB."""
    draw = np.random.default_rng(7)
    for _ in range(count):
        jobs: list[UnannouncedJob] = []
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


def largest(jobs: list[UnannouncedJob]) -> set[int]:
    """Return the number of the job with the largest operations."""
    return {max(range(len(jobs)), key=lambda number: jobs[number][1][0][1])}


#: What is not known before -> the jobs that were never seen.
CASES: dict[str, Callable[[list[UnannouncedJob]], set[int]]] = {
    "nothing": lambda _: set(),
    "the largest job": largest,
    "all jobs": lambda jobs: set(range(len(jobs))),
}


def _difference(
    jobs: list[UnannouncedJob], policy: str, newcomers: set[int], yields: Column
) -> float:
    """Return the largest relative difference of a live yield from a simulated one."""
    live = live_yields(jobs, policy, recall_all(jobs, newcomers))
    return float(abs(live / yields - 1.0).max())


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
                        _difference(jobs, policy, newcomers(jobs), yields)
                        for jobs, yields in zip(scenes, simulated, strict=True)
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
