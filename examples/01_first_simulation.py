# SPDX-License-Identifier: MIT
"""Simulate three applications that share one storage system.

Each application computes, writes, computes, writes ... Alone, `climate` would write at
the full 10 GB/s. Together the three ask for more than that, so somebody must wait. The
policy decides who, and the yields show what it costs: 1 means never delayed, 0.5 means
half as fast as alone.
"""

from penstock.analysis import measure, min_yield_bound
from penstock.model import Application, Instance, Platform, Window
from penstock.sim import simulate

MINUTE, GB = 60.0, 1e9  # times are in seconds, volumes in bytes

platform = Platform(bandwidth=10 * GB, node_bandwidth=1 * GB)
climate = [("work", 7 * MINUTE), ("io", 1200 * GB)] * 8
fusion = [("work", 4 * MINUTE), ("io", 900 * GB)] * 12
genome = [("work", 1 * MINUTE), ("io", 200 * GB)] * 40
instance = Instance(
    platform,
    Window(0.0, 60 * MINUTE),
    (
        Application.from_phases("climate", 64, climate, release=0.0),
        Application.from_phases("fusion", 16, fusion, release=0.0),
        Application.from_phases("genome", 4, genome, release=0.0),
    ),
)

names = [application.name for application in instance.applications]
print(f"{'policy':24}{'MinYield':>9}{'Efficiency':>12}", *(f"{n:>9}" for n in names))
for policy in ("fcfs", "fair-share", "greedy-yield", "soft-deadline"):
    run = simulate(instance, policy)
    metrics = measure(run)
    yields = (f"{value:9.3f}" for value in run.yields)
    print(f"{policy:24}{metrics.min_yield:9.3f}{metrics.efficiency:12.3f}", *yields)

print(f"\nno scheduler exceeds a MinYield of {min_yield_bound(instance).min_yield:.3f}")
