# SPDX-License-Identifier: MIT
"""Rows of the frontier made by hand: equal policies, with given gains."""

from __future__ import annotations

import polars as pl

from penstock.papers.p1.policies import ALL_POLICIES, LOOK_AHEAD
from penstock.policies import RECOMMENDED

__all__ = ["AHEAD", "WORSE", "point_rows"]

#: The loss of a policy that is behind.
WORSE = -0.05
#: Gains in MinYield and Efficiency: the default is ahead of all others.
AHEAD = {
    "greedy-yield": (0.01, 0.0),
    LOOK_AHEAD: (0.0, 0.01),
    RECOMMENDED: (0.04, 0.03),
}


def point_rows(
    gains: dict[str, tuple[float, float]],
    *,
    group: str = "pressure",
    label: str = "W=0.8",
    point: int = 0,
    spread: float = 0.01,
    windows: int = 1,
) -> pl.DataFrame:
    """Return the rows of a point where all policies are alike, but for some gains.

    Gains are in MinYield and in Efficiency. Instances differ by `spread`, gains do not.
    The bound is 0.1 above the others. A schedule has so many `windows`.
    """
    rows = []
    for policy in (*ALL_POLICIES, RECOMMENDED):
        gain, efficiency = gains.get(policy, (0.0, 0.0))
        for instance in range(6):
            base = 0.8 + spread * instance
            rows.append(
                {
                    "point": point,
                    "group": group,
                    "label": label,
                    "instance": instance,
                    "windows": windows,
                    "policy": policy,
                    "min_yield": base + gain,
                    "efficiency": base + efficiency,
                    "utilization": base + efficiency,
                    "bound": base + 0.1,
                }
            )
    return pl.DataFrame(rows)
