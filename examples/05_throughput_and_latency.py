# SPDX-License-Identifier: MIT
"""Keep the response times of one application low beside another one that floods.

Each application has a service-level objective (SLO): while it issues at most so many
bytes per second, 95 of 100 of its requests are answered within so many seconds. A
scheduler decides which request goes next and how many are at the storage at once.
"""

import numpy as np

from penstock.qos import Slo, unmet
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import simulate_requests
from penstock.workloads.clients import saturating, steady

MB = 1e6
SECONDS = 60.0
CAPACITY = 50 * MB

slos = {"viewer": Slo(15 * MB, 0.100), "bulk": Slo(25 * MB, 2.0)}
print("can be met:", unmet(slos, CAPACITY) is None)

print(f"\n{'scheduler':11}{'viewer: p95':>12}{'in time':>9}{'bulk gets':>14}")
for scheduler in ("fifo", "sfq", "edf", "two-level"):
    run = simulate_requests(
        scheduler,
        slos,
        [steady("viewer", 12 * MB, SECONDS, processes=8), saturating("bulk", SECONDS)],
        [ServerSpec(CAPACITY)],
        until=SECONDS,
    )
    viewer, bulk = run.requests_of("viewer"), run.requests_of("bulk")
    times = (run.answered_s - run.issued_s)[viewer]
    in_time = np.mean(times <= slos["viewer"].latency_s)
    served = run.size_bytes[bulk].sum() / SECONDS / MB
    print(
        f"{scheduler:11}{np.percentile(times, 95) * 1000:9.0f} ms"
        f"{in_time:9.0%}{served:9.1f} MB/s"
    )
