# SPDX-License-Identifier: MIT
"""Sentences of bandwidth sharing, section 6.2.2, about the synthetic workload.

The first tests check sentences of the paper on a shorter horizon. The last one, marked
slow, compares with the published means of the authors at full size.

Means are over instances that all policies share. The instances are always the same (one
seed), so that a test either always passes or always fails.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from penstock.analysis.metrics import measure
from penstock.sim import simulate
from penstock.workloads import Synthetic

SEED = 2024

CLASSICAL = ("fair-share", "fcfs", "set-10", "greedy-com")
YIELD_BASED = (
    "greedy-yield",
    "periodic-greedy-yield",
    "look-ahead-greedy-yield",
    "best-next-event",
)
POLICIES = (*CLASSICAL, *YIELD_BASED)
PRESSURES = (0.5, 0.8, 1.1)
HIGH_PRESSURES = (0.8, 1.1)
OBJECTIVES = ("min_yield", "efficiency", "utilization")


@cache
def sample(policy: str, pressure: float, horizon: float, count: int) -> np.ndarray:
    """Return the objectives (columns) of `policy` on `count` instances (rows)."""
    workload = Synthetic(pressure=pressure, horizon=horizon)
    rows = []
    for index in range(count):
        metrics = measure(simulate(workload.instance(SEED, index), policy))
        rows.append([getattr(metrics, objective) for objective in OBJECTIVES])
    return np.array(rows)


def means(objective: str, pressure: float) -> dict[str, float]:
    """Return the mean of `objective` for all policies, on the shorter horizon."""
    column = OBJECTIVES.index(objective)
    return {
        policy: float(sample(policy, pressure, 200_000.0, 10)[:, column].mean())
        for policy in POLICIES
    }


@pytest.mark.parametrize("pressure", HIGH_PRESSURES)
def test_classical_policies_fall_behind_in_min_yield(pressure: float) -> None:
    """Fair-share, fcfs, set-10 and greedy-com fail to keep the minimum yield high."""
    mean_of = means("min_yield", pressure)
    best_classical = max(mean_of[policy] for policy in CLASSICAL)
    worst_yield_based = min(mean_of[policy] for policy in YIELD_BASED)
    # The gap widens with the pressure: 0.02 at 0.8, 0.05 at 1.1 on these instances.
    assert worst_yield_based > best_classical + 0.01


@pytest.mark.parametrize("pressure", PRESSURES)
def test_yield_based_policies_are_alike_in_min_yield(pressure: float) -> None:
    """All policies that decide by the yield keep a very similar minimum yield."""
    mean_of = means("min_yield", pressure)
    values = [mean_of[policy] for policy in YIELD_BASED]
    assert max(values) - min(values) < 0.02


@pytest.mark.parametrize("pressure", PRESSURES)
def test_best_next_event_is_not_worth_its_cost(pressure: float) -> None:
    """The simple yield-based policies have at least its MinYield (to 0.002)."""
    mean_of = means("min_yield", pressure)
    for policy in YIELD_BASED[:-1]:
        assert mean_of[policy] >= mean_of["best-next-event"] - 0.002


@pytest.mark.parametrize("policy", POLICIES)
def test_min_yield_degrades_with_the_pressure(policy: str) -> None:
    """The higher the I/O pressure, the lower MinYield."""
    values = [means("min_yield", pressure)[policy] for pressure in PRESSURES]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_fcfs_is_the_worst(objective: str, pressure: float) -> None:
    """First come, first served loses in every objective."""
    mean_of = means(objective, pressure)
    assert min(mean_of, key=lambda policy: mean_of[policy]) == "fcfs"


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("objective", ["efficiency", "utilization"])
def test_greedy_com_is_the_best_for_the_platform(
    objective: str, pressure: float
) -> None:
    """Short operations first is best in efficiency and utilization."""
    mean_of = means(objective, pressure)
    assert max(mean_of, key=lambda policy: mean_of[policy]) == "greedy-com"


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("objective", ["efficiency", "utilization"])
def test_look_ahead_serves_the_platform_better(objective: str, pressure: float) -> None:
    """Looking ahead is better than greedy-yield, and even than fair-share."""
    mean_of = means(objective, pressure)
    assert mean_of["look-ahead-greedy-yield"] > mean_of["greedy-yield"]
    # The paper makes an exception for the highest pressure.
    if pressure < max(PRESSURES):
        assert mean_of["look-ahead-greedy-yield"] > mean_of["fair-share"]


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("objective", ["efficiency", "utilization"])
@pytest.mark.parametrize("policy", YIELD_BASED)
def test_fairness_costs_the_platform_little(
    policy: str, objective: str, pressure: float
) -> None:
    """Less than 5 % of efficiency or utilization, against fair-share."""
    mean_of = means(objective, pressure)
    assert mean_of[policy] > 0.95 * mean_of["fair-share"]


# --- The authors' published means ---------------------------------------------

#: Number of instances of the published means, and their rounding.
PUBLISHED_COUNT = 10
PUBLISHED_ROUNDING = 0.0005
#: Means over the authors' instances, m = 60, n_small = 20, sigma = nu = 0.5,
#: h = 2,000,000: MinYield and Efficiency at W = 0.5, then at W = 0.8.
PUBLISHED = {
    "fair-share": ((0.984, 0.993), (0.932, 0.968)),
    "fcfs": ((0.765, 0.949), (0.577, 0.880)),
    "set-10": ((0.986, 0.993), (0.935, 0.976)),
    "greedy-yield": ((0.991, 0.992), (0.965, 0.966)),
    "greedy-com": ((0.986, 0.997), (0.934, 0.988)),
    "look-ahead-greedy-yield": ((0.992, 0.993), (0.965, 0.969)),
    "periodic-greedy-yield": ((0.991, 0.992), (0.964, 0.966)),
    "best-next-event": ((0.990, 0.991), (0.962, 0.967)),
}


@pytest.mark.slow
@pytest.mark.parametrize(("row", "pressure"), [(0, 0.5), (1, 0.8)])
@pytest.mark.parametrize("policy", PUBLISHED)
def test_published_means(policy: str, row: int, pressure: float) -> None:
    """Our means differ from the published ones by no more than chance allows.

    With s the standard deviation of one instance, estimated from our n instances, the
    difference of the means of n and of 10 independent instances has the standard error
    s sqrt(1/n + 1/10). The test allows four standard errors and the rounding of the
    published means: Student's t with 39 degrees of freedom exceeds 4 once in 3,700
    times, and 32 numbers are compared, so that one such table in 100 would fail by
    chance.
    """
    count = 40
    objectives = sample(policy, pressure, 2_000_000.0, count)
    for column, published in enumerate(PUBLISHED[policy][row]):
        values = objectives[:, column]
        error = values.std(ddof=1) * math.sqrt(1 / count + 1 / PUBLISHED_COUNT)
        off = abs(values.mean() - published)
        print(
            f"{policy:24} W={pressure} {OBJECTIVES[column]:10} published "
            f"{published:.3f} ours {values.mean():.4f} standard error {error:.4f}"
        )
        assert off <= 4 * error + PUBLISHED_ROUNDING
