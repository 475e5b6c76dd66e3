# SPDX-License-Identifier: MIT
"""Figures 4 to 8 of burst-buffer coordination: delta-graphs of two applications.

Application B begins D seconds after A; each pauses d seconds between its requests. The
interference factor of an application is its I/O time over that without the other. The
graphs show the factor against D: without a strategy (Figure 4), and with the strategies
1a, 1b, 2a and 2b (Figures 5 to 8). The paper gives one number for several curves. Where
the curves differ with d, the claim says for which d it is checked.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from penstock.experiments.claims import Tables, Verdict, present_values
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.declaration import figure
from penstock.papers.p4.charts import delta_panels
from penstock.papers.p4.study import ALONE_S, delta_rows, one_of

__all__ = ["fig4", "fig5", "fig6", "fig7", "fig8"]

_NONE: Final = "none"
#: The longest d (s).
_LONG: Final = 0.75
#: What "around" means.
_NEAR: Final = 0.2
#: The part of D in which the phases of both applications overlap.
_EARLY: Final = pl.col("offset") < ALONE_S
_LATE: Final = pl.col("offset") > ALONE_S

_WHY_TWO: Final = (
    "Without delays both applications saturate the storage. The one that waits is done "
    "when both are done, after twice the time. A factor below 2 needs pauses in which "
    "the other can write, or a flush that is faster than the writes were; we assume "
    "neither."
)
_WHY_FALLS: Final = (
    "As soon as one application flushes, both share the storage. Each loses in "
    "proportion to what both still have to write at the same time: most for short "
    "delays and small D, nothing when the phases no longer overlap."
)


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
        draw=lambda tables: delta_panels(tables.rows, strategy, base),
    )


def _select(
    tables: Tables, strategy: str, application: str, *where: pl.Expr
) -> pl.DataFrame:
    """Return the rows of one application under one strategy."""
    return tables.rows.filter(
        pl.col("strategy") == strategy, pl.col("application") == application, *where
    )


def _range(name: str, factors: pl.Series) -> dict[str, float]:
    """Return the smallest and the largest factor as numbers of a claim."""
    values = present_values(factors).to_numpy()
    return {
        f"{name}, least": float(values.min()),
        f"{name}, most": float(values.max()),
    }


def _all_between(name: str, factors: pl.Series, low: float, high: float) -> Verdict:
    """Check that all factors are in an interval."""
    return Verdict(bool(factors.is_between(low, high).all()), _range(name, factors))


def _all_around(
    tables: Tables, strategy: str, application: str, value: float, *where: pl.Expr
) -> Verdict:
    """Check that all factors with delays are near a number of the paper."""
    rows = _select(tables, strategy, application, pl.col("delay") > 0, *where)
    return _all_between(application, rows["factor"], value - _NEAR, value + _NEAR)


def _lower_everywhere(tables: Tables, strategy: str) -> Verdict:
    """Check that a strategy lowers the factor of A wherever the phases overlap."""
    both = _select(tables, strategy, "A").join(
        _select(tables, _NONE, "A"), on=["delay", "offset"], suffix="_without"
    )
    overlap = both.filter(pl.col("factor_without") > 1.001)
    lower = overlap["factor"] < overlap["factor_without"]
    share = float(lower.sum() / max(len(lower), 1))
    at_0 = overlap.filter(pl.col("offset") == 0.0)
    gains = (at_0["factor_without"] - at_0["factor"]).to_list()
    numbers = {"share of the points where it is lower": share}
    for delay, gain in zip(at_0["delay"], gains, strict=True):
        numbers[f"gain at D = 0, d = {1000 * delay:g} ms"] = gain
    return Verdict(share == 1.0, numbers)


def _long_delay_at_once(
    tables: Tables, strategy: str, low: float, high: float
) -> Verdict:
    """Check the factor of B at D = 0 with d = 750 ms; give it for every d."""
    where = {"strategy": strategy, "application": "B", "offset": 0.0}
    delays = tables.rows["delay"].unique().sort().to_list()
    factors = {d: one_of(tables.rows, "factor", delay=d, **where) for d in delays}
    numbers = {f"B, d = {1000 * d:g} ms": factor for d, factor in factors.items()}
    return Verdict(low <= factors[_LONG] <= high, numbers)


# --- Figure 4: no strategy --------------------------------------------------------

fig4 = _delta_figure("p4-fig4", _NONE)


@fig4.claim(
    "With a delay between requests, both applications have a lower interference factor "
    "than without (for D up to 20 s)."
)
def _delays_lower_interference(tables: Tables) -> Verdict:
    """Compare every factor with delays with that without, at the same D."""
    early = tables.rows.filter(pl.col("offset") <= 20)
    quick = early.filter(pl.col("delay") == 0).select(
        "application", "offset", pl.col("factor").alias("quick")
    )
    paced = early.filter(pl.col("delay") > 0).join(quick, on=["application", "offset"])
    at_0 = early.filter(pl.col("offset") == 0)
    numbers = {
        f"{name} at D = 0, d = {1000 * d:g} ms": factor
        for name, d, factor in at_0.select("application", "delay", "factor").iter_rows()
    }
    return Verdict(bool((paced["factor"] < paced["quick"]).all()), numbers)


@fig4.claim(
    "Though the applications are identical, the factor is often larger than 2, up to "
    "2.3, even if they do not start at the same time (2.3 is an input of the model)."
)
def _larger_than_two(tables: Tables) -> Verdict:
    """Take the largest factor, and the largest for D > 0."""
    later = tables.rows.filter(pl.col("offset") > 0)["factor"].to_numpy()
    most = float(tables.rows["factor"].to_numpy().max())
    numbers = {"most": most, "most for D > 0": float(later.max())}
    return Verdict(2.2 <= most <= 2.4 and later.max() > 2, numbers)


@fig4.claim(
    "When both start at the same time the slowdown cannot be ignored (above 1.5)."
)
def _significant_at_once(tables: Tables) -> Verdict:
    """Check all factors at D = 0."""
    at_0 = tables.rows.filter(pl.col("offset") == 0)["factor"]
    return Verdict(bool((at_0 > 1.5).all()), _range("at D = 0", at_0))


@fig4.claim(
    "For D beyond 25 to 30 s the factor is reduced, because the first application is "
    "almost done (1.05 at most without delays)."
)
def _fades_with_the_offset(tables: Tables) -> Verdict:
    """Compare the factors for D from 30 s with those at D = 0."""
    late = tables.rows.filter(pl.col("offset") >= 30)
    quick = late.filter(pl.col("delay") == 0)["factor"]
    numbers = _range("d = 0, D >= 30 s", quick)
    numbers |= _range("any d, D >= 30 s", late["factor"])
    at_0 = tables.rows.filter(pl.col("offset") == 0)["factor"].to_numpy().min()
    small = bool((quick <= 1.05).all())
    return Verdict(small and late["factor"].to_numpy().max() < at_0, numbers)


# --- Figure 5: strategy 1a --------------------------------------------------------

fig5 = _delta_figure("p4-fig5", "1a")


@fig5.claim("B has exclusive access: its factor is around 1 (1.05 at most).")
def _newcomer_is_not_slowed_down(tables: Tables) -> Verdict:
    """Check all factors of B."""
    return _all_between("B", _select(tables, "1a", "B")["factor"], 0.95, 1.05)


@fig5.claim(
    "A's factor is 1.8 at most (the paper: 1.2 to 1.8, instead of 1.2 to 2.2).",
    reason=_WHY_TWO,
)
def _staging_range(tables: Tables) -> Verdict:
    """Check the factors of A while the phases overlap."""
    return _all_between("A", _select(tables, "1a", "A", _EARLY)["factor"], 1.0, 1.8)


@fig5.claim(
    "Staging gives A a lower factor than interfering with B.",
    reason="This holds at D = 0. Later A has little left to write and would share with "
    "B for a short time only, but must wait until B is done.",
)
def _staging_beats_interference(tables: Tables) -> Verdict:
    """Compare 1a with no strategy at every point."""
    return _lower_everywhere(tables, "1a")


# --- Figure 6: strategy 1b --------------------------------------------------------

fig6 = _delta_figure("p4-fig6", "1b")


@fig6.claim(
    "For D under 30 s A's factor is kept around 1.5 (± 0.2, d > 0).",
    name="kept-around-1.5",
    reason=_WHY_FALLS,
)
def _kept_around(tables: Tables) -> Verdict:
    """Check the factors of A while the phases overlap."""
    return _all_around(tables, "1b", "A", 1.5, _EARLY)


@fig6.claim("For larger D A's factor drops to 1.2 (1.25 at most).", name="drops-to-1.2")
def _drops(tables: Tables) -> Verdict:
    """Check the factors of A for D beyond 30 s."""
    return _all_between("A", _select(tables, "1b", "A", _LATE)["factor"], 0.95, 1.25)


@fig6.claim(
    "A's factor is lower than without a strategy.",
    reason="Without delays A stages everything at once and flushes at once: the "
    "strategy changes nothing. With delays our groups write in step: at some D the "
    "requests of one group fall into the pauses of the other, and there is nothing "
    "to gain.",
)
def _lower_than_without(tables: Tables) -> Verdict:
    """Compare 1b with no strategy at every point."""
    return _lower_everywhere(tables, "1b")


@fig6.claim(
    "B's factor is around 1.2 (± 0.2, d > 0), because A's flushes end its exclusive "
    "access.",
    name="newcomer-around-1.2",
    reason=_WHY_FALLS,
)
def _newcomer_around(tables: Tables) -> Verdict:
    """Check all factors of B."""
    return _all_around(tables, "1b", "B", 1.2)


# --- Figure 7: strategy 2a --------------------------------------------------------

fig7 = _delta_figure("p4-fig7", "2a")


@fig7.claim("A's factor is close to 1 (1.05 at most).")
def _first_is_not_slowed_down(tables: Tables) -> Verdict:
    """Check all factors of A."""
    return _all_between("A", _select(tables, "2a", "A")["factor"], 0.95, 1.05)


@fig7.claim(
    "B's factor is 1.5 to 1.6 at D = 0 (with d = 750 ms).",
    name="second-at-once",
    reason=_WHY_TWO,
)
def _second_at_once_2a(tables: Tables) -> Verdict:
    """Check the factor of B at D = 0."""
    return _long_delay_at_once(tables, "2a", 1.5, 1.6)


@fig7.claim(
    "B's factor drops close to 1 when D exceeds the time of an I/O phase (1.1 at most)."
)
def _second_late(tables: Tables) -> Verdict:
    """Check the factors of B for D beyond its I/O time alone."""
    late = _select(tables, "2a", "B", pl.col("offset") > pl.col("alone"))["factor"]
    return Verdict(bool((late <= 1.1).all()), _range("B, late", late))


# --- Figure 8: strategy 2b --------------------------------------------------------

fig8 = _delta_figure("p4-fig8", "2b", "2a")


@fig8.claim(
    "A's factor is stable around 1.2 for all D (± 0.2, d > 0).",
    name="first-around-1.2",
    reason=_WHY_FALLS,
)
def _first_around(tables: Tables) -> Verdict:
    """Check all factors of A."""
    return _all_around(tables, "2b", "A", 1.2)


@fig8.claim(
    "B's factor is 1.6 at D = 0 (± 0.1, with d = 750 ms).",
    name="second-at-once",
    reason="While A pauses, the flush of B has the storage to itself: that is better "
    "than waiting until A is done.",
)
def _second_at_once_2b(tables: Tables) -> Verdict:
    """Check the factor of B at D = 0."""
    return _long_delay_at_once(tables, "2b", 1.5, 1.7)


@fig8.claim("B's factor decreases as D increases.")
def _second_falls(tables: Tables) -> Verdict:
    """Take the largest rise of the factor of B from one D to the next."""
    worst = 0.0
    for delay in tables.rows["delay"].unique().to_list():
        rows = _select(tables, "2b", "B", pl.col("delay") == delay).sort("offset")
        rises = present_values(rows["factor"].diff()).to_numpy()
        worst = max(worst, float(rises.max()))
    return Verdict(worst <= 1e-6, {"largest rise": worst})


@fig8.claim(
    "B's decrease comes at a higher D than with strategy 2a (d = 750 ms).",
    reason="From D = 30 s on B has nothing to flush before A is done: 2b equals 2a. "
    "For smaller D the flush of B gains from the pauses of A.",
)
def _second_falls_later_than_2a(tables: Tables) -> Verdict:
    """Compare the largest D for which the factor of B is above 1.1."""
    last = {}
    for strategy in ("2a", "2b"):
        rows = _select(tables, strategy, "B", pl.col("delay") == _LONG)
        offsets = rows.filter(pl.col("factor") > 1.1)["offset"].to_numpy()
        name = f"{strategy}, last D with a factor above 1.1"
        last[name] = float(offsets.max(initial=0.0))
    of_2a, of_2b = last.values()
    return Verdict(of_2b > of_2a, last)
