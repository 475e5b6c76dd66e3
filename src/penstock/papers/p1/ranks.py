# SPDX-License-Identifier: MIT
"""Figures 3 and 4 of bandwidth sharing (section 6.2.2): yields by rank.

The applications of every instance are sorted by the iteration length omega (Figure 3)
or by the I/O fraction phi (Figure 4) with which they were drawn. A curve holds the mean
yield of the application at every rank, over the instances; W is the aimed I/O pressure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import policies_of, rank_lines
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    BEST_NEXT_EVENT,
    FAIR_SHARE,
    GREEDY_COM,
    GREEDY_YIELD,
    LOOK_AHEAD,
    YIELD_BASED,
)
from penstock.papers.p1.synthetic import pressure_study
from penstock.workloads import Synthetic

__all__ = ["fig3", "fig4"]

_PRESSURES: Final = (0.5, 0.8, 1.1)
#: The seed of the study, whose instances are drawn again to rank the applications.
_SEED: Final = 1


def _curves(attribute: str) -> Callable[[Tables], Tables]:
    """Return the function that replaces the rows by curves over ranks."""

    def prepare(tables: Tables) -> Tables:
        parts = [
            curve
            for pressure in _PRESSURES
            for curve in _curves_at(tables.rows, pressure, attribute)
        ]
        return Tables(pl.concat(parts), tables.times)

    return prepare


def _curves_at(
    rows: pl.DataFrame, pressure: float, attribute: str
) -> list[pl.DataFrame]:
    """Return the curve of every policy at one pressure."""
    rows = rows.filter(pl.col("aimed_pressure") == pressure)
    family = Synthetic(pressure=pressure, horizon=float(rows["horizon"][0]))
    orders = {
        index: np.argsort(
            [getattr(c, attribute) for c in family.characters(_SEED, index)]
        )
        for index in rows["instance"].unique().to_list()
    }
    curves = []
    for policy in policies_of(rows):
        of_policy = rows.filter(pl.col("policy") == policy)
        ranked: Any = [
            np.array(yields)[orders[index]]
            for index, yields in of_policy.select("instance", "yields").iter_rows()
        ]
        curves.append(
            pl.DataFrame(
                {
                    "pressure": pressure,
                    "policy": policy,
                    "rank": np.arange(1, len(ranked[0]) + 1),
                    "yield": np.mean(ranked, axis=0),
                }
            )
        )
    return curves


def _draw(label: str) -> Callable[[Tables], Figure]:
    """Return the function that draws one panel per pressure."""

    def draw(tables: Tables) -> Figure:
        policies = policies_of(tables.rows)
        panels = [
            (
                f"W = {pressure:g}",
                {policy: _curve(tables, policy, pressure) for policy in policies},
            )
            for pressure in _PRESSURES
        ]
        return rank_lines(panels, label)

    return draw


def _curve(tables: Tables, policy: str, pressure: float = 1.1) -> Any:
    """Return the mean yields of a policy by rank."""
    rows = tables.rows.filter(
        (pl.col("policy") == policy) & (pl.col("pressure") == pressure)
    )
    return rows.sort("rank")["yield"].to_numpy()


def _correlation(curve: Any) -> float:
    """Return the rank correlation of yield and rank."""
    return float(spearmanr(np.arange(len(curve)), curve).statistic)


def _thirds(curve: Any) -> list[float]:
    """Return the mean yield in the first, second and last third of the ranks."""
    return [float(part.mean()) for part in np.array_split(curve, 3)]


fig3 = figure(
    "p1-fig3",
    study=pressure_study,
    prepare=_curves("omega"),
    draw=_draw("rank of the iteration length ω"),
)


@fig3.claim("The differences between the policies grow with W.")
def _differences_grow(tables: Tables) -> Verdict:
    """Take the range of the policies at a rank, in the mean over the ranks."""
    spread = {}
    for pressure in _PRESSURES:
        curves = np.array([_curve(tables, p, pressure) for p in ALL_POLICIES])
        spread[f"W={pressure:g}"] = float(np.ptp(curves, axis=0).mean())
    values = list(spread.values())
    return Verdict(values == sorted(values), spread)


@fig3.claim(
    "At W = 1.1, omega has little impact on the yields of fair-share and of the "
    "yield-based policies (thirds within 0.05)."
)
def _omega_matters_little(tables: Tables) -> Verdict:
    """Compare the means of the three thirds of the ranks."""
    spread = {}
    for policy in (*YIELD_BASED, FAIR_SHARE):
        thirds = _thirds(_curve(tables, policy))
        spread[policy] = max(thirds) - min(thirds)
    return Verdict(max(spread.values()) <= 0.05, spread)


@fig3.claim("With fcfs the yield increases with omega (rank correlation above 0.8).")
def _fcfs_favours_long(tables: Tables) -> Verdict:
    """Correlate yield and rank at W = 1.1."""
    value = _correlation(_curve(tables, "fcfs"))
    return Verdict(value > 0.8, {"rank correlation": value})


@fig3.claim(
    "With greedy-com the yield decreases with omega (rank correlation below -0.8)."
)
def _greedy_com_favours_short(tables: Tables) -> Verdict:
    """Correlate yield and rank at W = 1.1."""
    value = _correlation(_curve(tables, GREEDY_COM))
    return Verdict(value < -0.8, {"rank correlation": value})


@fig3.claim(
    "With set-10 the yields form three falling steps, one per priority, and inside "
    "each step the yield increases with omega."
)
def _set10_steps(tables: Tables) -> Verdict:
    """Compare the thirds of the ranks, and correlate yield and rank inside each."""
    curve = _curve(tables, "set-10")
    thirds = _thirds(curve)
    inside = [_correlation(part) for part in np.array_split(curve, 3)]
    numbers = {f"third {n + 1}": v for n, v in enumerate(thirds)}
    numbers |= {f"correlation in third {n + 1}": v for n, v in enumerate(inside)}
    steps = thirds == sorted(thirds, reverse=True)
    return Verdict(steps and min(inside) > 0, numbers)


fig4 = figure(
    "p1-fig4",
    study=pressure_study,
    prepare=_curves("fraction"),
    draw=_draw("rank of the I/O fraction φ"),
)


@fig4.claim(
    "look-ahead-greedy-yield differs from greedy-yield for small phi (more than for "
    "large phi)."
)
def _look_ahead_differs_for_small(tables: Tables) -> Verdict:
    """Compare the mean difference in the first and the last third of the ranks."""
    gap = _curve(tables, LOOK_AHEAD) - _curve(tables, GREEDY_YIELD)
    small, _, large = _thirds(np.abs(gap))
    return Verdict(small > large, {"small phi": small, "large phi": large})


@fig4.claim("best-next-event favours applications with little I/O.")
def _best_next_event_favours_small(tables: Tables) -> Verdict:
    """Compare the first and the last third of the ranks."""
    thirds = _thirds(_curve(tables, BEST_NEXT_EVENT))
    numbers = {f"third {n + 1}": v for n, v in enumerate(thirds)}
    return Verdict(thirds[0] > thirds[2], numbers)


@fig4.claim(
    "With fair-share the yield falls strongly and linearly with phi (rank correlation "
    "below -0.95)."
)
def _fair_share_falls(tables: Tables) -> Verdict:
    """Correlate yield and rank at W = 1.1; the linear correlation is shown as well."""
    values = {policy: _correlation(_curve(tables, policy)) for policy in ALL_POLICIES}
    curve = _curve(tables, FAIR_SHARE)
    ranks = np.arange(len(curve))
    values["linearity (r)"] = float(np.corrcoef(ranks, curve)[0, 1])
    return Verdict(values[FAIR_SHARE] < -0.95, values)


@fig4.claim("With no other policy the yield falls as strongly with phi.")
def _only_fair_share(tables: Tables) -> Verdict:
    """Compare the rank correlations of yield and phi."""
    values = {policy: _correlation(_curve(tables, policy)) for policy in ALL_POLICIES}
    others = [v for policy, v in values.items() if policy != FAIR_SHARE]
    return Verdict(min(others) > values[FAIR_SHARE], values)
