# SPDX-License-Identifier: MIT
"""Speed of the request schedulers: decisions per second.

``python benchmarks/qos.py [--json FILE] [--rounds N]``: requests of 16 applications
arrive, are sent and complete, with 64 under way. One decision is one request that has
arrived, was sent and has completed. A compiled loop calls the machine code of the
schedulers through function pointers, as the data path of a mount does. The baseline is
the template (`penstock.qos._template`), a scheduler in plain Python. Each measurement
is the fastest of several interleaved rounds, in processor time. The exit status is 1 if
a scheduler decides on fewer than 1,000,000 requests per second.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

from penstock.kernels.compiler import machine_code
from penstock.qos import SCHEDULERS, QosScheduler, Request, Slo, get_scheduler, state
from penstock.qos.scheduler import KernelScheduler

APPLICATIONS = tuple(f"application{k}" for k in range(16))
SLOS = {name: Slo(5e7 * (k + 1), 0.05 * (k + 1)) for k, name in enumerate(APPLICATIONS)}
UNDER_WAY = 64
COMPILED_REQUESTS = 400_000
PLAIN_REQUESTS = 20_000
#: Time between two requests (s), as on a storage of 10 GB/s.
GAP_S = 1e-4
MIN_DECISIONS_PER_S = 1e6
PLAIN = "penstock.qos._template"


def drive_python(scheduler: QosScheduler) -> float:
    """Return the decisions per second of a scheduler that Python calls."""
    requests = [
        Request("write", 1_000_000 >> k % 9, APPLICATIONS[k * 5 % 16])
        for k in range(PLAIN_REQUESTS)
    ]
    sent: deque[Request] = deque()
    now = 0.0
    begin_s = time.process_time()
    for number, request in enumerate(requests):
        now += GAP_S
        scheduler.arrive(request, now)
        sent.extend(scheduler.dispatch(now))
        if number >= UNDER_WAY and sent:
            done = sent.popleft()
            scheduler.complete(done, done.size_bytes, now)
            sent.extend(scheduler.dispatch(now))
    return PLAIN_REQUESTS / (time.process_time() - begin_s)


def compiled_loop(scheduler: KernelScheduler) -> Any:
    """Return a compiled loop that calls the scheduler through function pointers."""
    kernels = (*scheduler.kernels[:3], state.wake_s)
    arrive, next_request, complete, wake_s = (machine_code(k).call for k in kernels)

    @njit
    def loop(table: int, requests: int, ring: Any) -> int:
        now, put, taken, overdue = 0.0, 0, 0, 0
        for k in range(requests):
            now += GAP_S
            size = 1_000_000 >> k % 9
            arrive(table, k * 5 % 16, 1, size, now)
            slot = next_request(table, now)
            while slot >= 0:
                ring[put % len(ring)] = slot
                put += 1
                slot = next_request(table, now)
            overdue += wake_s(table) < now
            if k >= UNDER_WAY and taken < put:
                complete(table, ring[taken % len(ring)], size, now)
                taken += 1
                slot = next_request(table, now)
                while slot >= 0:
                    ring[put % len(ring)] = slot
                    put += 1
                    slot = next_request(table, now)
        return put - overdue

    return loop


def drive_compiled(name: str) -> float:
    """Return the decisions per second through function pointers."""
    scheduler = get_scheduler(name).make(SLOS, 0.0)
    if not isinstance(scheduler, KernelScheduler):
        raise SystemExit(f"{name} is not written as kernels")
    loop = compiled_loop(scheduler)
    table = scheduler.pointers().state
    ring = np.zeros(8192, np.int64)
    loop(table, 0, ring)
    begin_s = time.process_time()
    sent = loop(table, COMPILED_REQUESTS, ring)
    seconds = time.process_time() - begin_s
    if scheduler.refused or sent < COMPILED_REQUESTS - UNDER_WAY:
        raise SystemExit(f"{name} has sent only {sent} requests")
    return COMPILED_REQUESTS / seconds


def main() -> int:
    """Measure all schedulers; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds")
    parser.add_argument("--json", metavar="FILE", help="write the measurements as JSON")
    arguments = parser.parse_args()
    best = dict.fromkeys((PLAIN, *SCHEDULERS), 0.0)
    for _ in range(arguments.rounds):
        best[PLAIN] = max(
            best[PLAIN], drive_python(get_scheduler(PLAIN).make(SLOS, 0.0))
        )
        for name in SCHEDULERS:
            best[name] = max(best[name], drive_compiled(name))
    results = {}
    for name, rate in best.items():
        ratio = rate / best[PLAIN]
        results[name] = {"decisions_per_s": rate, "times_plain_python": ratio}
        print(f"  {name:22} {rate:12,.0f} decisions/s  {ratio:6.1f} times plain Python")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    slow = [name for name in SCHEDULERS if best[name] < MIN_DECISIONS_PER_S]
    for name in slow:
        print(f"SLOW {name}: fewer than {MIN_DECISIONS_PER_S:,.0f} decisions/s")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
