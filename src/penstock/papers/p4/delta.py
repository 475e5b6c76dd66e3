# SPDX-License-Identifier: MIT
"""papers/4 Figures 4 to 8: delta-graphs without a strategy and with 1a, 1b, 2a, 2b.

The paper quotes one number for several curves; where these differ with the delay d, the
claim says for which d it is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Check, Claim, Tables, Verdict, some
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p4.charts import delta_panels
from penstock.papers.p4.study import ALONE_S, delta_rows, one_of

__all__ = ["FIGURES"]

_NONE: Final = "none"
_LONG: Final = 0.75
#: What "around" means.
_NEAR: Final = 0.2

_WHY_TWO: Final = (
    "Without delays both saturate the storage: whoever waits for the other is done "
    "when both are, after twice the time, in any order. Less than 2 needs pauses to "
    "hide, or a flush that is faster than the writes were, which we do not assume."
)
_WHY_FALLS: Final = (
    "Once the one flushes, both share: what each loses is in proportion to what they "
    "still have to write at the same time, most for short delays and small D, and "
    "nothing when the phases no longer overlap."
)


def _rows(strategy: str) -> Callable[[Scale], pl.DataFrame]:
    names = (_NONE,) if strategy == _NONE else (_NONE, strategy)
    return lambda scale: delta_rows(scale, names)


def _draw(strategy: str) -> Callable[[Tables], Figure]:
    base = "" if strategy == _NONE else _NONE
    return lambda tables: delta_panels(tables.rows, strategy, base)


def _of(tables: Tables, strategy: str, name: str, *more: Any) -> pl.DataFrame:
    """Return the rows of one application under one strategy."""
    return tables.rows.filter(
        pl.col("strategy") == strategy, pl.col("application") == name, *more
    )


def _span(name: str, factors: pl.Series) -> dict[str, float]:
    found = some(factors).to_numpy()
    low, high = float(found.min()), float(found.max())
    return {f"{name}, least": low, f"{name}, most": high}


def _within(
    strategy: str, name: str, low: float, high: float, *where: pl.Expr
) -> Check:
    """Return the check that all interference factors lie in an interval."""

    def check(tables: Tables) -> Verdict:
        factors = _of(tables, strategy, name, *where)["factor"]
        holds = bool(factors.is_between(low, high).all())
        return Verdict(holds, _span(name, factors))

    return check


def _starts(strategy: str, name: str, delay: float) -> Callable[[Tables], float]:
    return lambda tables: one_of(
        tables.rows,
        "factor",
        strategy=strategy,
        application=name,
        delay=delay,
        offset=0.0,
    )


def _lower(strategy: str, name: str) -> Check:
    """Return the check that a strategy lowers the factors wherever there is overlap."""

    def check(tables: Tables) -> Verdict:
        key = ["delay", "offset"]
        both = _of(tables, strategy, name).join(
            _of(tables, _NONE, name), on=key, suffix="_without"
        )
        overlap = both.filter(pl.col("factor_without") > 1.001)
        lower = overlap["factor"] < overlap["factor_without"]
        share = float(lower.sum() / max(len(lower), 1))
        at_0 = overlap.filter(pl.col("offset") == 0.0)
        gains = (at_0["factor_without"] - at_0["factor"]).to_list()
        numbers = {"share of the points where it is lower": share}
        numbers |= {
            f"gain at D = 0, d = {1000 * d:g} ms": gain
            for d, gain in zip(at_0["delay"], gains, strict=True)
        }
        return Verdict(share == 1.0, numbers)

    return check


def _late(name: str, strategy: str) -> Check:
    """Return the check that the factor is near 1 from the length of a phase on."""

    def check(tables: Tables) -> Verdict:
        mine = _of(tables, strategy, name, pl.col("offset") > pl.col("alone"))
        factors = mine["factor"]
        return Verdict(bool((factors <= 1.1).all()), _span(f"{name}, late", factors))

    return check


# --- Figure 4 ---------------------------------------------------------------------


def _delays_help(tables: Tables) -> Verdict:
    early = tables.rows.filter(pl.col("offset") <= 20)
    quick = early.filter(pl.col("delay") == 0).select(
        "application", "offset", pl.col("factor").alias("quick")
    )
    paced = early.filter(pl.col("delay") > 0).join(quick, on=["application", "offset"])
    numbers = {
        f"{name} at D = 0, d = {1000 * d:g} ms": f
        for name, d, f in early.filter(pl.col("offset") == 0)
        .select("application", "delay", "factor")
        .iter_rows()
    }
    return Verdict(bool((paced["factor"] < paced["quick"]).all()), numbers)


def _larger_than_two(tables: Tables) -> Verdict:
    later = tables.rows.filter(pl.col("offset") > 0)["factor"].to_numpy()
    most = float(tables.rows["factor"].to_numpy().max())
    numbers = {"most": most, "most for D > 0": float(later.max())}
    return Verdict(2.2 <= most <= 2.4 and later.max() > 2, numbers)


def _significant(tables: Tables) -> Verdict:
    at_0 = tables.rows.filter(pl.col("offset") == 0)["factor"]
    return Verdict(bool((at_0 > 1.5).all()), _span("at D = 0", at_0))


def _fades(tables: Tables) -> Verdict:
    late = tables.rows.filter(pl.col("offset") >= 30)
    quick = late.filter(pl.col("delay") == 0)["factor"]
    numbers = _span("d = 0, D >= 30 s", quick)
    numbers |= _span("any d, D >= 30 s", late["factor"])
    at_0 = tables.rows.filter(pl.col("offset") == 0)["factor"].to_numpy().min()
    small = bool((quick <= 1.05).all())
    return Verdict(small and late["factor"].to_numpy().max() < at_0, numbers)


_FIG4: Final = "papers/4 section V-B.1, Figure 4"
_CLAIMS4: Final = (
    Claim(
        "delays-lower-interference",
        _FIG4,
        "With a delay between requests, both applications have a lower interference "
        "factor than without (for D up to 20 s).",
        _delays_help,
    ),
    Claim(
        "larger-than-two",
        _FIG4,
        "Though the applications are identical, the factor is often larger than 2, up "
        "to 2.3, even if they do not start at the same time (2.3 is put in).",
        _larger_than_two,
    ),
    Claim(
        "significant-at-once",
        _FIG4,
        "When both start at the same time the slowdown cannot be ignored (above 1.5).",
        _significant,
    ),
    Claim(
        "fades-with-the-offset",
        _FIG4,
        "For D beyond 25 to 30 s the factor is reduced, the first application being "
        "almost done (1.05 at most without delays).",
        _fades,
    ),
)

# --- Figures 5 to 8 ---------------------------------------------------------------


def _around(strategy: str, name: str, value: float, *where: pl.Expr) -> Check:
    """Return the check that all factors with delays are near a number of the paper."""

    def check(tables: Tables) -> Verdict:
        paced = pl.col("delay") > 0
        factors = _of(tables, strategy, name, paced, *where)["factor"]
        near = factors.is_between(value - _NEAR, value + _NEAR)
        return Verdict(bool(near.all()), _span(name, factors))

    return check


def _at_once(strategy: str, name: str, low: float, high: float) -> Check:
    """Return the check of the factor at D = 0 with delays of 750 ms."""

    def check(tables: Tables) -> Verdict:
        delays = tables.rows["delay"].unique().sort().to_list()
        found = {d: _starts(strategy, name, d)(tables) for d in delays}
        numbers = {f"{name}, d = {1000 * d:g} ms": f for d, f in found.items()}
        return Verdict(low <= found[_LONG] <= high, numbers)

    return check


def _falls(strategy: str, name: str) -> Check:
    """Return the check that the factor never rises with D."""

    def check(tables: Tables) -> Verdict:
        worst = 0.0
        for delay in tables.rows["delay"].unique().to_list():
            mine = _of(tables, strategy, name, pl.col("delay") == delay).sort("offset")
            rises = mine["factor"].diff().drop_nulls().to_numpy()
            worst = max(worst, float(rises.max()))
        return Verdict(worst <= 1e-6, {"largest rise": worst})

    return check


_FIG5: Final = "papers/4 section V-B.2, Figure 5"
_CLAIMS5: Final = (
    Claim(
        "newcomer-is-not-slowed-down",
        _FIG5,
        "B has exclusive access: its factor is around 1 (1.05 at most).",
        _within("1a", "B", 0.95, 1.05),
    ),
    Claim(
        "staging-range",
        _FIG5,
        "A's factor is 1.8 at most (the paper: 1.2 to 1.8, instead of 1.2 to 2.2).",
        _within("1a", "A", 1.0, 1.8, pl.col("offset") < ALONE_S),
        note=_WHY_TWO,
    ),
    Claim(
        "staging-beats-interference",
        _FIG5,
        "Staging gives A a lower factor than interfering with B.",
        _lower("1a", "A"),
        note="At D = 0 it does. Later A has little left to write and would share with "
        "B for a short time only, but must wait until B is done.",
    ),
)

_FIG6: Final = "papers/4 section V-B.2, Figure 6"
_CLAIMS6: Final = (
    Claim(
        "kept-around-1.5",
        _FIG6,
        "For D under 30 s A's factor is kept around 1.5 (± 0.2, d > 0).",
        _around("1b", "A", 1.5, pl.col("offset") < ALONE_S),
        note=_WHY_FALLS,
    ),
    Claim(
        "drops-to-1.2",
        _FIG6,
        "For larger D A's factor drops to 1.2 (1.25 at most).",
        _within("1b", "A", 0.95, 1.25, pl.col("offset") > ALONE_S),
    ),
    Claim(
        "lower-than-without",
        _FIG6,
        "A's factor is lower than without a strategy.",
        _lower("1b", "A"),
        note="Without delays all is staged at once and flushed at once: the strategy "
        "changes nothing. With delays our groups write in step: at some D the requests "
        "of the one fall into the pauses of the other, and nothing is to be gained.",
    ),
    Claim(
        "newcomer-around-1.2",
        _FIG6,
        "B's factor is around 1.2 (± 0.2, d > 0), A's flushes taking its exclusive "
        "access away.",
        _around("1b", "B", 1.2),
        note=_WHY_FALLS,
    ),
)

_FIG7: Final = "papers/4 section V-B.2, Figure 7"
_CLAIMS7: Final = (
    Claim(
        "first-is-not-slowed-down",
        _FIG7,
        "A's factor is close to 1 (1.05 at most).",
        _within("2a", "A", 0.95, 1.05),
    ),
    Claim(
        "second-at-once",
        _FIG7,
        "B's factor is 1.5 to 1.6 at D = 0 (with d = 750 ms).",
        _at_once("2a", "B", 1.5, 1.6),
        note=_WHY_TWO,
    ),
    Claim(
        "second-late",
        _FIG7,
        "B's factor drops close to 1 when D exceeds the time of an I/O phase (1.1 at "
        "most).",
        _late("B", "2a"),
    ),
)

_FIG8: Final = "papers/4 section V-B.2, Figure 8"


def _later_than_2a(tables: Tables) -> Verdict:
    """Compare with 2a the largest D for which B is above 1.1."""
    ends = {}
    for strategy in ("2a", "2b"):
        mine = _of(tables, strategy, "B", pl.col("delay") == _LONG)
        above = mine.filter(pl.col("factor") > 1.1)["offset"]
        ends[f"{strategy}, last D with a factor above 1.1"] = float(
            above.to_numpy().max(initial=0.0)
        )
    first, second = ends.values()
    return Verdict(second > first, ends)


_CLAIMS8: Final = (
    Claim(
        "first-around-1.2",
        _FIG8,
        "A's factor is stable around 1.2 for all D (± 0.2, d > 0).",
        _around("2b", "A", 1.2),
        note=_WHY_FALLS,
    ),
    Claim(
        "second-at-once",
        _FIG8,
        "B's factor is 1.6 at D = 0 (± 0.1, with d = 750 ms).",
        _at_once("2b", "B", 1.5, 1.7),
        note="While A pauses, the flush of B has the storage to itself: that is better "
        "than waiting for A to be done.",
    ),
    Claim(
        "second-falls",
        _FIG8,
        "B's factor decreases as D increases.",
        _falls("2b", "B"),
    ),
    Claim(
        "second-falls-later-than-2a",
        _FIG8,
        "B's decrease comes at a higher D than with strategy 2a (d = 750 ms).",
        _later_than_2a,
        note="From 30 s on B has nothing to flush before A is done: 2b is 2a there. "
        "Before that it is the pauses of A that the flush of B gains from.",
    ),
)


def _rows8(scale: Scale) -> pl.DataFrame:
    return delta_rows(scale, (_NONE, "2a", "2b"))


def _figure(
    number: int, strategy: str, title: str, source: str, claims: tuple[Claim, ...]
) -> Reproduction:
    return Reproduction(
        name=f"p4-fig{number}",
        title=title,
        source=source,
        study=_rows8 if number == 8 else _rows(strategy),
        draw=_draw(strategy),
        claims=list(claims),
    )


FIGURES: Final = {
    figure.name: figure
    for figure in (
        _figure(4, _NONE, "Interference without a strategy", _FIG4, _CLAIMS4),
        _figure(5, "1a", "Strategy 1a: A stages until B is done", _FIG5, _CLAIMS5),
        _figure(6, "1b", "Strategy 1b: A stages, and flushes early", _FIG6, _CLAIMS6),
        _figure(7, "2a", "Strategy 2a: B stages until A is done", _FIG7, _CLAIMS7),
        _figure(8, "2b", "Strategy 2b: B stages, and flushes early", _FIG8, _CLAIMS8),
    )
}
