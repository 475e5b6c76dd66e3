# SPDX-License-Identifier: MIT
"""A policy of your own on three workloads, and a figure for a paper."""

from math import inf
from typing import Any

import penstock as ps
from penstock.kernels import Floats
from penstock.policies.serving import serve_lowest_first
from penstock.policies.view import View


def fewest_bytes_left(view: View, rates: Floats) -> float:
    """Serve the operation with the fewest bytes left first."""
    for position in range(view.n_active):
        i = view.active[position]
        view.key[i] = view.remaining[i]
    serve_lowest_first(view, view.key, rates)
    return inf


WORKLOADS: dict[str, dict[str, Any]] = {
    "synthetic": {"horizon": 100_000, "applications": 30},
    "io-sets": {"n_high": 10},
    "apex": {"days": 10, "windows": 2},
}

for name, settings in WORKLOADS.items():
    result = ps.compare(
        2,
        ["fair-share", "fcfs", "soft-deadline", fewest_bytes_left],
        workload=name,
        **settings,
    )
    means = result.frame().group_by("policy", maintain_order=True).mean()
    print(f"{name}: no scheduler exceeds a MinYield of {means['bound'][0]:.3f}")
    for policy, value in means.select("policy", "min_yield").iter_rows():
        print(f"  {policy:18} {value:.3f}")
    result.plot(width="single-column").savefig(f"{name}.pdf")
