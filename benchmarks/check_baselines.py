# SPDX-License-Identifier: MIT
"""Check the two baselines against each other, and say how fast they are.

Run as ``PYTHONPATH=src python benchmarks/check_baselines.py``. Exits with status 1
if the yields of SimPy and SimGrid differ by more than 1e-6 on a short window.
(FairShare is chaotic: on a long window programs that round differently diverge.)
"""

from __future__ import annotations

import sys
import time
from math import inf
from typing import Final

import baseline_simgrid
import baseline_simpy

from penstock.model import Instance
from penstock.workloads import get_workload

_AGREEMENT: Final = 1e-6
_CHECKED: Final = ("fair-share", "fcfs")
_ROUNDS: Final = 7


def _instance(horizon: int) -> Instance:
    settings = ["W=0.8", f"horizon={horizon}"]
    return get_workload("synthetic", settings).instance(1, 0)


def check(instance: Instance, policy: str) -> bool:
    """Print how far the yields are apart; return whether that is near enough."""
    yields, events = baseline_simpy.simulate(instance, policy)
    other = baseline_simgrid.simulate(instance, policy)
    if other is None:
        return True
    apart = max(abs(a - b) for a, b in zip(yields, other.yields, strict=True))
    good = apart <= _AGREEMENT and events == other.events
    print(
        f"{policy:<13} {'agree' if good else 'DIFFER':<7} yields within {apart:.1e}, "
        f"events {events} and {other.events}"
    )
    return good


def measure(instance: Instance) -> None:
    """Print events and time per event, the best of some rounds over all policies."""
    seconds: dict[tuple[str, str], float] = {}
    events: dict[tuple[str, str], int] = {}
    for _ in range(_ROUNDS):
        for policy in baseline_simpy.POLICIES:
            begin = time.perf_counter()
            count = baseline_simpy.simulate(instance, policy)[1]
            elapsed = time.perf_counter() - begin
            one = (policy, "SimPy")
            events[one] = count
            seconds[one] = min(seconds.get(one, inf), elapsed)
            run = baseline_simgrid.simulate(instance, policy)
            if run is not None:
                other = (policy, "SimGrid")
                events[other] = run.events
                seconds[other] = min(seconds.get(other, inf), run.seconds)
    for (policy, program), count in events.items():
        each = 1e9 * seconds[policy, program] / count
        print(f"{policy:<13} {program:<7} {count:>7} events {each:>7.0f} ns each")


def main() -> int:
    """Check on a short horizon, measure on a longer one."""
    short = _instance(20_000)
    agreed = [check(short, policy) for policy in _CHECKED]
    measure(_instance(400_000))
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
