# SPDX-License-Identifier: MIT
"""Figures 4 to 8 of burst-buffer coordination: delta-graphs of two applications.

Application B begins D seconds after A; each pauses d seconds between its requests. The
interference factor of an application is its I/O time over that without the other. The
graphs show the factor against D: without a strategy (Figure 4), and with the strategies
1a, 1b, 2a and 2b (Figures 5 to 8). The paper gives one number for the curves of all d;
such a claim is checked at every d, and may depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import polars as pl

from penstock.experiments.claims import (
    Tables,
    Verdict,
    over,
    present_values,
    require_rows,
)
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.declaration import figure
from penstock.papers.p4.charts import delta_panels
from penstock.papers.p4.study import ALONE_S, delta_rows, mean_rows

__all__ = ["fig4", "fig5", "fig6", "fig7", "fig8"]

_NONE: Final = "none"
#: What "around" means.
_NEAR: Final = 0.2
#: What "slightly" means: the paper has "around 1.2, slightly higher" than 1.
_SLIGHTLY: Final = 0.2 + _NEAR
#: The part of D in which the phases of both applications overlap.
_EARLY: Final = pl.col("offset") < ALONE_S
_LATE: Final = pl.col("offset") > ALONE_S


def _delta_figure(name: str, strategy: str, *others: str) -> Reproduction:
    """Declare the delta-graph of a strategy, drawn over that without a strategy.

    `others` are strategies that the claims need for comparison.
    """
    strategies = tuple(dict.fromkeys((_NONE, *others, strategy)))
    base = "" if strategy == _NONE else _NONE

    def rows(scale: Scale) -> pl.DataFrame:
        return delta_rows(scale, strategies)

    return figure(
        name,
        rows=rows,
        draw=lambda tables: delta_panels(mean_rows(tables.rows), strategy, base),
    )


def _select(
    tables: Tables, strategy: str, application: str, *where: pl.Expr
) -> pl.DataFrame:
    """Return the means of one application under one strategy, by d and D."""
    return mean_rows(
        tables.rows.filter(
            pl.col("strategy") == strategy, pl.col("application") == application, *where
        )
    )


def _per_delay(rows: pl.DataFrame, check: Callable[[pl.DataFrame], Verdict]) -> Verdict:
    """Check the rows of every d for themselves."""
    delays = rows["delay"].unique().sort().to_list()
    verdicts = {
        f"{1000 * delay:g} ms": check(rows.filter(pl.col("delay") == delay))
        for delay in delays
    }
    return over("d", verdicts)


def _all_between(rows: pl.DataFrame, low: float, high: float) -> Verdict:
    """Check at every d that all factors are in an interval."""

    def check(at_delay: pl.DataFrame) -> Verdict:
        values = present_values(at_delay["factor"]).to_numpy()
        numbers = {"least": float(values.min()), "most": float(values.max())}
        return Verdict(low <= numbers["least"] and numbers["most"] <= high, numbers)

    return _per_delay(rows, check)


def _all_around(rows: pl.DataFrame, value: float) -> Verdict:
    """Check at every d that all factors are near a number of the paper."""
    return _all_between(rows, value - _NEAR, value + _NEAR)


def _lower_everywhere(
    tables: Tables, application: str, low: str, high: str, most: float = math.inf
) -> Verdict:
    """Check that the factor is lower with one strategy than with another.

    The difference must be `most` at most. Only the D at which the phases overlap count:
    without a strategy, A is slowed down.
    """
    keys = ["delay", "offset"]
    slowed = _select(tables, _NONE, "A").filter(pl.col("factor") > 1.001)
    both = _select(tables, low, application).join(
        _select(tables, high, application), on=keys, suffix="_high"
    )
    overlap = both.join(slowed, on=keys, how="semi").sort("offset")

    def check(at_delay: pl.DataFrame) -> Verdict:
        gains = (at_delay["factor_high"] - at_delay["factor"]).to_numpy()
        numbers = {
            f"share of the D where {low} is lower": float((gains > 0).mean()),
            "difference at D = 0": float(gains[0]),
            "least": float(gains.min()),
            "most": float(gains.max()),
        }
        return Verdict(bool(((gains > 0) & (gains <= most)).all()), numbers)

    return _per_delay(overlap, check)


def _at_once(rows: pl.DataFrame, low: float, high: float) -> Verdict:
    """Check at every d the factor at D = 0."""

    def check(at_delay: pl.DataFrame) -> Verdict:
        factor = float(at_delay["factor"][0])
        return Verdict(low <= factor <= high, {"factor at D = 0": factor})

    return _per_delay(rows.filter(pl.col("offset") == 0), check)


# --- Figure 4: no strategy --------------------------------------------------------

fig4 = _delta_figure("p4-fig4", _NONE)


@fig4.claim(
    "With a delay between requests, both applications have a lower interference factor "
    "than without (for D up to 20 s).",
    reason="At D = 20 s the gain of a delay is smaller than the variation between "
    "repetitions; for D up to 15 s the claim "
    "holds in every repetition.",
)
def _delays_lower_interference(tables: Tables) -> Verdict:
    """Compare every factor with delays with that without, at the same D."""
    early = mean_rows(tables.rows.filter(pl.col("offset") <= 20))
    quick = early.filter(pl.col("delay") == 0).select(
        "application", "offset", pl.col("factor").alias("quick")
    )
    paced = early.filter(pl.col("delay") > 0).join(quick, on=["application", "offset"])
    numbers: dict[str, dict[str, float]] = {}
    at_0 = early.filter(pl.col("offset") == 0)
    for name, d, factor in at_0.select("application", "delay", "factor").iter_rows():
        numbers.setdefault(f"{name} at D = 0", {})[f"d = {1000 * d:g} ms"] = factor
    return Verdict(bool((paced["factor"] < paced["quick"]).all()), numbers)


@fig4.claim(
    "Though the applications are identical, the factor is often larger than 2, up to "
    "2.3, even if they do not start at the same time (the loss is fitted to 2.27, in "
    "Figure 15)."
)
def _larger_than_two(tables: Tables) -> Verdict:
    """Take the largest factor, and the largest for D > 0."""
    rows = mean_rows(tables.rows)
    later = rows.filter(pl.col("offset") > 0)["factor"].to_numpy()
    most = float(rows["factor"].to_numpy().max())
    numbers = {"most": most, "most for D > 0": float(later.max())}
    return Verdict(2.2 <= most <= 2.4 and later.max() > 2, numbers)


@fig4.claim(
    "When both start at the same time the slowdown cannot be ignored (above 1.5)."
)
def _significant_at_once(tables: Tables) -> Verdict:
    """Check all factors at D = 0."""
    at_0 = mean_rows(tables.rows.filter(pl.col("offset") == 0))["factor"].to_numpy()
    numbers = {"least at D = 0": float(at_0.min()), "most": float(at_0.max())}
    return Verdict(bool((at_0 > 1.5).all()), numbers)


@fig4.claim(
    "For D beyond 25 to 30 s the factor is reduced, because the first application is "
    "almost done (1.05 at most without delays)."
)
def _fades_with_the_offset(tables: Tables) -> Verdict:
    """Compare the factors for D from 30 s with those at D = 0."""
    rows = mean_rows(tables.rows)
    late = rows.filter(pl.col("offset") >= 30)
    quick = float(late.filter(pl.col("delay") == 0)["factor"].to_numpy().max())
    most = float(late["factor"].to_numpy().max())
    at_0 = float(rows.filter(pl.col("offset") == 0)["factor"].to_numpy().min())
    numbers = {
        "most for D >= 30 s, d = 0": quick,
        "most for D >= 30 s, any d": most,
        "least at D = 0": at_0,
    }
    return Verdict(quick <= 1.05 and most < at_0, numbers)


# --- Figure 5: strategy 1a --------------------------------------------------------

fig5 = _delta_figure("p4-fig5", "1a")


@fig5.claim("B has exclusive access: its factor is around 1 (1.05 at most).")
def _newcomer_is_not_slowed_down(tables: Tables) -> Verdict:
    """Check all factors of B."""
    return _all_between(_select(tables, "1a", "B"), 0.95, 1.05)


@fig5.claim(
    "A's factor is 1.8 at most (the paper: 1.2 to 1.8, instead of 1.2 to 2.2).",
    reason="A waits for all 30 s of B and then flushes what it has not written before "
    "D: 1.77 + 0.23 D / 30 s without delays, so 1.8 only up to D = 4 s.",
)
def _staging_range(tables: Tables) -> Verdict:
    """Check the factors of A while the phases overlap."""
    return _all_between(_select(tables, "1a", "A", _EARLY), 1.0, 1.8)


@fig5.claim(
    "Staging gives A a lower factor than interfering with B.",
    reason="It gains 0.2 to 0.5 at D = 0; from about D = 10 s on A would share with B "
    "for a short time only, but waits until B is done.",
)
def _staging_beats_interference(tables: Tables) -> Verdict:
    """Compare 1a with no strategy at every point."""
    return _lower_everywhere(tables, "A", "1a", _NONE)


# --- Figure 6: strategy 1b --------------------------------------------------------

fig6 = _delta_figure("p4-fig6", "1b", "1a")


@fig6.claim(
    "For D under 30 s A's factor is kept around 1.5 (± 0.2).",
    name="kept-around-1.5",
    reason="Its mean over D is 1.4 to 1.5, but it falls from 1.7 or 1.8 at D = 0 to "
    "1.1 at D = 27.5 s, as less and less is left to write when B arrives.",
)
def _kept_around(tables: Tables) -> Verdict:
    """Check the factors of A while the phases overlap."""
    return _all_around(_select(tables, "1b", "A", _EARLY), 1.5)


@fig6.claim(
    "For larger D A's factor drops to 1.2 (1.1 to 1.3).",
    name="drops-to-1.2",
    reason="It drops further: A is done, or almost done, when B arrives after 30 s.",
)
def _drops(tables: Tables) -> Verdict:
    """Check the factors of A for D beyond 30 s."""
    return _all_between(_select(tables, "1b", "A", _LATE), 1.1, 1.3)


@fig6.claim(
    "A's factor is lower than without a strategy.",
    reason="With d = 750 ms the pauses hide most of the interference already, and "
    "staging costs 0.013 at most, at D from 5 to 12.5 s.",
)
def _lower_than_without(tables: Tables) -> Verdict:
    """Compare 1b with no strategy at every point."""
    return _lower_everywhere(tables, "A", "1b", _NONE)


@fig6.claim(
    "A's factor is slightly lower than with strategy 1a (by 0.4 at most).",
    reason="At D up to 2.5 s it gains at most 0.11 and, with delays, costs up to 0.06, "
    "because A's flush shares the storage with B; from D = 17.5 s on it gains more "
    "than slightly, up to 0.97: with 1a A waits for all of B, however little it has "
    "left.",
)
def _lower_than_1a(tables: Tables) -> Verdict:
    """Compare 1b with 1a at every point."""
    return _lower_everywhere(tables, "A", "1b", "1a", _SLIGHTLY)


@fig6.claim(
    "B's factor is slightly higher than with strategy 1a (by 0.4 at most; the paper "
    "has 1.2 and 1), because A's flushes end its exclusive access.",
    reason="It is higher at every D, but slightly only from D = 17.5 s on: at D = 0 "
    "A's flush begins 31 d after B's arrival at the latest and shares the storage with "
    "B, which costs B 0.47 (d = 750 ms) to 0.98 (no delays).",
)
def _newcomer_slower_than_1a(tables: Tables) -> Verdict:
    """Compare 1a with 1b at every point."""
    return _lower_everywhere(tables, "B", "1a", "1b", _SLIGHTLY)


@fig6.claim(
    "B's factor is around 1.2 (± 0.2).",
    name="newcomer-around-1.2",
    reason="A's flush begins 31 d after B's arrival at the latest, and then both share "
    "the storage: up to 1.98 without delays, 1.58 with 750 ms, and 1 from D = 32.5 s "
    "on.",
)
def _newcomer_around(tables: Tables) -> Verdict:
    """Check all factors of B."""
    return _all_around(_select(tables, "1b", "B"), 1.2)


# --- Figure 7: strategy 2a --------------------------------------------------------

fig7 = _delta_figure("p4-fig7", "2a")


@fig7.claim("A's factor is close to 1 (1.05 at most).")
def _first_is_not_slowed_down(tables: Tables) -> Verdict:
    """Check all factors of A."""
    return _all_between(_select(tables, "2a", "A"), 0.95, 1.05)


@fig7.claim(
    "B's factor is 1.5 to 1.6 at D = 0.",
    name="second-at-once",
    contradicted="Figure 15 has 96 of 170 MB/s, a factor of 1.77, for an application "
    "that waits for another one and then flushes.",
)
def _second_at_once_2a(tables: Tables) -> Verdict:
    """Check the factor of B at D = 0."""
    return _at_once(_select(tables, "2a", "B"), 1.5, 1.6)


@fig7.claim(
    "B's factor drops close to 1 when D exceeds the time of an I/O phase (0.9 to 1.1)."
)
def _second_late(tables: Tables) -> Verdict:
    """Check the factors of B for D beyond its I/O time alone."""
    rows = _select(tables, "2a", "B")
    return _all_between(rows.filter(pl.col("offset") > pl.col("alone")), 0.9, 1.1)


# --- Figure 8: strategy 2b --------------------------------------------------------

fig8 = _delta_figure("p4-fig8", "2b", "2a")


@fig8.claim(
    "A's factor is stable around 1.2 for all D (± 0.2).",
    name="first-around-1.2",
    reason="B's flush begins 31 d after its arrival: at D = 0 A's factor falls with d "
    "from 1.98 to 1.47, and it is 1 as soon as A is done before B flushes.",
)
def _first_around(tables: Tables) -> Verdict:
    """Check all factors of A."""
    return _all_around(_select(tables, "2b", "A"), 1.2)


@fig8.claim(
    "B's factor is 1.6 at D = 0 (± 0.1).",
    name="second-at-once",
    reason="Both are done after 30 s of A's writes and 23 s of B's flush, 1.77 times "
    "B's time alone, plus the loss while both wait; only with d = 750 ms is B alone so "
    "slow that this is 1.69.",
)
def _second_at_once_2b(tables: Tables) -> Verdict:
    """Check the factor of B at D = 0."""
    return _at_once(_select(tables, "2b", "B"), 1.5, 1.7)


@fig8.claim(
    "B's factor decreases as D increases.",
    reason="It decreases to below 1 (0.77 without delays) up to D = 30 s, since a "
    "flush is faster than writes, and returns to 1 when B arrives after A is done.",
)
def _second_falls(tables: Tables) -> Verdict:
    """Take the largest rise of the factor of B from one D to the next."""

    def check(at_delay: pl.DataFrame) -> Verdict:
        rises = present_values(at_delay.sort("offset")["factor"].diff()).to_numpy()
        most = float(rises.max())
        return Verdict(most <= 1e-6, {"largest rise": most})

    return _per_delay(_select(tables, "2b", "B"), check)


@fig8.claim(
    "B's decrease comes at a higher D than with strategy 2a.",
    reason="With d of 500 ms and more, A is done before B flushes at the D in "
    "question, and 2b is 2a.",
)
def _second_falls_later_than_2a(tables: Tables) -> Verdict:
    """Compare the D at which the factor of B falls below 1.1."""
    both = pl.concat([_select(tables, s, "B") for s in ("2a", "2b")])

    def check(at_delay: pl.DataFrame) -> Verdict:
        falls = {
            f"{strategy} falls below 1.1 at D (s)": _falls_at(
                at_delay.filter(pl.col("strategy") == strategy).sort("offset"), 1.1
            )
            for strategy in ("2a", "2b")
        }
        of_2a, of_2b = falls.values()
        return Verdict(of_2b > of_2a, falls)

    return _per_delay(both, check)


def _falls_at(rows: pl.DataFrame, value: float) -> float:
    """Return the D after which the factor stays below a value, by interpolation (s)."""
    require_rows(rows)
    offsets, factors = rows["offset"].to_list(), rows["factor"].to_list()
    above = [number for number, factor in enumerate(factors) if factor >= value]
    if not above or above[-1] == len(factors) - 1:
        return float(offsets[above[-1]] if above else 0.0)
    last = above[-1]
    part = (factors[last] - value) / (factors[last] - factors[last + 1])
    return float(offsets[last] + part * (offsets[last + 1] - offsets[last]))
