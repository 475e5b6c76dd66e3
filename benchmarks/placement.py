# SPDX-License-Identifier: MIT
"""Speed of simulations with many storage targets, compared with time steps.

``python benchmarks/placement.py [--json FILE] [--rounds N]``: problems of target
allocation, section 5.3, under fair share, with targets dealt out in turn, until the
first application ends. The baseline is the time-stepped method of section 5.2, with
steps of one second. Each measurement is the minimum of several interleaved rounds. The
exit status is 1 if the two differ by more than the error of the baseline.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

import baseline_time_stepped
from penstock.model import Instance, Window
from penstock.placement import get_allocation, get_placement
from penstock.sim import Run, simulate
from penstock.workloads.striped import Striped
from run import Ledger

#: Time step of the baseline (s); runs then take "thousands of units of time".
STEP = 1.0
HORIZON = 5_000.0
#: Error of the mean yield of the baseline at this step: at most 0.0088 in 30 problems.
STEP_ERROR = 0.01


def placed(applications: int, targets: int, *, index: int = 0) -> Instance:
    """Return a problem of section 5.3 with Theta = 1, at best-bandwidth widths."""
    workload = Striped(
        applications=applications,
        targets=targets,
        compute_nodes=8 * applications,
        horizon=HORIZON,
    )
    problem = workload.problem(1, index)
    widths = get_allocation("best-bandwidth").allocate(problem)
    targets_of = get_placement("greedy-non-clairvoyant").place(problem, widths)
    # Each application ends before this time even if all others go first.
    return problem.instance(targets_of, Window(0.0, 2 * applications * HORIZON))


def flow_events(run: Run) -> int:
    """Return the number of posts and completions of flows, two per target."""
    widths = [len(a.targets) for a in run.instance.applications]
    return 2 * int(np.dot(run.operations, widths))


def time_engine(ledger: Ledger, key: str, instance: Instance) -> Run:
    """Simulate once; record the time of the engine and of the whole call."""
    begin_s = time.perf_counter()
    run = simulate(instance, "fair-share", until_first_end=True)
    seconds = time.perf_counter() - begin_s
    ledger.record(key, run.seconds, flow_events(run))
    ledger.record(f"{key}, whole call", seconds, flow_events(run))
    return run


def against_time_stepped(ledger: Ledger, rounds: int) -> None:
    """Compare penstock with the time-stepped method on the same problem."""
    instance = placed(60, 20)
    simulate(instance, "fair-share", until_first_end=True)
    for _ in range(rounds):
        run = time_engine(ledger, "placement", instance)
        begin_s = time.perf_counter()
        stepped = baseline_time_stepped.simulate(instance, STEP)
        # Divided by the flow events of the engine: time steps have no events.
        seconds = time.perf_counter() - begin_s
        ledger.record("time-stepped", seconds, flow_events(run))
    means = np.mean(run.yields), np.mean(stepped.yields)
    ledger.agree("fair-share, time-stepped", *means, STEP_ERROR)
    print("\nTimes faster than the time-stepped method (20 targets, 60 applications)")
    print(f"  {ledger.least['placement']:.0f} ns per flow event")
    difference = float(np.max(np.abs(run.yields - stepped.yields)))
    print(
        f"  worst yield of the baseline, in steps of {STEP:g} s: {difference:.2g} off"
    )
    for key in ("placement", "placement, whole call"):
        ratio = ledger.least["time-stepped"] / ledger.least[key]
        ledger.report(f"{key} / time-stepped", ratio, "times", 100, most=False)


def growth(ledger: Ledger, rounds: int) -> None:
    """Measure the time per flow event for growing problems at equal load."""
    sizes = ((60, 20), (600, 200), (2000, 1000))
    instances = {size: placed(*size) for size in sizes}
    for _ in range(rounds):
        for size, instance in instances.items():
            time_engine(ledger, f"placement K, N = {size}", instance)
    print("\nCost per flow event over that of 60 applications on 20 targets")
    base = ledger.least[f"placement K, N = {sizes[0]}"]
    for size in sizes[1:]:
        ratio = ledger.least[f"placement K, N = {size}"] / base
        name = f"{size[0]} applications on {size[1]} targets"
        ledger.report(name, ratio, "times", 3, most=True)


def main() -> int:
    """Run both sections; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    arguments = parser.parse_args()
    ledger = Ledger()
    against_time_stepped(ledger, arguments.rounds)
    growth(ledger, arguments.rounds)
    for failure in ledger.failures:
        print(f"DISAGREEMENT {failure}")
    if arguments.json:
        document = {"figures": ledger.figures, "ns_per_flow_event": ledger.least}
        Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if ledger.failures else 0


if __name__ == "__main__":
    sys.exit(main())
