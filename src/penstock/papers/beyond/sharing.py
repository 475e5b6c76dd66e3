# SPDX-License-Identifier: MIT
"""Beyond bandwidth sharing and target allocation: sharing policies on many targets.

Bandwidth sharing (section 7) names systems with several I/O servers as future work.
Here each of its policies shares every storage target of target allocation, and decides
by the yields of whole applications. fair-share is what target allocation assumes. All
policies run on the same placements. MinYield and Efficiency are measured over the same
window, up to the smallest dedicated duration; Mean-I/O-SlowDown until an application
ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from penstock.experiments.claims import NoRowsError, Tables, Verdict, case
from penstock.experiments.output.charts import LABELS, policies_of, tidy
from penstock.experiments.output.plots import colour_of
from penstock.experiments.placement_study import Contender, PlacementStudy
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import sweep
from penstock.model import Column
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import (
    ALL_BUT_FAIR_SHARE,
    ALL_POLICIES,
    FAIR_SHARE,
    PERIODIC,
    YIELD_BASED,
)
from penstock.papers.p2.charts import new_figure
from penstock.papers.p2.study import (
    BEST_BANDWIDTH,
    GNC,
    N_SYS,
    RANDOM,
    T_CPU,
    Problems,
    label,
    per_problem,
    summary,
)

__all__ = ["sharing"]

_ALLOCATIONS: Final = (N_SYS, T_CPU, BEST_BANDWIDTH)
_PLACEMENTS: Final[dict[str, Any]] = {GNC: "-", RANDOM: "--"}
_METRICS: Final = ("min_yield", "efficiency", "mean_io_slowdown")
#: Needs no volumes, like fair-share; bandwidth sharing recommends it without them.
_SMART: Final = PERIODIC
#: Width of an interval of I/O-load.
_WIDTH: Final = 0.2
_LOADS: Final = {
    Scale.SMOKE: (0.4, 1.0),
    Scale.PAPER: (0.2, 0.4, 0.6, 0.8, 1.0, 1.2),
}
_SETS: Final = {Scale.SMOKE: 3, Scale.PAPER: 120}

#: A placement and a policy.
_Choice: TypeAlias = tuple[str, str]


def _study(scale: Scale) -> PlacementStudy:
    contenders = tuple(
        Contender(allocation, placement, policy=policy)
        for allocation in _ALLOCATIONS
        for placement in _PLACEMENTS
        for policy in ALL_POLICIES
    )
    points = sweep("striped", {}, {"load": _LOADS[scale]})
    return PlacementStudy(
        "p2-sharing", points, _SETS[scale], contenders, objectives=True
    )


def _name(allocation: str, placement: str, policy: str) -> str:
    """Return the name of a contender, as in the columns of `per_problem`."""
    place = label(allocation, placement)
    return place if policy == FAIR_SHARE else f"{place} + {policy}"


_CONTENDERS: Final = {
    _name(allocation, placement, policy): (allocation, placement, policy)
    for allocation in _ALLOCATIONS
    for placement in _PLACEMENTS
    for policy in ALL_POLICIES
}


def _table(tables: Tables) -> pl.DataFrame:
    parts = [
        summary(tables, metric, name).with_columns(
            pl.lit(allocation).alias("allocation"),
            pl.lit(placement).alias("placement"),
            pl.lit(policy).alias("policy"),
        )
        for metric in _METRICS
        for name, (allocation, placement, policy) in _CONTENDERS.items()
    ]
    return pl.concat(parts)


# --- The figure -------------------------------------------------------------------


def _draw(tables: Tables) -> Figure:
    """Draw a panel per objective and allocation, against the I/O-load."""
    table = _table(tables)
    figure = new_figure(10, 8.5)
    axes = figure.subplots(len(_METRICS), len(_ALLOCATIONS), sharex=True, sharey="row")
    for line, metric in zip(axes, _METRICS, strict=True):
        for axis, allocation in zip(line, _ALLOCATIONS, strict=True):
            in_panel = table.filter(
                pl.col("metric") == metric, pl.col("allocation") == allocation
            )
            _lines(axis, in_panel)
            tidy(axis, "both")
        line[0].set_ylabel(LABELS[metric])
    axes[-1][0].set_yscale("log")
    axes[-1][0].yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for axis, allocation in zip(axes[0], _ALLOCATIONS, strict=True):
        axis.set_title(f"allocation {allocation}", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("minimum I/O-load, I/O-load(π_sys)")
        axis.set_xlim(left=0)
    _legend(figure, policies_of(table))
    figure.supxlabel(_left_out(table), fontsize=9, color="#555555")
    return figure


def _lines(axis: Any, table: pl.DataFrame) -> None:
    for (policy, placement), rows in table.group_by(
        "policy", "placement", maintain_order=True
    ):
        axis.plot(
            rows["bin"].to_numpy(),
            rows["mean"].to_numpy(),
            linestyle=_PLACEMENTS[str(placement)],
            color=colour_of(str(policy)),
            linewidth=2.6 if policy == FAIR_SHARE else 1.4,
            zorder=4 if policy == FAIR_SHARE else 3,
        )


def _legend(figure: Figure, policies: Sequence[str]) -> None:
    handles = [Line2D([], [], color=colour_of(p), lw=3, label=p) for p in policies]
    handles += [
        Line2D([], [], color="#555555", linestyle=look, label=f"placement {name}")
        for name, look in _PLACEMENTS.items()
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=5,
        fontsize=9,
        frameon=False,
    )


def _left_out(table: pl.DataFrame) -> str:
    """Return the note on runs without a Mean-I/O-SlowDown."""
    rows = table.filter(pl.col("metric") == "mean_io_slowdown")
    share = rows.group_by("policy").agg(
        (pl.col("left_out").sum() / (pl.col("sets") + pl.col("left_out")).sum()).alias(
            "share"
        )
    )
    fair, worst = (
        share.filter(pl.col("policy") == FAIR_SHARE)["share"].sum(),
        share.sort("share").row(-1),
    )
    return (
        "Mean-I/O-SlowDown leaves out runs in which an application has hardly begun "
        f"its I/O: {fair:.0%} with {FAIR_SHARE}, {worst[1]:.0%} with {worst[0]}"
    )


sharing = figure(
    "p2-sharing",
    study=_study,
    prepare=per_problem(_METRICS, _CONTENDERS, _WIDTH),
    draw=_draw,
    summary=_table,
)


# --- Claims -----------------------------------------------------------------------


def _sets(tables: Tables) -> Problems:
    """Return the problems; all have the same number of applications."""
    return Problems(tables.rows)


def _gain(
    problems: Problems, metric: str, allocation: str, one: _Choice, other: _Choice
) -> Column:
    """Return the metric with `one` minus that with `other`, by set."""
    values, base = (
        problems.values(metric, _name(allocation, *choice)) for choice in (one, other)
    )
    return values - base


def _mean_gain(problems: Problems, metric: str, one: _Choice, other: _Choice) -> float:
    """Return the mean of `_gain` over all problems and allocations."""
    gains = [
        problems.mean(_gain(problems, metric, a, one, other)) for a in _ALLOCATIONS
    ]
    return float(np.mean(gains))


@sharing.claim(
    "On the same placements every yield-based policy has a higher MinYield than "
    "fair-share (mean gain of all problems)."
)
def _yield_based_help_the_worst_off(tables: Tables) -> Verdict:
    """Take the mean gain of every yield-based policy."""
    problems = _sets(tables)
    table = {
        policy: {
            f"placement {place}": _mean_gain(
                problems, "min_yield", (place, policy), (place, FAIR_SHARE)
            )
            for place in _PLACEMENTS
        }
        for policy in YIELD_BASED
    }
    return Verdict(
        min(gain for row in table.values() for gain in row.values()) > 0, table
    )


@sharing.claim(
    "No policy is better than fair-share in MinYield, Efficiency and Mean-I/O-SlowDown "
    "at the same time (mean differences to fair-share, placement GNC)."
)
def _no_free_lunch(tables: Tables) -> Verdict:
    """Take the mean differences of every policy to fair-share."""
    problems = _sets(tables)
    table = {
        policy: {
            LABELS[metric]: _mean_gain(
                problems, metric, (GNC, policy), (GNC, FAIR_SHARE)
            )
            for metric in _METRICS
        }
        for policy in ALL_BUT_FAIR_SHARE
    }
    better_in_all = (
        worst_off > 0 and efficiency > 0 and slowdown < 0
        for worst_off, efficiency, slowdown in (row.values() for row in table.values())
    )
    return Verdict(not any(better_in_all), table)


@sharing.claim_cases(
    *(
        case(
            f"sharing-for-placement-{allocation}",
            f"With allocation {allocation}, {_SMART} on random placements has a higher "
            "MinYield than fair-share on GNC placements at every load: the choice of "
            "the policy makes up for that of the placement (mean gain).",
            reason="With few targets each, applications on a crowded target have no "
            "other target: no order of service helps as much as another target would.",
            allocation=allocation,
        )
        for allocation in _ALLOCATIONS
    )
)
def _sharing_for_placement(tables: Tables, allocation: str) -> Verdict:
    """Compare both by interval of load."""
    problems = _sets(tables)
    one, other = (RANDOM, _SMART), (GNC, FAIR_SHARE)
    gains = problems.by_load(_gain(problems, "min_yield", allocation, one, other))
    if not gains:
        raise NoRowsError
    numbers = {f"load {load:g}": gain for load, gain in gains.items()}
    return Verdict(min(gains.values()) > 0, numbers)


@sharing.claim(
    f"GNC gains less MinYield over random placement with {_SMART} than with "
    "fair-share, for every allocation (mean gain of GNC)."
)
def _placement_worth_less(tables: Tables) -> Verdict:
    """Compare the mean gains of GNC over random placement under both policies."""
    problems = _sets(tables)
    table = {
        allocation: {
            policy: problems.mean(
                _gain(
                    problems, "min_yield", allocation, (GNC, policy), (RANDOM, policy)
                )
            )
            for policy in (FAIR_SHARE, _SMART)
        }
        for allocation in _ALLOCATIONS
    }
    return Verdict(all(row[_SMART] < row[FAIR_SHARE] for row in table.values()), table)


@sharing.claim(
    "With every policy GNC has a lower Mean-I/O-SlowDown than random placement (mean "
    "difference)."
)
def _placement_still_counts(tables: Tables) -> Verdict:
    """Take the mean difference between GNC and random placement."""
    problems = _sets(tables)
    differences = {
        policy: _mean_gain(
            problems, "mean_io_slowdown", (GNC, policy), (RANDOM, policy)
        )
        for policy in ALL_POLICIES
    }
    return Verdict(max(differences.values()) < 0, differences)
