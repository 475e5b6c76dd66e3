# SPDX-License-Identifier: MIT
"""papers/1 section 6.2: Figures 2 to 4, and the impact of the other parameters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables
from penstock.experiments.output.charts import (
    grouped_boxes,
    parameter_boxes,
    policies_of,
    rank_lines,
)
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.study import Point, Study, sweep
from penstock.papers.p1 import synthetic_claims as claims
from penstock.papers.p1.policies_of_paper import EIGHT
from penstock.workloads import Synthetic

__all__ = ["FIGURES"]

_OBJECTIVES: Final = ("min_yield", "efficiency", "utilization")
_PRESSURES: Final = (0.2, 0.5, 0.8, 0.9, 1.0, 1.1)
_SHOWN_PRESSURES: Final = (0.5, 0.8, 1.1)
#: Values of the other parameters, around the default of the paper.
_OTHER_PARAMETERS: Final[dict[str, tuple[float, ...]]] = {
    "n_small": (0, 10, 20, 30, 40),
    "sigma": (0.1, 0.25, 0.5, 0.75, 1.0),
    "noise": (0.0, 0.25, 0.5, 0.75, 1.0),
}
_INSTANCES: Final = {Scale.SMOKE: 5, Scale.PAPER: 200}
_HORIZON_S: Final = {Scale.SMOKE: 200_000.0, Scale.PAPER: 2_000_000.0}


def _pressure_study(scale: Scale) -> Study:
    fixed = {"horizon": _HORIZON_S[scale]}
    points = sweep("synthetic", fixed, {"pressure": _PRESSURES})
    return Study("p1-synthetic", points, _INSTANCES[scale], EIGHT, yields=True)


def _parameter_study(scale: Scale) -> Study:
    fixed = {"horizon": _HORIZON_S[scale], "pressure": 0.8}
    points: list[Point] = []
    for name, values in _OTHER_PARAMETERS.items():
        points.extend(sweep("synthetic", fixed, {name: values}))
    return Study("p1-parameters", tuple(points), _INSTANCES[scale], EIGHT)


def _aimed(tables: Tables) -> Tables:
    """Return the rows with the aimed pressure in place of the one that came out."""
    rows = tables.rows.with_columns(pl.col("aimed_pressure").alias("pressure"))
    return Tables(rows.drop("aimed_pressure"), tables.times)


def _draw_pressures(tables: Tables) -> Figure:
    return grouped_boxes(_aimed(tables).rows, "pressure", _OBJECTIVES)


def _draw_by_rank(tables: Tables, attribute: str, label: str) -> Figure:
    curves = _curves(tables, attribute)
    panels = [
        (
            f"W = {pressure:g}",
            {
                policy: curves.filter(
                    (pl.col("pressure") == pressure) & (pl.col("policy") == policy)
                )["yield"].to_numpy()
                for policy in policies_of(curves)
            },
        )
        for pressure in _SHOWN_PRESSURES
    ]
    return rank_lines(panels, label)


def _curves(tables: Tables, attribute: str) -> pl.DataFrame:
    """Return the mean yield of the application at every rank of `attribute`.

    Applications of every instance are sorted by the omega or the phi with which
    they were drawn.
    """
    parts = []
    for pressure in _SHOWN_PRESSURES:
        rows = tables.rows.filter(pl.col("aimed_pressure") == pressure)
        family = Synthetic(pressure=pressure, horizon=float(rows["horizon"][0]))
        orders = {
            index: np.argsort(
                [getattr(c, attribute) for c in family.characters(1, index)]
            )
            for index in rows["instance"].unique().to_list()
        }
        for policy in policies_of(rows):
            mine = rows.filter(pl.col("policy") == policy)
            ranked: Any = [
                np.array(yields)[orders[index]]
                for index, yields in zip(mine["instance"], mine["yields"], strict=True)
            ]
            parts.append(
                pl.DataFrame(
                    {
                        "pressure": pressure,
                        "policy": policy,
                        "rank": np.arange(1, len(ranked[0]) + 1),
                        "yield": np.mean(ranked, axis=0),
                    }
                )
            )
    return pl.concat(parts)


def _draw_parameters(tables: Tables) -> Figure:
    """Draw MinYield and Efficiency against each of the other parameters."""
    chosen = {
        name: tables.rows.filter(pl.col(name).is_not_null())
        for name in _OTHER_PARAMETERS
    }
    return parameter_boxes(chosen, ("min_yield", "efficiency"))


def _by_omega(tables: Tables) -> pl.DataFrame:
    return _curves(tables, "omega")


def _by_fraction(tables: Tables) -> pl.DataFrame:
    return _curves(tables, "fraction")


FIGURES: Final = {
    "p1-fig2": Reproduction(
        name="p1-fig2",
        title="Impact of the aimed I/O pressure",
        source="papers/1 section 6.2.2, Figure 2",
        study=_pressure_study,
        draw=_draw_pressures,
        claims=list(claims.on_aimed(claims.PRESSURE, _aimed)),
        summary=lambda tables: _aimed(tables).rows.drop("yields"),
    ),
    "p1-fig3": Reproduction(
        name="p1-fig3",
        title="Yields by iteration length",
        source="papers/1 section 6.2.2, Figure 3",
        study=_pressure_study,
        draw=lambda t: _draw_by_rank(t, "omega", "rank of the iteration length ω"),
        claims=list(claims.on_curves(claims.OMEGA, _by_omega)),
        summary=_by_omega,
    ),
    "p1-fig4": Reproduction(
        name="p1-fig4",
        title="Yields by I/O fraction",
        source="papers/1 section 6.2.2, Figure 4",
        study=_pressure_study,
        draw=lambda t: _draw_by_rank(t, "fraction", "rank of the I/O fraction φ"),
        claims=list(claims.on_curves(claims.FRACTION, _by_fraction)),
        summary=_by_fraction,
    ),
    "p1-params": Reproduction(
        name="p1-params",
        title="Impact of n_small, sigma and noise at I/O pressure 0.8",
        source="papers/1 section 6.2.2, impact of the other parameters",
        study=_parameter_study,
        draw=_draw_parameters,
        claims=list(claims.PARAMETERS),
    ),
}
