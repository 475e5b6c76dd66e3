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
from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from penstock.experiments.claims import Tables, Verdict, case
from penstock.experiments.output.charts import LABELS, policies_of, tidy
from penstock.experiments.output.plots import colour_of
from penstock.experiments.placement_study import Contender, PlacementStudy
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import sweep
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
    binned,
    spread,
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


def _table(tables: Tables) -> pl.DataFrame:
    key = ("allocation", "placement")
    parts = [
        summary(rows, metric, "policy", _WIDTH).with_columns(
            pl.lit(allocation).alias(key[0]), pl.lit(placement).alias(key[1])
        )
        for (allocation, placement), rows in tables.rows.group_by(
            key, maintain_order=True
        )
        for metric in _METRICS
    ]
    return pl.concat(parts).sort("metric", *key, "policy", "bin")


# --- The figure -------------------------------------------------------------------


def _draw(tables: Tables) -> Figure:
    """Draw a panel per objective and allocation, against the I/O-load."""
    table = _table(tables)
    figure = new_figure(13, 10)
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
    figure.supxlabel(_left_out(table), fontsize=8, color="#555555")
    return figure


def _lines(axis: Any, table: pl.DataFrame) -> None:
    for (policy, placement), rows in table.group_by("policy", "placement"):
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


sharing = figure("p2-sharing", study=_study, draw=_draw, summary=_table)


# --- Claims -----------------------------------------------------------------------


def _paired(
    tables: Tables, one: tuple[str, str], other: tuple[str, str], metric: str
) -> pl.DataFrame:
    """Return the rows of `one` with `gain`: `metric` minus that of `other`.

    `one` and `other` are a placement and a policy each. Rows are paired by allocation
    and problem.
    """
    key = ["allocation", "point", "instance"]
    rows, base_rows = (
        tables.rows.filter(pl.col("placement") == placement, pl.col("policy") == policy)
        for placement, policy in (one, other)
    )
    base = base_rows.select(*key, pl.col(metric).alias("base"))
    joined = rows.join(base, on=key, maintain_order="left")
    return joined.with_columns((pl.col(metric) - pl.col("base")).alias("gain"))


def _mean(numbers: dict[str, float], name: str) -> float:
    return numbers.get(f"{name}, mean", 0.0)


@sharing.claim(
    "On the same placements every yield-based policy has a higher MinYield than "
    "fair-share (mean gain over all sets)."
)
def _yield_based_help_the_worst_off(tables: Tables) -> Verdict:
    """Take the mean gain of every yield-based policy."""
    numbers: dict[str, float] = {}
    for policy in YIELD_BASED:
        gains = pl.concat(
            [
                _paired(tables, (place, policy), (place, FAIR_SHARE), "min_yield")[
                    "gain"
                ]
                for place in _PLACEMENTS
            ]
        )
        numbers |= spread(policy, gains)
    return Verdict(all(_mean(numbers, p) > 0 for p in YIELD_BASED), numbers)


@sharing.claim(
    "No policy is better than fair-share in MinYield, Efficiency and Mean-I/O-SlowDown "
    "at the same time (mean differences, placement GNC)."
)
def _no_free_lunch(tables: Tables) -> Verdict:
    """Take the mean differences of every policy to fair-share."""
    numbers: dict[str, float] = {}
    better_in_all = []
    for policy in ALL_BUT_FAIR_SHARE:
        means = []
        for metric in _METRICS:
            name = f"{policy}, {LABELS[metric]}"
            gains = _paired(tables, (GNC, policy), (GNC, FAIR_SHARE), metric)["gain"]
            statistics = spread(name, gains)
            numbers |= {k: v for k, v in statistics.items() if k.endswith("mean")}
            means.append(_mean(statistics, name))
        better_in_all.append(means[0] > 0 and means[1] > 0 and means[2] < 0)
    return Verdict(not any(better_in_all), numbers)


@sharing.claim_cases(
    *(
        case(
            f"sharing-for-placement-{allocation}",
            f"With allocation {allocation}, {_SMART} on random placements has a higher "
            "MinYield than fair-share on GNC placements at every load: the choice of "
            "the policy makes up for that of the placement.",
            reason="With few targets each, applications on a crowded target have no "
            "other target: no order of service helps as much as another target would.",
            allocation=allocation,
        )
        for allocation in _ALLOCATIONS
    )
)
def _sharing_for_placement(tables: Tables, allocation: str) -> Verdict:
    """Compare both by interval of load."""
    rows = binned(
        _paired(tables, (RANDOM, _SMART), (GNC, FAIR_SHARE), "min_yield"), _WIDTH
    ).filter(pl.col("allocation") == allocation)
    numbers: dict[str, float] = {}
    for (load,), at_load in sorted(rows.group_by("bin"), key=lambda item: item[0]):
        numbers |= spread(f"load {load:g}", at_load["gain"])
    means = [v for k, v in numbers.items() if k.endswith("mean")]
    return Verdict(bool(means) and min(means) > 0, numbers or {"sets": 0.0})


@sharing.claim(
    f"GNC gains less MinYield over random placement with {_SMART} than with "
    "fair-share, for every allocation."
)
def _placement_worth_less(tables: Tables) -> Verdict:
    """Compare the mean gains of GNC over random placement under both policies."""
    numbers: dict[str, float] = {}
    holds = []
    for allocation in _ALLOCATIONS:
        gain_of = {}
        for policy in (FAIR_SHARE, _SMART):
            rows = _paired(tables, (GNC, policy), (RANDOM, policy), "min_yield")
            name = f"{allocation}, {policy}"
            gains = rows.filter(pl.col("allocation") == allocation)["gain"]
            statistics = spread(name, gains)
            numbers |= statistics
            gain_of[policy] = _mean(statistics, name)
        holds.append(gain_of[_SMART] < gain_of[FAIR_SHARE])
    return Verdict(all(holds), numbers)


@sharing.claim(
    "With every policy GNC has a lower Mean-I/O-SlowDown than random placement (mean "
    "difference)."
)
def _placement_still_counts(tables: Tables) -> Verdict:
    """Take the mean difference between GNC and random placement."""
    numbers: dict[str, float] = {}
    for policy in ALL_POLICIES:
        rows = _paired(tables, (GNC, policy), (RANDOM, policy), "mean_io_slowdown")
        numbers |= spread(policy, rows["gain"])
    return Verdict(all(_mean(numbers, policy) < 0 for policy in ALL_POLICIES), numbers)
