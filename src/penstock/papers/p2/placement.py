# SPDX-License-Identifier: MIT
"""Figures 5 to 7 and 14 to 16 of target allocation: effects of the placement.

Figures 5 to 7 (section 6.1.1) are about I/O nodes, 14 to 16 (appendix B) about OSTs.
GC is greedy-clairvoyant placement, GNC greedy-non-clairvoyant. The
I/O-spread is the share of the time in which the
busiest target is busy minus that of the idlest one.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import NoRowsError, Tables, Verdict, case
from penstock.experiments.output.charts import BOXES
from penstock.model import Column
from penstock.papers.p2.charts import LoadPanel, load_grid, spread_boxes
from penstock.papers.p2.pairs import figure_pair
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    CONCLUSIONS,
    GC,
    GNC,
    INFORMED,
    PLACEMENTS,
    RANDOM,
    SHORT_NAMES,
    SLOWDOWN,
    Problems,
    at_every_number,
    label,
    per_problem,
    problems_by_number,
    summary,
)

__all__ = ["fig5", "fig6", "fig7", "fig14", "fig15", "fig16"]

_SPREAD: Final = "io_spread"
_CORRELATION: Final = "users_correlation"
#: What "very little" means: section 6.3 uses "very low" for 5 %.
_LITTLE: Final = 0.05
#: Middle of the interval of load of Figure 6: 0.5 +- 0.05.
_HALF: Final = 0.5
#: Columns of a table of I/O-spreads.
_SPREAD_ROWS: Final = {
    "allocation": pl.String,
    "placement": pl.String,
    "K": pl.Int64,
    _SPREAD: pl.Float64,
}
_EVERY: Final = tuple(label(a, p) for a in ALLOCATIONS for p in PLACEMENTS)


def _against_gc(problems: Problems, allocation: str, placement: str = GNC) -> Column:
    """Return the slowdown with a placement over that with GC, minus 1, by problem."""
    return problems.ratios(
        SLOWDOWN, label(allocation, placement), label(allocation, GC)
    )


# --- Figures 5 and 14: slowdown ---------------------------------------------------


def _slowdown_table(tables: Tables) -> pl.DataFrame:
    return pl.concat(
        summary(
            tables,
            f"{SLOWDOWN} over GC",
            label(a, p),
            partial(_against_gc, allocation=a, placement=p),
        )
        for a in ALLOCATIONS
        for p in (GNC, RANDOM)
    )


def _draw_slowdown(tables: Tables, note: str) -> Figure:
    panels = [
        LoadPanel(
            f"{SLOWDOWN} over GC",
            {label(allocation, placement): allocation for allocation in ALLOCATIONS},
            "Mean-I/O-SlowDown over\nthat with GC, minus 1 (%)",
            f"placement {placement}",
            per_cent=True,
        )
        for placement in (GNC, RANDOM)
    ]
    return load_grid(_slowdown_table(tables), panels, note)


fig5, fig14 = figure_pair(
    "p2-fig5",
    "p2-fig14",
    _draw_slowdown,
    _slowdown_table,
    per_problem((SLOWDOWN,), _EVERY),
)


def _largest(problems: Problems, allocation: str) -> float:
    """Return the difference between GNC and GC at the load where it is largest."""
    differences = problems.by_load(_against_gc(problems, allocation)).values()
    if not differences:
        raise NoRowsError
    return max(differences, key=abs)


@fig5.claim(
    "Whether GC or GNC is used has very little impact on performance, except with "
    "random allocation (within 5 % in the mean of every load; the largest difference, "
    "in %).",
    reason="GNC puts an application on neighbouring targets, so that it shares them "
    "with fewer others (18 instead of 28 with best-bandwidth and K = 60): it "
    "is up to 9 % faster than GC; GC is up to 8 % faster with t-cpu (K = 20) "
    "and up to 5 % with n-sys (K = 40).",
)
@at_every_number
def _gnc_like_gc(problems: Problems) -> Verdict:
    """Compare GNC with GC for all allocations but the random one."""
    largest = {name: _largest(problems, name) for name in INFORMED}
    worst = max(abs(value) for value in largest.values())
    return Verdict(worst <= _LITTLE, _in_per_cent(largest))


@fig5.claim(
    "With random allocation it matters whether GC or GNC is used (over 5 % in the mean "
    "of a load; the largest difference, in %).",
    reason="GC is better with K = 20 (by up to 4.5 %) and GNC with K = 60 (by up to "
    "4.9 %), a little less than 5 %; with K = 40 they differ by 1.4 % at most.",
)
@at_every_number
def _random_allocation_excepted(problems: Problems) -> Verdict:
    """Compare GNC with GC for random allocation."""
    largest = _largest(problems, RANDOM)
    return Verdict(abs(largest) > _LITTLE, _in_per_cent({RANDOM: largest}))


@fig5.claim(
    "Random placement does have an impact: with every allocation but the random one "
    "its slowdown is over 5 % above that of GC, in the mean of all problems (in %).",
)
@at_every_number
def _random_placement_matters(problems: Problems) -> Verdict:
    """Compare random placement with GC for all allocations but the random one."""
    means = {
        name: problems.mean(_against_gc(problems, name, RANDOM)) for name in INFORMED
    }
    return Verdict(min(means.values()) > _LITTLE, _in_per_cent(means))


@fig5.claim(
    "Balancing the number of applications per target gives results as good as a "
    "placement that knows the I/O (at most 5 % worse in the mean of all problems; in "
    "%).",
    source=CONCLUSIONS,
)
@at_every_number
def _naive_placement_will_do(problems: Problems) -> Verdict:
    """Compare GNC with GC for every allocation."""
    means = {name: problems.mean(_against_gc(problems, name)) for name in ALLOCATIONS}
    return Verdict(max(means.values()) <= _LITTLE, _in_per_cent(means))


def _in_per_cent(fractions: dict[str, float]) -> dict[str, float]:
    return {name: 100 * value for name, value in fractions.items()}


# --- Figures 6 and 15: I/O-spread at load 0.5 -------------------------------------


def _half_loaded(tables: Tables) -> pl.DataFrame:
    """Return the I/O-spreads at load 0.5 by problem, allocation and placement."""
    parts = [
        pl.DataFrame(
            {"allocation": a, "placement": p, "K": number, _SPREAD: values},
        ).with_columns(pl.col(_SPREAD).fill_nan(None))
        for number, problems in problems_by_number(tables).items()
        for a in ALLOCATIONS
        for p in PLACEMENTS
        for load, values in problems.at_loads(problems.values(_SPREAD, label(a, p)))
        if load == _HALF
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema=_SPREAD_ROWS)


def _balance_table(tables: Tables) -> pl.DataFrame:
    key = ("K", "allocation", "placement")
    return (
        _half_loaded(tables)
        .group_by(key)
        .agg(
            pl.col(_SPREAD).count().alias("sets"),
            pl.mean(_SPREAD).alias("mean"),
            pl.quantile(_SPREAD, 0.1, "linear").alias("low"),
            pl.quantile(_SPREAD, 0.9, "linear").alias("high"),
        )
        .sort(key)
    )


def _draw_balance(tables: Tables, note: str) -> Figure:
    text = f"minimum I/O-load 0.5 ± 0.05; {BOXES.replace('instances', 'problems')}"
    rows = _half_loaded(tables)
    return spread_boxes(rows, PLACEMENTS, f"{text}; {note}" if note else text)


fig6, fig15 = figure_pair(
    "p2-fig6",
    "p2-fig15",
    _draw_balance,
    _balance_table,
    per_problem((_SPREAD, SLOWDOWN, _CORRELATION), _EVERY),
)


def _at_half(problems: Problems, values: Column) -> float:
    return problems.mean(values, _HALF, _HALF)


@fig6.claim_cases(
    case(
        "gc-balances-best",
        "GC balances I/O over the targets better than GNC (smaller mean I/O-spread "
        "with every allocation; I/O-spread of GNC minus that of GC).",
        better=GC,
        worse=GNC,
    ),
    case(
        "gnc-balances-better-than-random",
        "GNC still balances I/O better than random placement (I/O-spread of random "
        "placement minus that of GNC).",
        better=GNC,
        worse=RANDOM,
    ),
)
@at_every_number
def _better_balanced(problems: Problems, better: str, worse: str) -> Verdict:
    """Compare the mean I/O-spreads of two placements, for every allocation."""
    gaps = {
        name: _at_half(
            problems,
            problems.values(_SPREAD, label(name, worse))
            - problems.values(_SPREAD, label(name, better)),
        )
        for name in ALLOCATIONS
    }
    return Verdict(min(gaps.values()) > 0, gaps)


@fig6.claim(
    "The occupancy of a target is correlated to the number of its applications (r over "
    "0.3 in the mean of all problems with random placement)."
)
@at_every_number
def _occupancy_follows_users(problems: Problems) -> Verdict:
    """Take the mean correlation over all problems with random placement."""
    names = [label(name, RANDOM) for name in ALLOCATIONS]
    correlation = float(
        np.mean([problems.mean(problems.values(_CORRELATION, name)) for name in names])
    )
    return Verdict(correlation > 0.3, {"correlation r": correlation})


@fig6.claim(
    "GC and GNC balance differently and perform alike: with every allocation but the "
    "random one the I/O-spread of GNC is over 10 % wider, its slowdown within 5 % "
    "(GNC over GC, minus 1, in %).",
    reason="With K = 20 n-sys gives nearly every application a target of its own, "
    "and nothing is left to balance; with K = 60 GNC is 7 to 8 % faster with t-cpu "
    "and best-bandwidth, because applications share targets with fewer others.",
)
@at_every_number
def _balance_does_not_matter(problems: Problems) -> Verdict:
    """Compare I/O-spread and slowdown of GNC and GC at load 0.5."""
    table, holds = {}, []
    for name in INFORMED:
        own, base = (
            _at_half(problems, problems.values(_SPREAD, label(name, placement)))
            for placement in (GNC, GC)
        )
        wider, slower = own / base - 1, _at_half(problems, _against_gc(problems, name))
        table[name] = _in_per_cent({"I/O-spread": wider, "Mean-I/O-SlowDown": slower})
        holds.append(wider > 0.1 and abs(slower) <= _LITTLE)
    return Verdict(all(holds), table)


# --- Figures 7 and 16: I/O-spread by load -----------------------------------------


def _spread_by_load(tables: Tables) -> pl.DataFrame:
    names = (label(BEST_BANDWIDTH, placement) for placement in PLACEMENTS)
    return pl.concat(summary(tables, _SPREAD, name) for name in names)


def _draw_spread_by_load(tables: Tables, note: str) -> Figure:
    panel = LoadPanel(
        _SPREAD,
        {label(BEST_BANDWIDTH, placement): placement for placement in PLACEMENTS},
        f"I/O-spread with {BEST_BANDWIDTH}:\nbusiest minus idlest target",
        error=True,
    )
    return load_grid(_spread_by_load(tables), [panel], note)


fig7, fig16 = figure_pair(
    "p2-fig7",
    "p2-fig16",
    _draw_spread_by_load,
    _spread_by_load,
    per_problem((_SPREAD,), (label(BEST_BANDWIDTH, p) for p in PLACEMENTS)),
)


@fig7.claim(
    "The order of the I/O-spreads, GC < GNC < random, holds for different values of "
    "I/O-load (in every interval; the smallest differences, and their loads).",
)
@at_every_number
def _order_at_every_load(problems: Problems) -> Verdict:
    """Compare the three placements in every interval of load."""
    spreads = {
        placement: problems.values(_SPREAD, label(BEST_BANDWIDTH, placement))
        for placement in PLACEMENTS
    }
    numbers = {}
    for better, worse in ((GC, GNC), (GNC, RANDOM)):
        gaps = problems.by_load(spreads[worse] - spreads[better])
        if not gaps:
            raise NoRowsError
        load = min(gaps, key=lambda load: gaps[load])
        numbers[f"{SHORT_NAMES[worse]} - {SHORT_NAMES[better]}"] = gaps[load]
        numbers[f"at load ({SHORT_NAMES[worse]})"] = load
    holds = all(value > 0 for name, value in numbers.items() if " - " in name)
    return Verdict(holds, numbers)
