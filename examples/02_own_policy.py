# SPDX-License-Identifier: MIT
"""Write a policy: serve the application that has the most nodes waiting.

A policy is one function. It is shown the applications that are in I/O now and sets the
rate of each. It may not remember anything, read a clock or draw random numbers: the
same view must give the same rates. That is why the live controller can run it
unchanged.
"""

from math import inf

from penstock.analysis import measure
from penstock.kernels import Floats, kernel
from penstock.policies.policy import bind
from penstock.policies.serving import serve_lowest_first
from penstock.policies.view import View
from penstock.sim import simulate
from penstock.workloads import get_workload


@kernel  # compiled; without this line it is plain Python, and slower
def most_nodes_first(view: View, rates: Floats) -> float:
    """Serve by decreasing number of nodes; return when to be asked again (s)."""
    rank = view.key  # working memory, one number per application
    for position in range(view.n_active):
        i = view.active[position]
        rank[i] = -view.nodes[i]
    serve_lowest_first(view, rank, rates)  # sets the rates, within caps and capacity
    return inf  # nothing to do until an operation is posted or completed


workload = get_workload("synthetic", ["horizon=100000", "pressure=0.9"])
instance = workload.instance(seed=1, index=0)
own = bind("most-nodes-first", most_nodes_first, (), {})

print(len(instance.applications), "applications")
for policy in (own, "greedy-yield", "soft-deadline"):
    run = simulate(instance, policy)
    metrics = measure(run)
    print(
        f"{run.policy:18} MinYield {metrics.min_yield:.4f}"
        f"  Efficiency {metrics.efficiency:.4f}"
    )
