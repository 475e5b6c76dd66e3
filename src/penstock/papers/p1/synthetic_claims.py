# SPDX-License-Identifier: MIT
"""What papers/1 (6.2.2, 6.2.3) says of its synthetic workload, as checks.

Where the paper says "similar", "little" or "slightly", the check has a number; it
is in the text of the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from penstock.experiments.claims import Check, Claim, Tables, Verdict, mean_of

__all__ = [
    "FRACTION",
    "OMEGA",
    "PARAMETERS",
    "PRESSURE",
    "on_aimed",
    "on_curves",
]

_YIELD_BASED: Final = (
    "greedy-yield",
    "look-ahead-greedy-yield",
    "periodic-greedy-yield",
    "best-next-event",
)
_GREEDY: Final = _YIELD_BASED[:3]
_OTHERS: Final = ("fair-share", "fcfs", "set-10", "greedy-com")
_ALL: Final = (*_YIELD_BASED, *_OTHERS)
_HIGH: Final = (0.8, 0.9, 1.0, 1.1)
_PRESSURES: Final = (0.2, 0.5, *_HIGH)
_BOTH: Final = ("efficiency", "utilization")


def on_aimed(
    claims: Iterable[Claim], aimed: Callable[[Tables], Tables]
) -> tuple[Claim, ...]:
    """Return the claims, checked on the rows with the aimed pressure."""
    return tuple(replace(c, check=_after(aimed, c.check)) for c in claims)


def on_curves(
    claims: Iterable[Claim], curves: Callable[[Tables], pl.DataFrame]
) -> tuple[Claim, ...]:
    """Return the claims, checked on the curves of mean yield by rank."""

    def prepared(tables: Tables) -> Tables:
        return Tables(curves(tables), tables.times)

    return tuple(replace(c, check=_after(prepared, c.check)) for c in claims)


def _after(prepare: Callable[[Tables], Tables], check: Check) -> Check:
    return lambda tables: check(prepare(tables))


# --- Figure 2 --------------------------------------------------------------------


def _means(tables: Tables, metric: str, pressure: float) -> dict[str, float]:
    return {p: mean_of(tables.rows, metric, p, pressure=pressure) for p in _ALL}


def _yield_based_ahead(tables: Tables) -> Verdict:
    gaps = {}
    for pressure in _HIGH:
        means = _means(tables, "min_yield", pressure)
        worst = min(means[p] for p in _YIELD_BASED)
        gaps[f"W={pressure:g}"] = worst - max(means[p] for p in _OTHERS)
    return Verdict(min(gaps.values()) > 0, gaps)


def _yield_based_alike(tables: Tables) -> Verdict:
    spread = {}
    for pressure in _PRESSURES:
        means = [_means(tables, "min_yield", pressure)[p] for p in _YIELD_BASED]
        spread[f"W={pressure:g}"] = max(means) - min(means)
    return Verdict(max(spread.values()) <= 0.05, spread)


def _look_ahead_slightly_worse(tables: Tables) -> Verdict:
    gaps = {}
    for pressure in _PRESSURES:
        means = _means(tables, "min_yield", pressure)
        best = min(means["greedy-yield"], means["periodic-greedy-yield"])
        for policy in ("look-ahead-greedy-yield", "best-next-event"):
            gaps[f"{policy} W={pressure:g}"] = best - means[policy]
    return Verdict(min(gaps.values()) >= 0, gaps)


def _greedy_no_worse_than_best_next_event(tables: Tables) -> Verdict:
    gaps = {}
    for pressure in _PRESSURES:
        means = _means(tables, "min_yield", pressure)
        least = min(means[p] for p in _GREEDY)
        gaps[f"W={pressure:g}"] = least - means["best-next-event"]
    return Verdict(min(gaps.values()) >= -0.005, gaps)


def _fcfs_worst(tables: Tables) -> Verdict:
    return _extreme(tables, "fcfs", best=False)


def _greedy_com_best(tables: Tables) -> Verdict:
    return _extreme(tables, "greedy-com", best=True)


def _extreme(tables: Tables, policy: str, *, best: bool) -> Verdict:
    gaps = {}
    for metric in _BOTH:
        for pressure in _PRESSURES:
            means = _means(tables, metric, pressure)
            mine = means.pop(policy)
            gap = mine - max(means.values()) if best else min(means.values()) - mine
            gaps[f"{metric} W={pressure:g}"] = gap
    return Verdict(min(gaps.values()) >= 0, gaps)


def _greedy_com_starves(tables: Tables) -> Verdict:
    gaps = {}
    for pressure in _HIGH[1:]:
        means = _means(tables, "min_yield", pressure)
        gaps[f"W={pressure:g}"] = means["fair-share"] - means["greedy-com"]
    return Verdict(min(gaps.values()) > 0, gaps)


def _loss_under_five_per_cent(tables: Tables) -> Verdict:
    losses = {}
    for metric in _BOTH:
        for pressure in _PRESSURES:
            means = _means(tables, metric, pressure)
            worst = min(means[p] for p in _YIELD_BASED)
            losses[f"{metric} W={pressure:g}"] = 1 - worst / means["fair-share"]
    return Verdict(max(losses.values()) < 0.05, losses)


def _look_ahead_more_efficient(tables: Tables) -> Verdict:
    gaps = {}
    for metric in _BOTH:
        for pressure in _PRESSURES[:-1]:
            means = _means(tables, metric, pressure)
            gain = means["look-ahead-greedy-yield"] - means["fair-share"]
            gaps[f"{metric} W={pressure:g}"] = gain
    return Verdict(min(gaps.values()) > 0, gaps)


_FIG2: Final = "papers/1 section 6.2.2, Figure 2"

PRESSURE: Final = (
    Claim(
        "yield-based-ahead",
        _FIG2,
        "From W = 0.8 on, the four yield-based strategies have a higher MinYield than "
        "FairShare, FCFS, Set-10 and GreedyCom.",
        _yield_based_ahead,
    ),
    Claim(
        "yield-based-alike",
        _FIG2,
        "The yield-based strategies achieve a similar MinYield (within 0.05).",
        _yield_based_alike,
    ),
    Claim(
        "look-ahead-slightly-worse",
        _FIG2,
        "LookAheadGreedyYield and BestNextEvent are slightly worse in MinYield than "
        "GreedyYield and PeriodicGreedyYield.",
        _look_ahead_slightly_worse,
        "True at high pressure only: at low pressure LookAheadGreedyYield is ahead, as "
        "it is in the authors' own published runs (.992 and .991 at W = 0.5).",
    ),
    Claim(
        "greedy-no-worse-than-best-next-event",
        _FIG2,
        "GreedyYield, PeriodicGreedyYield and LookAheadGreedyYield have a MinYield no "
        "worse than BestNextEvent (by more than 0.005).",
        _greedy_no_worse_than_best_next_event,
    ),
    Claim(
        "fcfs-worst",
        _FIG2,
        "FCFS is the worst in Efficiency and Utilization.",
        _fcfs_worst,
    ),
    Claim(
        "greedy-com-best",
        _FIG2,
        "GreedyCom is the best in Efficiency and Utilization.",
        _greedy_com_best,
    ),
    Claim(
        "greedy-com-starves",
        _FIG2,
        "GreedyCom has a poor MinYield at high pressure (below FairShare, W >= 0.9).",
        _greedy_com_starves,
    ),
    Claim(
        "loss-under-five-per-cent",
        _FIG2,
        "The yield-based strategies lose less than 5 % of FairShare's Efficiency and "
        "Utilization.",
        _loss_under_five_per_cent,
    ),
    Claim(
        "look-ahead-more-efficient",
        _FIG2,
        "For all but the largest W, LookAheadGreedyYield has a better Efficiency and "
        "Utilization than FairShare.",
        _look_ahead_more_efficient,
    ),
)


# --- Figures 3 and 4 ---------------------------------------------------------------


def _curve(tables: Tables, policy: str, pressure: float = 1.1) -> Any:
    rows = tables.rows.filter(
        (pl.col("policy") == policy) & (pl.col("pressure") == pressure)
    )
    return rows.sort("rank")["yield"].to_numpy()


def _correlation(curve: Any) -> float:
    return float(spearmanr(np.arange(len(curve)), curve).statistic)


def _thirds(curve: Any) -> list[float]:
    return [float(part.mean()) for part in np.array_split(curve, 3)]


def _differences_grow(tables: Tables) -> Verdict:
    spread = {}
    for pressure in (0.5, 0.8, 1.1):
        curves = np.array([_curve(tables, p, pressure) for p in _ALL])
        spread[f"W={pressure:g}"] = float(np.ptp(curves, axis=0).mean())
    values = list(spread.values())
    return Verdict(values == sorted(values), spread)


def _omega_matters_little(tables: Tables) -> Verdict:
    spread = {}
    for policy in (*_YIELD_BASED, "fair-share"):
        thirds = _thirds(_curve(tables, policy))
        spread[policy] = max(thirds) - min(thirds)
    return Verdict(max(spread.values()) <= 0.05, spread)


def _fcfs_favours_long(tables: Tables) -> Verdict:
    value = _correlation(_curve(tables, "fcfs"))
    return Verdict(value > 0.8, {"rank correlation": value})


def _greedy_com_favours_short(tables: Tables) -> Verdict:
    value = _correlation(_curve(tables, "greedy-com"))
    return Verdict(value < -0.8, {"rank correlation": value})


def _set10_steps(tables: Tables) -> Verdict:
    curve = _curve(tables, "set-10")
    thirds = _thirds(curve)
    inside = [_correlation(part) for part in np.array_split(curve, 3)]
    numbers = {f"third {n + 1}": v for n, v in enumerate(thirds)}
    numbers |= {f"correlation in third {n + 1}": v for n, v in enumerate(inside)}
    steps = thirds == sorted(thirds, reverse=True)
    return Verdict(steps and min(inside) > 0, numbers)


def _fair_share_falls_with_phi(tables: Tables) -> Verdict:
    values = {policy: _correlation(_curve(tables, policy)) for policy in _ALL}
    curve = _curve(tables, "fair-share")
    ranks = np.arange(len(curve))
    values["linearity (r)"] = float(np.corrcoef(ranks, curve)[0, 1])
    return Verdict(values["fair-share"] < -0.95, values)


def _only_fair_share(tables: Tables) -> Verdict:
    values = {policy: _correlation(_curve(tables, policy)) for policy in _ALL}
    others = [v for policy, v in values.items() if policy != "fair-share"]
    return Verdict(min(others) > values["fair-share"], values)


def _best_next_event_favours_small(tables: Tables) -> Verdict:
    thirds = _thirds(_curve(tables, "best-next-event"))
    numbers = {f"third {n + 1}": v for n, v in enumerate(thirds)}
    return Verdict(thirds[0] > thirds[2], numbers)


def _look_ahead_differs_for_small(tables: Tables) -> Verdict:
    gap = _curve(tables, "look-ahead-greedy-yield") - _curve(tables, "greedy-yield")
    small, _, large = _thirds(np.abs(gap))
    return Verdict(small > large, {"small phi": small, "large phi": large})


_FIG3: Final = "papers/1 section 6.2.2, Figure 3"
_FIG4: Final = "papers/1 section 6.2.2, Figure 4"

OMEGA: Final = (
    Claim(
        "differences-grow",
        _FIG3,
        "The differences between the strategies grow with W.",
        _differences_grow,
    ),
    Claim(
        "omega-matters-little",
        _FIG3,
        "At W = 1.1, omega has little impact on the yields of FairShare and of the "
        "yield-based strategies (thirds within 0.05).",
        _omega_matters_little,
    ),
    Claim(
        "fcfs-favours-long",
        _FIG3,
        "With FCFS the yield increases with omega.",
        _fcfs_favours_long,
    ),
    Claim(
        "greedy-com-favours-short",
        _FIG3,
        "With GreedyCom the yield decreases with omega.",
        _greedy_com_favours_short,
    ),
    Claim(
        "set10-steps",
        _FIG3,
        "Set-10 has three steps, one per priority, and inside each the yield increases "
        "with omega.",
        _set10_steps,
    ),
)

FRACTION: Final = (
    Claim(
        "look-ahead-differs-for-small",
        _FIG4,
        "LookAheadGreedyYield differs from GreedyYield for small values of phi.",
        _look_ahead_differs_for_small,
    ),
    Claim(
        "best-next-event-favours-small",
        _FIG4,
        "BestNextEvent favours applications with small I/O.",
        _best_next_event_favours_small,
    ),
    Claim(
        "fair-share-falls",
        _FIG4,
        "FairShare is strongly, negatively and linearly correlated with phi.",
        _fair_share_falls_with_phi,
    ),
    Claim(
        "only-fair-share",
        _FIG4,
        "No other strategy is as strongly (negatively) correlated with phi.",
        _only_fair_share,
    ),
)


# --- The other parameters ------------------------------------------------------------


def _impact(tables: Tables, name: str) -> dict[str, float]:
    """Return by how much MinYield moves over the values of a parameter."""
    rows = tables.rows.filter(pl.col(name).is_not_null())
    impact = {}
    for policy in _ALL:
        means = (
            rows.filter(pl.col("policy") == policy)
            .group_by(name)
            .agg(pl.col("min_yield").mean())
            .sort(name)["min_yield"]
            .to_numpy()
        )
        impact[policy] = float(means[-1] - means[0])
    return impact


def _no_impact(name: str) -> Callable[[Tables], Verdict]:
    def check(tables: Tables) -> Verdict:
        impact = _impact(tables, name)
        return Verdict(max(abs(v) for v in impact.values()) <= 0.05, impact)

    return check


def _sigma_hurts(tables: Tables) -> Verdict:
    impact = _impact(tables, "sigma")
    hurt = {"fcfs", "set-10"}
    small = max(abs(v) for policy, v in impact.items() if policy not in hurt)
    return Verdict(max(impact[p] for p in hurt) < 0 and small <= 0.05, impact)


_OTHER: Final = "papers/1 section 6.2.2, impact of the other parameters"

PARAMETERS: Final = (
    Claim(
        "n-small-no-impact",
        _OTHER,
        "n_small does not impact the MinYield (by more than 0.05 over its range).",
        _no_impact("n_small"),
    ),
    Claim(
        "noise-no-impact",
        _OTHER,
        "The noise does not impact the MinYield (by more than 0.05 over its range).",
        _no_impact("noise"),
    ),
    Claim(
        "sigma-hurts-fcfs-and-set10",
        _OTHER,
        "High values of sigma impact only the MinYield of FCFS and of Set-10, and "
        "negatively (others within 0.05).",
        _sigma_hurts,
    ),
)
