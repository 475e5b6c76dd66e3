# SPDX-License-Identifier: MIT
"""Figures 12 and 13 of target allocation (section 6.3): OSTs instead of I/O nodes.

Our OST profiles are generated from a fit (`penstock.workloads.profiles.ost_profiles`);
the paper measured its profiles on PlaFRIM. All allocations use the placement
greedy-non-clairvoyant (GNC).
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from penstock.experiments.claims import NoRowsError, Tables, Verdict
from penstock.experiments.output.charts import LABELS
from penstock.experiments.placement_study import PlacementStudy
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p2.charts import LoadPanel, load_grid
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    GENERATED,
    IDLETIME,
    INFORMED,
    IO_NODES,
    N_SYS,
    OSTS,
    SLOWDOWN,
    STATIC,
    T_CPU,
    Problems,
    at_every_number,
    case_study,
    label,
    per_problem,
    summary,
)

__all__ = ["fig12", "fig13"]

_BOTH: Final = (SLOWDOWN, IDLETIME)
#: Contender -> its name in the legend; mckp, which is far worse, is left out.
_LINES: Final = {label(name): name for name in ALLOCATIONS}
_PREPARE: Final = per_problem(_BOTH, _LINES)


def _both_studies(scale: Scale) -> tuple[PlacementStudy, ...]:
    return case_study(OSTS)(scale), case_study(IO_NODES)(scale)


def _of_case(tables: Tables, case: str) -> Tables:
    return Tables(tables.rows.filter(pl.col("case") == case), tables.times)


def _outcome_table(tables: Tables) -> pl.DataFrame:
    return pl.concat(summary(tables, m, name) for m in _BOTH for name in _LINES)


def _draw_outcome(tables: Tables) -> Figure:
    labels = ("Mean-I/O-SlowDown", "Machine-Idletime\n(fraction of node time)")
    panels = [
        LoadPanel(metric, _LINES, text)
        for metric, text in zip(_BOTH, labels, strict=True)
    ]
    return load_grid(_outcome_table(tables), panels, GENERATED)


def _difference_table(tables: Tables) -> pl.DataFrame:
    """Return the mean with OSTs over that with I/O nodes, minus 1, by K and load.

    The two cases have different problems, so means are compared, not pairs. ``error``
    is half the 95 % confidence interval; ``low`` and ``high`` are its ends.
    """
    key = ["metric", "contender", "K", "bin"]
    osts, nodes = (_outcome_table(_of_case(tables, case)) for case in (OSTS, IO_NODES))
    joined = osts.join(nodes, on=key, suffix="_nodes", maintain_order="left")
    ratio = pl.col("mean") / pl.col("mean_nodes")
    parts = (pl.col(f"error{s}") / pl.col(f"mean{s}") for s in ("", "_nodes"))
    error = ratio * sum((part**2 for part in parts), start=pl.lit(0.0)).sqrt()
    return joined.select(
        *key,
        pl.min_horizontal("sets", "sets_nodes").alias("sets"),
        (pl.col("left_out") + pl.col("left_out_nodes")).alias("left_out"),
        pl.min_horizontal("complete", "complete_nodes").alias("complete"),
        (ratio - 1).alias("mean"),
        error.alias("error"),
    ).with_columns(
        (pl.col("mean") - pl.col("error")).alias("low"),
        (pl.col("mean") + pl.col("error")).alias("high"),
    )


def _draw_difference(tables: Tables) -> Figure:
    panels = [
        LoadPanel(
            metric,
            _LINES,
            f"{LABELS[metric]}, OSTs over\nI/O nodes, minus 1 (%)",
            per_cent=True,
            error=True,
        )
        for metric in _BOTH
    ]
    return load_grid(_difference_table(tables), panels, GENERATED)


# --- Figure 12 --------------------------------------------------------------------

fig12 = figure(
    "p2-fig12",
    study=case_study(OSTS),
    prepare=_PREPARE,
    draw=_draw_outcome,
    summary=_outcome_table,
)


def _over_n_sys(problems: Problems) -> dict[float, float]:
    """Return the slowdown of best-bandwidth over that of n-sys, minus 1, by load."""
    ratios = problems.by_load(
        problems.ratios(SLOWDOWN, label(BEST_BANDWIDTH), label(N_SYS))
    )
    if not ratios:
        raise NoRowsError
    return ratios


@fig12.claim(
    "When there is little I/O stress best-bandwidth performs better than n-sys "
    "(slowdown over that of n-sys, minus 1, at the lowest load, in %).",
)
@at_every_number
def _bba_better_under_little_stress(problems: Problems) -> Verdict:
    """Compare best-bandwidth with n-sys at the lowest load."""
    ratios = _over_n_sys(problems)
    lowest = min(ratios)
    numbers = {"best-bandwidth over n-sys": 100 * ratios[lowest], "at load": lowest}
    return Verdict(ratios[lowest] < 0, numbers)


@fig12.claim(
    "As the stress increases, the performance of best-bandwidth quickly degrades "
    "(slower than n-sys at all loads from 0.45; over n-sys, minus 1, the least of "
    "these loads, in %).",
)
@at_every_number
def _bba_degrades_quickly(problems: Problems) -> Verdict:
    """Compare best-bandwidth with n-sys at loads from 0.45."""
    late = {
        load: ratio for load, ratio in _over_n_sys(problems).items() if load >= 0.45
    }
    if not late:
        raise NoRowsError
    load = min(late, key=lambda load: late[load])
    numbers = {"best-bandwidth over n-sys": 100 * late[load], "at load": load}
    return Verdict(late[load] > 0, numbers)


@fig12.claim(
    "t-cpu is able to match best-bandwidth when needed (where best-bandwidth is ahead "
    "of n-sys t-cpu is at most 5 % slower) while being I/O stress aware (elsewhere it "
    "is faster than best-bandwidth; the most that it is slower, in %).",
)
@at_every_number
def _ta_matches_bba_when_needed(problems: Problems) -> Verdict:
    """Compare t-cpu with best-bandwidth at every load."""
    slower = problems.by_load(
        problems.ratios(SLOWDOWN, label(T_CPU), label(BEST_BANDWIDTH))
    )
    ahead = {load for load, ratio in _over_n_sys(problems).items() if ratio < 0}
    groups = {
        "where needed": [ratio for load, ratio in slower.items() if load in ahead],
        "elsewhere": [ratio for load, ratio in slower.items() if load not in ahead],
    }
    most = {name: 100 * max(ratios) for name, ratios in groups.items() if ratios}
    holds = most.get("where needed", 0.0) <= 5 and most.get("elsewhere", 0.0) <= 0
    return Verdict(holds, most)


def _static_behind_best(problems: Problems) -> dict[str, float]:
    """Return how far static is behind the best allocation, for both metrics (%).

    At every load this is the mean of static over that of the best, minus 1; then the
    mean over the loads.
    """
    behind = {}
    for metric in _BOTH:
        values = {name: problems.means(metric, label(name)) for name in ALLOCATIONS}
        gaps = [
            mean / min(means[load] for means in values.values() if load in means) - 1
            for load, mean in values[STATIC].items()
        ]
        if not gaps:
            raise NoRowsError
        behind[LABELS[metric]] = 100 * float(np.mean(gaps))
    return behind


@fig12.claim(
    "static is excellent with OSTs (behind the best allocation by at most 10 %, in the "
    "mean of the loads; in %).",
    reason="With K = 20 n-sys gives nearly every application an OST of its own and "
    "is the best: its slowdown stays at 2.3 at all loads, where that of "
    "static grows from 2.4 to 3.5; with K = 40 static is 10.1 % behind.",
)
@at_every_number
def _static_excellent(problems: Problems) -> Verdict:
    """Compare static with the best allocation in both metrics."""
    behind = _static_behind_best(problems)
    return Verdict(max(behind.values()) <= 10, behind)


# --- Figure 13 --------------------------------------------------------------------

fig13 = figure(
    "p2-fig13",
    study=_both_studies,
    prepare=_PREPARE,
    draw=_draw_difference,
    summary=_difference_table,
)


def _differences(
    osts: Problems, nodes: Problems, metric: str, name: str
) -> dict[float, float]:
    """Return the mean with OSTs over that with I/O nodes, minus 1, by load."""
    own, base = (problems.means(metric, label(name)) for problems in (osts, nodes))
    shared = {load: mean / base[load] - 1 for load, mean in own.items() if load in base}
    if not shared:
        raise NoRowsError
    return shared


#: The checks of Figure 13 take the problems of OSTs, then those of I/O nodes.
_compared_at_every_number: Final = partial(at_every_number, cases=(OSTS, IO_NODES))


@fig13.claim(
    "All differences are very low, below 5 % (mean at every load; the largest, in %).",
    reason="Our OST profiles are generated and gain less from more targets than the "
    "I/O nodes (ascents on 8 targets 2.5 instead of 6.8 times), so that "
    "best-bandwidth pays more congestion for less and static loses less.",
)
@_compared_at_every_number
def _differences_below_5_per_cent(osts: Problems, nodes: Problems) -> Verdict:
    """Check the difference of every allocation but the random one at every load."""
    table = {
        LABELS[metric]: {
            name: 100 * max(_differences(osts, nodes, metric, name).values(), key=abs)
            for name in INFORMED
        }
        for metric in _BOTH
    }
    worst = max(abs(value) for row in table.values() for value in row.values())
    return Verdict(worst < 5, table)


@fig13.claim(
    "The difference of best-bandwidth increases with the I/O-load: OSTs are more "
    "sensitive to contention (rank correlation of load and difference at least 0.5; "
    "differences in %).",
    reason="The difference grows up to an I/O-load of 0.5 (K = 20), 0.6 (40) or 0.7 "
    "(60) and shrinks above, where the targets are busy in both cases.",
)
@_compared_at_every_number
def _bba_difference_grows(osts: Problems, nodes: Problems) -> Verdict:
    """Correlate the difference of the slowdowns with the load."""
    differences = _differences(osts, nodes, SLOWDOWN, BEST_BANDWIDTH)
    loads, values = list(differences), list(differences.values())
    correlation = float(spearmanr(loads, values).statistic)
    numbers = {
        "rank correlation": correlation,
        "lowest load": 100 * values[0],
        "highest load": 100 * values[-1],
    }
    return Verdict(correlation >= 0.5, numbers)


def _cut_off(problems: Problems) -> float:
    """Return the highest load at which best-bandwidth is ahead of n-sys; 0 if none."""
    ratios = _over_n_sys(problems)
    return max((load for load, ratio in ratios.items() if ratio < 0), default=0.0)


@fig13.claim(
    "best-bandwidth falls behind n-sys at a much lower I/O-load than with I/O nodes "
    "(last load at which it is ahead: half as high or less).",
)
@_compared_at_every_number
def _earlier_cut_off(osts: Problems, nodes: Problems) -> Verdict:
    """Compare the last loads at which best-bandwidth is ahead.

    Where it is never ahead with I/O nodes, it cannot fall behind earlier with OSTs.
    """
    numbers = {"OSTs": _cut_off(osts), "I/O nodes": _cut_off(nodes)}
    holds = numbers["I/O nodes"] > 0 and 2 * numbers["OSTs"] <= numbers["I/O nodes"]
    return Verdict(holds, numbers)


@fig13.claim(
    "static does not behave the same with I/O nodes: its slowdown is within 10 % of "
    "the best with OSTs only (mean of the loads; in %).",
    reason="With K = 20 n-sys gives nearly every application an OST of its own and "
    "is the best, by 26 %; with K = 40 static is 10.1 % behind.",
)
@_compared_at_every_number
def _static_unreliable(osts: Problems, nodes: Problems) -> Verdict:
    """Compare static with the best allocation, with OSTs and with I/O nodes."""
    name = LABELS[SLOWDOWN]
    numbers = {
        "OSTs": _static_behind_best(osts)[name],
        "I/O nodes": _static_behind_best(nodes)[name],
    }
    return Verdict(numbers["OSTs"] <= 10 < numbers["I/O nodes"], numbers)
