# SPDX-License-Identifier: MIT
"""The frontier at the horizon of the paper: the synthetic workload over 2,000,000 s.

The study of the frontier has a fifth of this horizon, so that it can run all policies
on many points. Here a few policies run on a few instances at the full horizon.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from penstock.experiments.claims import Tables, Verdict, over, policy_mean
from penstock.experiments.output.charts import grouped_boxes
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study, sweep
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import GREEDY_YIELD, LOOK_AHEAD
from penstock.policies import RECOMMENDED

__all__ = ["horizon"]

_PRESSURES: Final = (0.5, 0.8, 1.0, 1.1)
_POLICIES: Final = (GREEDY_YIELD, LOOK_AHEAD, "earliest-deadline", RECOMMENDED)
_HORIZON_S: Final = {Scale.SMOKE: 200_000.0, Scale.PAPER: 2_000_000.0}
_INSTANCES: Final = {Scale.SMOKE: 4, Scale.PAPER: 20}
_SEED: Final = {Scale.SMOKE: 101, Scale.PAPER: 2001}


def _study(scale: Scale) -> Study:
    points = sweep(
        "synthetic", {"horizon": _HORIZON_S[scale]}, {"pressure": _PRESSURES}
    )
    instances, seed = _INSTANCES[scale], _SEED[scale]
    name = "frontier-horizon"
    return Study(name, points, instances, _POLICIES, bounded=True, seed=seed)


def _summary(tables: Tables) -> pl.DataFrame:
    """Return a row per W and policy: the means of the objectives and of the bound."""
    means = [pl.col(name).mean() for name in ("min_yield", "efficiency", "bound")]
    return (
        tables.rows.group_by("aimed_pressure", "policy", maintain_order=True)
        .agg(pl.len().alias("instances"), *means)
        .sort("aimed_pressure", maintain_order=True)
    )


horizon = figure(
    "frontier-horizon",
    study=_study,
    draw=lambda t: grouped_boxes(t.rows, "aimed_pressure", ("min_yield", "efficiency")),
    summary=_summary,
)


@horizon.claim(
    f"At the horizon of the paper {RECOMMENDED} has at least the MinYield of "
    "greedy-yield and look-ahead-greedy-yield and at least the Efficiency of "
    "look-ahead-greedy-yield, in the mean.",
    reason="At W = 1.1, above saturation, greedy-yield has a higher MinYield and a "
    "lower Efficiency.",
)
def _default_ahead_at_full_horizon(tables: Tables) -> Verdict:
    """Compare the means at every W."""
    verdicts = {}
    for pressure in _PRESSURES:
        least, efficiency = (
            {
                policy: policy_mean(
                    tables.rows, metric, policy, aimed_pressure=pressure
                )
                for policy in _POLICIES
            }
            for metric in ("min_yield", "efficiency")
        )
        best = max(least[GREEDY_YIELD], least[LOOK_AHEAD])
        gains = {
            "MinYield gain": least[RECOMMENDED] - best,
            "Efficiency gain": efficiency[RECOMMENDED] - efficiency[LOOK_AHEAD],
        }
        verdicts[pressure] = Verdict(min(gains.values()) >= 0.0, gains)
    return over("W", verdicts)
