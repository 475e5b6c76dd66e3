# SPDX-License-Identifier: MIT
"""Figures 3 and 4 of bandwidth sharing (section 6.2.2): yields by rank.

The applications of every instance are sorted by the iteration length omega (Figure 3)
or by the I/O fraction phi (Figure 4) with which they were drawn. A row holds the yields
of one instance by rank. A curve is their mean over the instances; W is the aimed I/O
pressure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.stats import rankdata, spearmanr

from penstock.experiments.claims import Tables, Verdict, require_rows
from penstock.experiments.output.charts import policies_of, rank_lines
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    BEST_NEXT_EVENT,
    FAIR_SHARE,
    GREEDY_COM,
    GREEDY_YIELD,
    LOOK_AHEAD,
    PERIODIC,
    YIELD_BASED,
)
from penstock.papers.p1.synthetic import pressure_study
from penstock.workloads import Synthetic

__all__ = ["fig3", "fig4"]

_PRESSURES: Final = (0.5, 0.8, 1.1)
#: A rank correlation above this is strong.
_STRONG: Final = 0.8
#: The seed of the study, whose instances are drawn again to rank the applications.
_SEED: Final = 1


def _ranked(attribute: str) -> Callable[[Tables], Tables]:
    """Return the function that sorts the yields of every instance by `attribute`."""

    def prepare(tables: Tables) -> Tables:
        parts = [_ranked_at(tables.rows, w, attribute) for w in _PRESSURES]
        return Tables(pl.concat(parts), tables.times)

    return prepare


def _ranked_at(rows: pl.DataFrame, pressure: float, attribute: str) -> pl.DataFrame:
    """Return a row per instance and policy: the yields by rank, at one pressure.

    The column ``omega_phi`` is the rank correlation of omega and phi in the instance.
    """
    rows = rows.filter(pl.col("aimed_pressure") == pressure)
    family = Synthetic(pressure=pressure, horizon=float(rows["horizon"][0]))
    orders, related = {}, {}
    for index in rows["instance"].unique().to_list():
        drawn = family.characters(_SEED, index)
        omega, phi = [c.omega for c in drawn], [c.fraction for c in drawn]
        orders[index] = np.argsort([getattr(c, attribute) for c in drawn])
        related[index] = float(spearmanr(omega, phi).statistic)
    return pl.DataFrame(
        [
            {
                "pressure": pressure,
                "policy": policy,
                "instance": index,
                "omega_phi": related[index],
                "yields": np.array(yields)[orders[index]].tolist(),
            }
            for policy, index, yields in rows.select(
                "policy", "instance", "yields"
            ).iter_rows()
        ]
    )


def _summary(tables: Tables) -> pl.DataFrame:
    """Return the curves: a row per pressure, policy and rank."""
    parts = []
    for pressure in _PRESSURES:
        for policy in policies_of(tables.rows):
            curve = _curve(tables, policy, pressure)
            columns = {"pressure": pressure, "policy": policy}
            ranks = np.arange(1, len(curve) + 1)
            parts.append(pl.DataFrame({**columns, "rank": ranks, "yield": curve}))
    return pl.concat(parts)


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
    """Return the mean yields of a policy by rank, over the instances."""
    return _yields(tables, policy, pressure).mean(axis=0)


def _yields(tables: Tables, policy: str, pressure: float = 1.1) -> Any:
    """Return the yields of a policy: a row per instance, a column per rank."""
    rows = tables.rows.filter(
        (pl.col("policy") == policy) & (pl.col("pressure") == pressure)
    )
    require_rows(rows)
    return rows["yields"].explode().to_numpy().reshape(rows.height, -1)


def _correlation(curve: Any) -> float:
    """Return the rank correlation of yield and rank."""
    return float(spearmanr(np.arange(len(curve)), curve).statistic)


def _mean_correlation(tables: Tables, policy: str) -> float:
    """Return the mean over the instances of the rank correlation of yield and rank."""
    ranks = rankdata(_yields(tables, policy), axis=1)
    places = np.arange(ranks.shape[1], dtype=float)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    places -= places.mean()
    scale = np.sqrt((ranks**2).sum(axis=1) * (places**2).sum())
    products = ranks @ places
    return float(
        np.divide(products, scale, out=np.zeros_like(scale), where=scale > 0).mean()
    )


def _by_third(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name} in third {n + 1}": value for n, value in enumerate(values)}


def _thirds(curve: Any) -> list[float]:
    """Return the mean yield in the first, second and last third of the ranks."""
    return [float(part.mean()) for part in np.array_split(curve, 3)]


fig3 = figure(
    "p1-fig3",
    study=pressure_study,
    prepare=_ranked("omega"),
    draw=_draw("rank of the iteration length ω"),
    summary=_summary,
)


@fig3.claim("The differences between the policies grow with W.")
def _differences_grow(tables: Tables) -> Verdict:
    """Take the range of the policies at a rank, in the mean over the ranks."""
    spread = {}
    for pressure in _PRESSURES:
        curves = np.array([_curve(tables, p, pressure) for p in ALL_POLICIES])
        spread[f"W = {pressure:g}"] = float(np.ptp(curves, axis=0).mean())
    values = list(spread.values())
    return Verdict(values == sorted(values), spread)


@fig3.claim(
    "At W = 1.1, omega has little impact on the yields of fair-share and of the "
    "yield-based policies (thirds within 0.05)."
)
def _omega_matters_little(tables: Tables) -> Verdict:
    """Compare the means of the three thirds of the ranks."""
    thirds = {p: _thirds(_curve(tables, p)) for p in (*YIELD_BASED, FAIR_SHARE)}
    spread = max(max(values) - min(values) for values in thirds.values())
    numbers = {policy: _by_third("yield", of) for policy, of in thirds.items()}
    return Verdict(spread <= 0.05, numbers)


@fig3.claim(
    "At W = 1.1 the yield-based policies balance the yields: the yield is constant in "
    "omega (range over all ranks within 0.05)."
)
def _yield_based_constant(tables: Tables) -> Verdict:
    """Take the range of the curves."""
    spread = {p: float(np.ptp(_curve(tables, p))) for p in YIELD_BASED}
    return Verdict(max(spread.values()) <= 0.05, spread)


@fig3.claim(
    "With fair-share there is no correlation between omega and the yield (mean rank "
    "correlation over the instances between -0.1 and 0.1)."
)
def _fair_share_uncorrelated(tables: Tables) -> Verdict:
    """Correlate yield and rank in every instance at W = 1.1."""
    value = _mean_correlation(tables, FAIR_SHARE)
    return Verdict(abs(value) <= 0.1, {"mean rank correlation": value})


@fig3.claim(
    "There is no correlation between omega and phi in the instances (mean rank "
    "correlation between -0.1 and 0.1)."
)
def _omega_and_phi_uncorrelated(tables: Tables) -> Verdict:
    """Take the mean of the rank correlation over the instances at W = 1.1."""
    rows = tables.rows.filter(
        (pl.col("policy") == FAIR_SHARE) & (pl.col("pressure") == _PRESSURES[-1])
    )
    require_rows(rows)
    value = float(rows["omega_phi"].to_numpy().mean())
    return Verdict(abs(value) <= 0.1, {"mean rank correlation": value})


@fig3.claim("With fcfs the yield increases with omega (rank correlation above 0.8).")
def _fcfs_favours_long(tables: Tables) -> Verdict:
    """Correlate yield and rank at W = 1.1."""
    value = _correlation(_curve(tables, "fcfs"))
    return Verdict(value > _STRONG, {"rank correlation": value})


@fig3.claim(
    "With greedy-com the yield decreases with omega (rank correlation below -0.8)."
)
def _greedy_com_favours_short(tables: Tables) -> Verdict:
    """Correlate yield and rank at W = 1.1."""
    value = _correlation(_curve(tables, GREEDY_COM))
    return Verdict(value < -_STRONG, {"rank correlation": value})


@fig3.claim(
    "With set-10 the yields form three falling steps, one per priority, and inside "
    "each step the yield increases with omega."
)
def _set10_steps(tables: Tables) -> Verdict:
    """Compare the thirds of the ranks, and correlate yield and rank inside each."""
    curve = _curve(tables, "set-10")
    thirds = _thirds(curve)
    inside = [_correlation(part) for part in np.array_split(curve, 3)]
    numbers = {
        f"third {n + 1}": {"mean yield": mean, "rank correlation": correlation}
        for n, (mean, correlation) in enumerate(zip(thirds, inside, strict=True))
    }
    steps = thirds == sorted(thirds, reverse=True)
    return Verdict(steps and min(inside) > 0, numbers)


fig4 = figure(
    "p1-fig4",
    study=pressure_study,
    prepare=_ranked("fraction"),
    draw=_draw("rank of the I/O fraction φ"),
    summary=_summary,
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
    return Verdict(thirds[0] > thirds[2], _by_third("yield", thirds))


@fig4.claim(
    "The curve of periodic-greedy-yield hides that of greedy-yield (within 0.005)."
)
def _periodic_hides_greedy_yield(tables: Tables) -> Verdict:
    """Take the largest distance of both curves."""
    gap = np.abs(_curve(tables, PERIODIC) - _curve(tables, GREEDY_YIELD)).max()
    return Verdict(bool(gap <= 0.005), {"largest distance": float(gap)})


@fig4.claim(
    "fcfs is erratic in phi: its mean yield differs more between neighbouring ranks "
    "than that of any other policy."
)
def _fcfs_erratic(tables: Tables) -> Verdict:
    """Take the mean step between neighbouring ranks."""
    steps = {
        policy: float(np.abs(np.diff(_curve(tables, policy))).mean())
        for policy in ALL_POLICIES
    }
    others = max(step for policy, step in steps.items() if policy != "fcfs")
    numbers = {policy: {"mean step": step} for policy, step in steps.items()}
    return Verdict(steps["fcfs"] > others, numbers)


@fig4.claim(
    "With greedy-com the yield is not monotonic in phi when phi becomes large (more of "
    "the steps between neighbouring ranks rise in the last third than in the first)."
)
def _greedy_com_not_monotonic(tables: Tables) -> Verdict:
    """Count the steps upwards in the first and in the last third of the ranks.

    A curve that falls without exception has none.
    """
    first, _, last = np.array_split(_curve(tables, GREEDY_COM), 3)
    rising = {
        "rising steps, small phi": float(np.mean(np.diff(first) > 0)),
        "rising steps, large phi": float(np.mean(np.diff(last) > 0)),
    }
    small, large = rising.values()
    return Verdict(large > small, rising)


@fig4.claim(
    "With fair-share the yield falls strongly and linearly with phi (rank correlation "
    "and linear correlation below -0.95)."
)
def _fair_share_falls(tables: Tables) -> Verdict:
    """Correlate yield and rank at W = 1.1."""
    curve = _curve(tables, FAIR_SHARE)
    values = {
        "rank correlation": _correlation(curve),
        "linear correlation": float(np.corrcoef(np.arange(len(curve)), curve)[0, 1]),
    }
    return Verdict(max(values.values()) < -0.95, values)


@fig4.claim(
    "fair-share is the only policy whose yields are strongly and negatively correlated "
    "with phi (mean rank correlation over the instances below -0.8)."
)
def _only_fair_share(tables: Tables) -> Verdict:
    """Correlate the yields of applications with phi at W = 1.1, for every policy.

    This is done in every instance. The correlation of the mean curve, which is shown
    too, does not say how strong it is: a mean over 200 instances that falls a little at
    every rank has -1.
    """
    numbers = {
        policy: {
            "in an instance": _mean_correlation(tables, policy),
            "of the mean curve": _correlation(_curve(tables, policy)),
        }
        for policy in ALL_POLICIES
    }
    strong = {p for p, row in numbers.items() if row["in an instance"] < -_STRONG}
    return Verdict(strong == {FAIR_SHARE}, numbers)
