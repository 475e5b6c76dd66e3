# SPDX-License-Identifier: MIT
"""How fast penstock simulates many storage targets, against the report's own method.

``python benchmarks/placement.py [--json FILE] [--rounds N]``: problems of papers/2
section 5.3 under fair share, targets dealt out in turn, until the first application
ends. The baseline is the time-stepped method of section 5.2, one second at a time.
Every figure is the least of several interleaved rounds; exit status 1 if the two
disagree by more than the baseline's own error.
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

#: Unit of time of the baseline (s); with it runs take "thousands of units of time".
STEP = 1.0
HORIZON = 5_000.0
#: Error of the baseline's mean yield at this step: 0.0088 at most over 30 problems.
STEP_ERROR = 0.01


def placed(applications: int, targets: int, *, index: int = 0) -> Instance:
    """Return a problem of section 5.3, Theta = 1, each on the targets it likes best."""
    workload = Striped(
        applications=applications,
        targets=targets,
        compute_nodes=8 * applications,
        horizon=HORIZON,
    )
    problem = workload.problem(1, index)
    widths = get_allocation("best-bandwidth").allocate(problem)
    targets_of = get_placement("greedy-non-clairvoyant").place(problem, widths)
    # Nobody is delayed more than if all others went first.
    return problem.instance(targets_of, Window(0.0, 2 * applications * HORIZON))


def flow_events(run: Run) -> int:
    """Return posts and completions of flows: two of each target of an operation."""
    widths = [len(a.targets) for a in run.instance.applications]
    return 2 * int(np.dot(run.operations, widths))


def time_engine(ledger: Ledger, key: str, instance: Instance) -> Run:
    """Simulate once; note the engine's time per flow event and that of the call."""
    began = time.perf_counter()
    run = simulate(instance, "fair-share", until_first_end=True)
    seconds = time.perf_counter() - began
    ledger.note(key, run.seconds, flow_events(run))
    ledger.note(f"{key}, whole call", seconds, flow_events(run))
    return run


def against_time_stepped(ledger: Ledger, rounds: int) -> None:
    """Run penstock and the time-stepped method on the same problem, in turn."""
    instance = placed(60, 20)
    simulate(instance, "fair-share", until_first_end=True)
    for _ in range(rounds):
        run = time_engine(ledger, "placement", instance)
        began = time.perf_counter()
        stepped = baseline_time_stepped.simulate(instance, STEP)
        # Per flow event of the engine: the steps have none of their own.
        seconds = time.perf_counter() - began
        ledger.note("time-stepped", seconds, flow_events(run))
    means = np.mean(run.yields), np.mean(stepped.yields)
    ledger.agree("fair-share, time-stepped", *means, STEP_ERROR)
    print("\nTimes faster than the time-stepped method (20 targets, 60 applications)")
    print(f"  {ledger.least['placement']:.0f} ns per flow event")
    apart = float(np.max(np.abs(run.yields - stepped.yields)))
    print(f"  worst yield of the baseline, in steps of {STEP:g} s: {apart:.2g} off")
    for key in ("placement", "placement, whole call"):
        ratio = ledger.least["time-stepped"] / ledger.least[key]
        ledger.report(f"{key} / time-stepped", ratio, "times", 100, most=False)


def growth(ledger: Ledger, rounds: int) -> None:
    """Time flow events as targets and applications grow, at equal load."""
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
