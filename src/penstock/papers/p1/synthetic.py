# SPDX-License-Identifier: MIT
"""The study behind Figures 2 to 4 of bandwidth sharing (section 6.2.2).

All policies run on the same instances of the synthetic workload, at six values of the
aimed I/O pressure W. `pressure` and `ranks` draw their figures from it, and
`parameters` takes the default values of its parameters from it.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl

from penstock.experiments.claims import NoRowsError
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study, sweep
from penstock.papers.p1.policies import ALL_POLICIES

__all__ = [
    "HORIZON_S",
    "INSTANCES",
    "OBJECTIVES",
    "PRESSURES",
    "means_by",
    "pressure_study",
]

OBJECTIVES: Final = ("min_yield", "efficiency", "utilization")

PRESSURES: Final = (0.2, 0.5, 0.8, 0.9, 1.0, 1.1)
INSTANCES: Final = {Scale.SMOKE: 5, Scale.PAPER: 200}
HORIZON_S: Final = {Scale.SMOKE: 200_000.0, Scale.PAPER: 2_000_000.0}


def pressure_study(scale: Scale) -> Study:
    """Return the study: every pressure, the yields of all applications kept."""
    fixed = {"horizon": HORIZON_S[scale]}
    points = sweep("synthetic", fixed, {"pressure": PRESSURES})
    return Study("p1-synthetic", points, INSTANCES[scale], ALL_POLICIES, yields=True)


def means_by(rows: pl.DataFrame, column: str, metric: str) -> dict[Any, Any]:
    """Return the mean of `metric`: value of `column` -> policy -> mean.

    The values are sorted. All policies of the paper are there.

    Raises
    ------
    NoRowsError
        If a policy has no rows at a value: a claim about them does not hold.
    """
    grouped = rows.group_by(column, "policy").agg(pl.col(metric).mean())
    means: dict[Any, Any] = {}
    for value, policy, mean in grouped.sort(column).iter_rows():
        means.setdefault(value, {})[policy] = mean
    for of_policy in means.values():
        if any(of_policy.get(policy) is None for policy in ALL_POLICIES):
            raise NoRowsError
    if not means:
        raise NoRowsError
    return means
