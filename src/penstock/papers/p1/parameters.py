# SPDX-License-Identifier: MIT
"""Bandwidth sharing, section 6.2.2: the impact of n_small, sigma and noise.

One parameter varies at a time, around the defaults of the paper, at I/O pressure 0.8.
"""

from __future__ import annotations

from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict, case
from penstock.experiments.output.charts import parameter_boxes
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Point, Study, sweep
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.papers.p1.synthetic import HORIZON_S, INSTANCES

__all__ = ["parameters"]

_VALUES: Final[dict[str, tuple[float, ...]]] = {
    "n_small": (0, 10, 20, 30, 40),
    "sigma": (0.1, 0.25, 0.5, 0.75, 1.0),
    "noise": (0.0, 0.25, 0.5, 0.75, 1.0),
}


def _study(scale: Scale) -> Study:
    fixed = {"horizon": HORIZON_S[scale], "pressure": 0.8}
    points: list[Point] = []
    for name, values in _VALUES.items():
        points.extend(sweep("synthetic", fixed, {name: values}))
    return Study("p1-parameters", tuple(points), INSTANCES[scale], ALL_POLICIES)


def _draw(tables: Tables) -> Figure:
    """Draw MinYield and Efficiency against each of the parameters."""
    rows_of = {name: tables.rows.filter(pl.col(name).is_not_null()) for name in _VALUES}
    return parameter_boxes(rows_of, ("min_yield", "efficiency"))


parameters = figure("p1-params", study=_study, draw=_draw)


def _impact(tables: Tables, parameter: str) -> dict[str, float]:
    """Return MinYield at the largest value of a parameter minus at the smallest."""
    rows = tables.rows.filter(pl.col(parameter).is_not_null())
    impact = {}
    for policy in ALL_POLICIES:
        means = (
            rows.filter(pl.col("policy") == policy)
            .group_by(parameter)
            .agg(pl.col("min_yield").mean())
            .sort(parameter)["min_yield"]
            .to_numpy()
        )
        impact[policy] = float(means[-1] - means[0])
    return impact


@parameters.claim_cases(
    case(
        "n-small-no-impact",
        "n_small does not change MinYield (by more than 0.05 over its range).",
        parameter="n_small",
    ),
    case(
        "noise-no-impact",
        "noise does not change MinYield (by more than 0.05 over its range).",
        parameter="noise",
    ),
)
def _no_impact(tables: Tables, parameter: str) -> Verdict:
    """Compare MinYield at both ends of the range, for every policy."""
    impact = _impact(tables, parameter)
    return Verdict(max(abs(v) for v in impact.values()) <= 0.05, impact)


@parameters.claim(
    "High values of sigma change the MinYield of fcfs and set-10 only, and lower it "
    "(others within 0.05)."
)
def _sigma_hurts_fcfs_and_set10(tables: Tables) -> Verdict:
    """Compare MinYield at both ends of the range of sigma, for every policy."""
    impact = _impact(tables, "sigma")
    hurt = {"fcfs", "set-10"}
    small = max(abs(v) for policy, v in impact.items() if policy not in hurt)
    return Verdict(max(impact[p] for p in hurt) < 0 and small <= 0.05, impact)
