# SPDX-License-Identifier: MIT
"""Bandwidth sharing, section 6.2.2: the impact of n_small, sigma and noise.

One parameter varies at a time, around the defaults of the paper, at I/O pressures 0.8
and 1.1. The defaults are points of Figures 2 to 4: their rows come from that study.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import NoRowsError, Tables, Verdict, case, over
from penstock.experiments.output.charts import LABELS, parameter_boxes
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Point, Study, sweep
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.papers.p1.synthetic import (
    HORIZON_S,
    INSTANCES,
    OBJECTIVES,
    means_by,
    pressure_study,
)

__all__ = ["PRESSURES", "parameters"]

PRESSURES: Final = (0.8, 1.1)
#: Values of every parameter besides its default.
_VALUES: Final[dict[str, tuple[float, ...]]] = {
    "n_small": (0, 10, 30, 40),
    "sigma": (0.1, 0.25, 0.75, 1.0),
    "noise": (0.0, 0.25, 0.75, 1.0),
}
_DEFAULTS: Final[dict[str, float]] = {"n_small": 20, "sigma": 0.5, "noise": 0.5}
#: The lines of panels of the drawing.
_PANELS: Final = tuple(
    (metric, pressure)
    for metric in ("min_yield", "efficiency")
    for pressure in PRESSURES
)
#: Means that differ by more than this over the range of a parameter.
_IMPACT: Final = 0.05


def _studies(scale: Scale) -> tuple[Study, Study]:
    """Return the study of Figures 2 to 4, and that of the other parameters."""
    points: list[Point] = []
    for pressure in PRESSURES:
        fixed = {"horizon": HORIZON_S[scale], "pressure": pressure}
        for name, values in _VALUES.items():
            points.extend(sweep("synthetic", fixed, {name: values}))
    varied = Study("p1-parameters", tuple(points), INSTANCES[scale], ALL_POLICIES)
    return pressure_study(scale), varied


def _with_defaults(tables: Tables) -> Tables:
    """Return a row per parameter for the defaults, and one for the other values.

    The column ``parameter`` names the parameter that a row belongs to, and ``value``
    holds its value.
    """
    rows = tables.rows.filter(pl.col("aimed_pressure").is_in(PRESSURES))
    rows = rows.drop("yields", strict=False)
    of_default = pl.all_horizontal(pl.col(name).is_null() for name in _VALUES)
    defaults = rows.filter(of_default)
    parts = []
    for name, default in _DEFAULTS.items():
        varied = rows.filter(pl.col(name).is_not_null())
        for part in (defaults.with_columns(pl.lit(default).alias(name)), varied):
            named = pl.lit(name).alias("parameter")
            value = pl.col(name).cast(pl.Float64).alias("value")
            parts.append(part.with_columns(named, value).drop(*_VALUES))
    return Tables(pl.concat(parts, how="diagonal_relaxed"), tables.times)


def _draw(tables: Tables) -> Figure:
    """Draw a column per parameter; a line of panels per objective and W."""
    rows_of = {
        name: _side_by_side(tables.rows.filter(pl.col("parameter") == name), name)
        for name in _VALUES
    }
    return parameter_boxes(rows_of, [_panel(*pair) for pair in _PANELS])


def _panel(metric: str, pressure: float) -> str:
    """Return the label of a line of panels."""
    return f"{LABELS[metric]}, W = {pressure:g}"


def _side_by_side(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the rows with a column per objective and W, to draw them as metrics."""
    key = ("value", "instance", "policy")
    parts = [
        rows.filter(pl.col("aimed_pressure") == pressure).select(
            *key, pl.col(metric).alias(_panel(metric, pressure))
        )
        for metric, pressure in _PANELS
    ]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.join(part, on=key, maintain_order="left")
    return joined.rename({"value": name})


parameters = figure("p1-params", study=_studies, prepare=_with_defaults, draw=_draw)


def _impact(
    tables: Tables, parameter: str, pressure: float, metric: str
) -> dict[str, float]:
    """Return the range of the mean of every policy over the values of a parameter.

    It is negative if the mean is lower at the largest value than at the smallest.
    """
    rows = tables.rows.filter(
        (pl.col("parameter") == parameter) & (pl.col("aimed_pressure") == pressure)
    )
    means: dict[Any, Any] = means_by(rows, "value", metric)
    if len(means) < 2:
        raise NoRowsError
    impact = {}
    for policy in ALL_POLICIES:
        values = [of_policy[policy] for of_policy in means.values()]
        sign = -1.0 if values[-1] < values[0] else 1.0
        impact[policy] = sign * float(np.ptp(values))
    return impact


@parameters.claim_cases(
    case(
        "n-small-no-impact",
        "n_small does not impact the performance of the policies (no mean changes by "
        "more than 0.05 over its range).",
        reason="The MinYield of fcfs is lowest where a few short applications wait "
        "behind many long operations (n_small = 10); at W = 1.1 set-10 and greedy-com "
        "lose MinYield as n_small grows; the five others change by 0.02 at most.",
        parameter="n_small",
    ),
    case(
        "noise-no-impact",
        "noise does not impact the performance of the policies (no mean changes by "
        "more than 0.05 over its range).",
        reason="Only greedy-com changes by more than 0.05, at W = 1.1, where its "
        "MinYield also differs most from instance to instance.",
        parameter="noise",
    ),
)
def _no_impact(tables: Tables, parameter: str) -> Verdict:
    """Take the policy with the largest change of each objective, at both W."""
    return over("W", {w: _unchanged(tables, parameter, w) for w in PRESSURES})


def _unchanged(tables: Tables, parameter: str, pressure: float) -> Verdict:
    """Return the verdict at one pressure, with the MinYields that change most."""
    largest = {}
    for metric in OBJECTIVES:
        impact = _impact(tables, parameter, pressure, metric)
        policy = max(impact, key=lambda name: abs(impact[name]))
        largest[f"{LABELS[metric]}, {policy}"] = impact[policy]
    return Verdict(max(map(abs, largest.values())) <= _IMPACT, largest)


@parameters.claim(
    "High values of sigma change the MinYield of fcfs and set-10 only, and lower it "
    "(others within 0.05)."
)
def _sigma_hurts_fcfs_and_set10(tables: Tables) -> Verdict:
    """Compare MinYield over the range of sigma, for every policy, at both W."""
    return over("W", {w: _hurts_fcfs_and_set10(tables, w) for w in PRESSURES})


def _hurts_fcfs_and_set10(tables: Tables, pressure: float) -> Verdict:
    impact = _impact(tables, "sigma", pressure, "min_yield")
    hurt = {policy: impact.pop(policy) for policy in ("fcfs", "set-10")}
    policy = max(impact, key=lambda name: abs(impact[name]))
    alike = abs(impact[policy]) <= _IMPACT
    return Verdict(max(hurt.values()) < 0 and alike, {**hurt, policy: impact[policy]})
