# SPDX-License-Identifier: MIT
"""Decide how many and which storage targets each application gets.

More targets are not always faster: every application has a profile b(n), its bandwidth
alone on n targets. An allocation chooses the numbers n, a placement chooses the
targets, and the simulation tells what sharing them costs. Read as: time in I/O is
`slowdown` times what the application needs alone on its best number of targets.
"""

from pathlib import Path

from penstock.analysis.placement import measure_placement
from penstock.model import read_problem
from penstock.placement import get_allocation, get_placement
from penstock.sim import simulate

problem = read_problem(Path(__file__).with_name("problem.json"))
print(f"{len(problem.applications)} applications, {problem.resources} targets\n")

for name in ("best-bandwidth", "n-sys", "t-cpu"):
    allocation = get_allocation(name).allocate(problem)
    placement = get_placement("greedy-non-clairvoyant").place(problem, allocation)
    run = simulate(problem.instance(placement), "fair-share", until_first_end=True)
    result = measure_placement(problem, run)
    print(
        f"{name:15} targets {list(allocation)}"
        f"  mean I/O slowdown {result.mean_io_slowdown:.2f}"
        f" = {result.rho_io:.2f} (their number) + {result.rho_con:.2f} (waiting)"
    )

print("\nt-cpu puts:")
for application, targets in zip(problem.applications, placement, strict=True):
    print(f"  {application.name:13} on {', '.join(map(str, targets))}")
