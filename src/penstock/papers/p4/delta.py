# SPDX-License-Identifier: MIT
"""Figures 4 to 8 of burst-buffer coordination: delta-graphs of two applications.

Application B begins D seconds after A; each pauses d seconds between its requests. The
interference factor of an application is its I/O time over that without the other. The
graphs show the factor against D: without a strategy (Figure 4), and with the strategies
1a, 1b, 2a and 2b (Figures 5 to 8). The paper gives one number for the curves of all d;
such a claim is checked at every d, and may depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from penstock.experiments.claims import Tables, Verdict, over, present_values
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.declaration import figure
from penstock.papers.p4.charts import delta_panels
from penstock.papers.p4.study import ALONE_S, delta_rows, mean_rows

__all__ = ["fig4", "fig5", "fig6", "fig7", "fig8"]

_NONE: Final = "none"
#: What "around" means.
_NEAR: Final = 0.2
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
        study=rows,
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


def _lower_everywhere(tables: Tables, strategy: str) -> Verdict:
    """Check that a strategy lowers the factor of A wherever the phases overlap."""
    both = _select(tables, strategy, "A").join(
        _select(tables, _NONE, "A"), on=["delay", "offset"], suffix="_without"
    )
    overlap = both.filter(pl.col("factor_without") > 1.001).sort("offset")

    def check(at_delay: pl.DataFrame) -> Verdict:
        gains = (at_delay["factor_without"] - at_delay["factor"]).to_numpy()
        numbers = {
            "share of the D where it is lower": float((gains > 0).mean()),
            "gain at D = 0": float(gains[0]),
            "least gain": float(gains.min()),
        }
        return Verdict(bool((gains > 0).all()), numbers)

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
    "than without (for D up to 20 s)."
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
)
def _staging_range(tables: Tables) -> Verdict:
    """Check the factors of A while the phases overlap."""
    return _all_between(_select(tables, "1a", "A", _EARLY), 1.0, 1.8)


@fig5.claim("Staging gives A a lower factor than interfering with B.")
def _staging_beats_interference(tables: Tables) -> Verdict:
    """Compare 1a with no strategy at every point."""
    return _lower_everywhere(tables, "1a")


# --- Figure 6: strategy 1b --------------------------------------------------------

fig6 = _delta_figure("p4-fig6", "1b", "1a")


@fig6.claim(
    "For D under 30 s A's factor is kept around 1.5 (± 0.2).", name="kept-around-1.5"
)
def _kept_around(tables: Tables) -> Verdict:
    """Check the factors of A while the phases overlap."""
    return _all_around(_select(tables, "1b", "A", _EARLY), 1.5)


@fig6.claim("For larger D A's factor drops to 1.2 (1.25 at most).", name="drops-to-1.2")
def _drops(tables: Tables) -> Verdict:
    """Check the factors of A for D beyond 30 s."""
    return _all_between(_select(tables, "1b", "A", _LATE), 0.95, 1.25)


@fig6.claim("A's factor is lower than without a strategy.")
def _lower_than_without(tables: Tables) -> Verdict:
    """Compare 1b with no strategy at every point."""
    return _lower_everywhere(tables, "1b")


@fig6.claim(
    "B's factor is around 1.2 (± 0.2), because A's flushes end its exclusive access.",
    name="newcomer-around-1.2",
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


@fig7.claim("B's factor is 1.5 to 1.6 at D = 0.", name="second-at-once")
def _second_at_once_2a(tables: Tables) -> Verdict:
    """Check the factor of B at D = 0."""
    return _at_once(_select(tables, "2a", "B"), 1.5, 1.6)


@fig7.claim(
    "B's factor drops close to 1 when D exceeds the time of an I/O phase (1.1 at most)."
)
def _second_late(tables: Tables) -> Verdict:
    """Check the factors of B for D beyond its I/O time alone."""
    rows = _select(tables, "2a", "B")
    return _all_between(rows.filter(pl.col("offset") > pl.col("alone")), 0.0, 1.1)


# --- Figure 8: strategy 2b --------------------------------------------------------

fig8 = _delta_figure("p4-fig8", "2b", "2a")


@fig8.claim(
    "A's factor is stable around 1.2 for all D (± 0.2).", name="first-around-1.2"
)
def _first_around(tables: Tables) -> Verdict:
    """Check all factors of A."""
    return _all_around(_select(tables, "2b", "A"), 1.2)


@fig8.claim("B's factor is 1.6 at D = 0 (± 0.1).", name="second-at-once")
def _second_at_once_2b(tables: Tables) -> Verdict:
    """Check the factor of B at D = 0."""
    return _at_once(_select(tables, "2b", "B"), 1.5, 1.7)


@fig8.claim("B's factor decreases as D increases.")
def _second_falls(tables: Tables) -> Verdict:
    """Take the largest rise of the factor of B from one D to the next."""

    def check(at_delay: pl.DataFrame) -> Verdict:
        rises = present_values(at_delay.sort("offset")["factor"].diff()).to_numpy()
        most = float(rises.max())
        return Verdict(most <= 1e-6, {"largest rise": most})

    return _per_delay(_select(tables, "2b", "B"), check)


@fig8.claim("B's decrease comes at a higher D than with strategy 2a.")
def _second_falls_later_than_2a(tables: Tables) -> Verdict:
    """Compare the largest D for which the factor of B is above 1.1."""
    both = pl.concat([_select(tables, s, "B") for s in ("2a", "2b")])

    def check(at_delay: pl.DataFrame) -> Verdict:
        last = {}
        for strategy in ("2a", "2b"):
            slowed = at_delay.filter(
                pl.col("strategy") == strategy, pl.col("factor") > 1.1
            )
            name = f"last D with a factor above 1.1, {strategy} (s)"
            last[name] = float(slowed["offset"].to_numpy().max(initial=0.0))
        of_2a, of_2b = last.values()
        return Verdict(of_2b > of_2a, last)

    return _per_delay(both, check)
