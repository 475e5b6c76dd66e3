# SPDX-License-Identifier: MIT
"""Speed of penstock, as ratios to named baselines measured in the same run.

``make bench`` or ``python benchmarks/run.py [--json FILE] [--rounds N]``. Each
measurement is the minimum of several interleaved rounds, because machines are noisy.
The results are compared too: the exit status is 1 if the yields of penstock and of a
baseline differ by more than docs/background/model.md allows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import baseline_simgrid
import baseline_simpy
from penstock.model import Instance
from penstock.policies import POLICIES, get_policy
from penstock.policies.policy import bind
from penstock.policies.view import View
from penstock.sim import simulate
from penstock.workloads import get_workload

#: Policies that the baselines also implement.
SHARED = tuple(baseline_simpy.POLICIES)
#: Policies without a baseline: compared with greedy-yield of SimPy, the most similar.
OWN = ("look-ahead-greedy-yield", "periodic-greedy-yield", "set-10")


@dataclass
class Ledger:
    """Minimum time per event (ns) by name, results, and disagreements."""

    least: dict[str, float] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def record(self, key: str, seconds: float, events: int) -> None:
        """Keep the minimum time per event."""
        self.least[key] = min(self.least.get(key, np.inf), 1e9 * seconds / events)

    def report(
        self, name: str, value: float, unit: str, limit: float, *, most: bool
    ) -> None:
        """Print a measurement and its goal."""
        self.figures[name] = value
        met = value <= limit if most else value >= limit
        wanted = f"{'at most' if most else 'at least'} {limit:g}"
        verdict = "" if met else "   MISSED"
        print(f"  {name:<52} {value:9.4g} {unit:<9} {wanted:>15}{verdict}")

    def agree(self, name: str, yields: Any, reference: Any, tolerance: float) -> None:
        """Check that two lists of yields are equal within `tolerance`."""
        difference = float(np.max(np.abs(np.asarray(yields) - np.asarray(reference))))
        if difference > tolerance:
            self.failures.append(f"{name}: yields differ by {difference:.2e}")


def synthetic(*settings: str, index: int = 0) -> Instance:
    """Return an instance of the synthetic workload of bandwidth sharing."""
    return get_workload("synthetic", settings).instance(1, index)


def time_engine(ledger: Ledger, key: str, instance: Instance, policy: Any) -> Any:
    """Simulate once and record the time per event."""
    run = simulate(instance, policy)
    ledger.record(key, run.seconds, run.events)
    return run


def against_baselines(ledger: Ledger, rounds: int) -> None:
    """Compare penstock with SimPy and SimGrid on the same instance."""
    instance = synthetic("W=0.8", "horizon=400000")
    for policy in (*SHARED, *OWN):
        simulate(instance, policy)
    with_simgrid = baseline_simgrid.build() is not None
    for _ in range(rounds):
        for policy in SHARED:
            run = time_engine(ledger, policy, instance, policy)
            begin_s = time.perf_counter()
            yields, events = baseline_simpy.simulate(instance, policy)
            ledger.record(f"SimPy {policy}", time.perf_counter() - begin_s, events)
            ledger.agree(f"{policy}, SimPy", run.yields, yields, 1e-9)
            if with_simgrid:
                reference = baseline_simgrid.simulate(instance, policy)
                assert reference is not None  # noqa: S101 - it was built above
                ledger.record(f"SimGrid {policy}", reference.seconds, reference.events)
                ledger.agree(f"{policy}, SimGrid", run.yields, reference.yields, 1e-9)
        for policy in OWN:
            time_engine(ledger, policy, instance, policy)
    print("\nTimes faster per event than a baseline (60 applications, W = 0.8)")
    for policy in (*SHARED, *OWN):
        near = policy if policy in SHARED else "greedy-yield"
        ours_ns = ledger.least[policy]
        print(f"  {policy}: {ours_ns:.0f} ns per event")
        ratio = ledger.least[f"SimPy {near}"] / ours_ns
        ledger.report(f"{policy} / SimPy {near}", ratio, "times", 40, most=False)
        if with_simgrid:
            ratio = ledger.least[f"SimGrid {near}"] / ours_ns
            ledger.report(f"{policy} / SimGrid {near}", ratio, "times", 12, most=False)


def growth(ledger: Ledger, rounds: int) -> None:
    """Measure the time per event for more applications at equal pressure."""
    sizes = (60, 600, 6000)
    instances = {
        m: synthetic("W=0.8", f"applications={m}", f"horizon={120_000_000 // m}")
        for m in sizes
    }
    for _ in range(rounds):
        for policy in SHARED:
            for m in sizes:
                time_engine(ledger, f"{policy} m={m}", instances[m], policy)
    print("\nCost per event at m applications over that at 60 (W = 0.8)")
    for policy in SHARED:
        base = ledger.least[f"{policy} m=60"]
        for m in sizes[1:]:
            ratio = ledger.least[f"{policy} m={m}"] / base
            ledger.report(f"{policy}, m = {m}", ratio, "times", 3, most=True)


def best_next_event(ledger: Ledger, rounds: int) -> None:
    """Measure the most costly policy at high and at excessive pressure."""
    print("\nbest-next-event (60 applications, full horizon)")
    for pressure, limit in (("0.8", 5.0), ("1.1", 10.0)):
        instance = synthetic(f"W={pressure}")
        for _ in range(max(rounds // 2, 2)):
            time_engine(ledger, f"bne {pressure}", instance, "best-next-event")
        cost = ledger.least[f"bne {pressure}"] / 1000
        ledger.report(f"W = {pressure}", cost, "us/event", limit, most=True)


def plain_fcfs(view: View, rates: Any) -> float:
    """First come, first served in plain Python, for b_i = B."""
    first = view.active[0]
    for position in range(1, view.n_active):
        i = view.active[position]
        if view.posted[i] < view.posted[first]:
            first = i
    rates[first] = view.cap[first]
    return np.inf


def plain_policy(ledger: Ledger, rounds: int) -> None:
    """Measure a policy that is not compiled."""
    instance = synthetic("W=0.8", "horizon=400000")
    plain = bind("plain", plain_fcfs)
    for _ in range(rounds):
        compiled_run = time_engine(ledger, "plain kernel", instance, "fcfs")
        plain_run = time_engine(ledger, "plain", instance, plain)
        ledger.agree("fcfs in plain Python", compiled_run.yields, plain_run.yields, 0.0)
    more = (ledger.least["plain"] - ledger.least["plain kernel"]) / 1000
    print("\nA policy in plain Python")
    ledger.report("fcfs, more than compiled", more, "us/event", 5, most=True)


def commands(ledger: Ledger, rounds: int) -> None:
    """Measure start-up, compilation and memory, each in a new process."""
    program = str(Path(sys.executable).with_name("penstock"))
    print("\nCommands, each in a process of its own")
    listing = min(timed([program, "policies"]) for _ in range(rounds))
    ledger.report("penstock policies", listing, "s", 0.3, most=True)
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "NUMBA_CACHE_DIR": cache}
        first = timed([program, "compare"], env)
        ledger.report("penstock compare, first time", first, "s", 60, most=True)
        again = min(timed([program, "compare"], env) for _ in range(2))
        ledger.report("penstock compare, afterwards", again, "s", 15, most=True)
    ledger.report("one instance, all policies", peak_memory(), "MB", 200, most=True)


def timed(command: list[str], env: dict[str, str] | None = None) -> float:
    """Run a command; return its duration (s)."""
    begin_s = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=600)
    return time.perf_counter() - begin_s


def peak_memory() -> float:
    """Return the peak resident memory of a process that runs one instance (MB)."""
    names = [name for name in POLICIES if get_policy(name)]
    code = (
        "import resource\n"
        "from penstock.sim import simulate\n"
        "from penstock.workloads import get_workload\n"
        "instance = get_workload('synthetic').instance(1, 0)\n"
        f"for policy in {names!r}: simulate(instance, policy)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return int(done.stdout) / 1024


def main() -> int:
    """Run every section; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    arguments = parser.parse_args()
    ledger = Ledger()
    sections: list[Callable[[Ledger, int], None]] = [
        against_baselines,
        growth,
        best_next_event,
        plain_policy,
        commands,
    ]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {sys.version.split()[0]}"
    )
    for section in sections:
        section(ledger, arguments.rounds)
    print("\nresults agree" if not ledger.failures else "")
    for failure in ledger.failures:
        print(f"DISAGREEMENT {failure}")
    if arguments.json:
        document = {"figures": ledger.figures, "ns_per_event": ledger.least}
        Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if ledger.failures else 0


if __name__ == "__main__":
    sys.exit(main())
