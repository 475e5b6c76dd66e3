# SPDX-License-Identifier: MIT
"""Beyond papers/1 and papers/2: policies that share bandwidth, over many targets.

papers/1 section 7 names systems with several I/O servers as future work. Every policy
of papers/1 shares each target of papers/2, with the yields of whole applications; fair
sharing, what papers/2 assumes, is one of them. All are compared on the same placements:
MinYield and Efficiency over the same window, up to the smallest dedicated duration,
Mean-I/O-SlowDown until an application ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.experiments.output.charts import LABELS, policies_of, tidy
from penstock.experiments.output.plots import colour_of
from penstock.experiments.placement_study import Contender, PlacementStudy
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.study import sweep
from penstock.papers.p1.policies import EIGHT
from penstock.papers.p2.charts import new_figure
from penstock.papers.p2.study import (
    BBA,
    GNC,
    NSYSA,
    RANDOM,
    TA,
    binned,
    spread,
    summary,
)

__all__ = ["FIGURES"]

_ALLOCATIONS: Final = (NSYSA, TA, BBA)
_PLACEMENTS: Final[dict[str, Any]] = {GNC: "-", RANDOM: "--"}
_METRICS: Final = ("min_yield", "efficiency", "mean_io_slowdown")
_FAIR: Final = "fair-share"
_YIELD_BASED: Final = (
    "greedy-yield",
    "look-ahead-greedy-yield",
    "periodic-greedy-yield",
    "best-next-event",
)
#: Needs no volumes, as fair sharing; recommended by papers/1 where they are unknown.
_SMART: Final = "periodic-greedy-yield"
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
        for policy in EIGHT
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
    table = _table(tables)
    figure = new_figure(13, 10)
    axes = figure.subplots(len(_METRICS), len(_ALLOCATIONS), sharex=True, sharey="row")
    for line, metric in zip(axes, _METRICS, strict=True):
        for axis, allocation in zip(line, _ALLOCATIONS, strict=True):
            mine = table.filter(
                pl.col("metric") == metric, pl.col("allocation") == allocation
            )
            _lines(axis, mine)
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
            linewidth=2.6 if policy == _FAIR else 1.4,
            zorder=4 if policy == _FAIR else 3,
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
    """Return how many runs have no Mean-I/O-SlowDown, for whom and why."""
    rows = table.filter(pl.col("metric") == "mean_io_slowdown")
    share = rows.group_by("policy").agg(
        (pl.col("left_out").sum() / (pl.col("sets") + pl.col("left_out")).sum()).alias(
            "share"
        )
    )
    fair, worst = (
        share.filter(pl.col("policy") == _FAIR)["share"].sum(),
        share.sort("share").row(-1),
    )
    return (
        "Mean-I/O-SlowDown: left out are runs in which an application has hardly begun "
        f"its I/O, {fair:.0%} with {_FAIR}, {worst[1]:.0%} with {worst[0]}"
    )


# --- What it brings ---------------------------------------------------------------


def _paired(
    tables: Tables, one: tuple[str, str], other: tuple[str, str], metric: str
) -> pl.DataFrame:
    """Return `gain`: `metric` of a (placement, policy) minus that of another.

    By allocation, on the same problem.
    """
    key = ["allocation", "point", "instance"]
    mine, theirs = (
        tables.rows.filter(pl.col("placement") == placement, pl.col("policy") == policy)
        for placement, policy in (one, other)
    )
    base = theirs.select(*key, pl.col(metric).alias("base"))
    joined = mine.join(base, on=key, maintain_order="left")
    return joined.with_columns((pl.col(metric) - pl.col("base")).alias("gain"))


def _mean(found: dict[str, float], name: str) -> float:
    return found.get(f"{name}, mean", 0.0)


def _yield_based_help(tables: Tables) -> Verdict:
    numbers: dict[str, float] = {}
    for policy in _YIELD_BASED:
        gains = pl.concat(
            [
                _paired(tables, (place, policy), (place, _FAIR), "min_yield")["gain"]
                for place in _PLACEMENTS
            ]
        )
        numbers |= spread(policy, gains)
    return Verdict(all(_mean(numbers, p) > 0 for p in _YIELD_BASED), numbers)


def _no_free_lunch(tables: Tables) -> Verdict:
    """Check that no policy is ahead of fair sharing in all three criteria."""
    numbers: dict[str, float] = {}
    ahead = []
    for policy in EIGHT:
        if policy == _FAIR:
            continue
        gains = {
            metric: spread(
                f"{policy}, {LABELS[metric]}",
                _paired(tables, (GNC, policy), (GNC, _FAIR), metric)["gain"],
            )
            for metric in _METRICS
        }
        values = [_mean(g, f"{policy}, {LABELS[m]}") for m, g in gains.items()]
        for found in gains.values():
            numbers |= {k: v for k, v in found.items() if k.endswith("mean")}
        ahead.append(values[0] > 0 and values[1] > 0 and values[2] < 0)
    return Verdict(not any(ahead), numbers)


def _sharing_for_placement(allocation: str) -> Check:
    """Check that smart sharing on random placements beats fair sharing on GNC's."""

    def check(tables: Tables) -> Verdict:
        rows = binned(
            _paired(tables, (RANDOM, _SMART), (GNC, _FAIR), "min_yield"), _WIDTH
        ).filter(pl.col("allocation") == allocation)
        numbers: dict[str, float] = {}
        for (load,), mine in sorted(rows.group_by("bin"), key=lambda item: item[0]):
            numbers |= spread(f"load {load:g}", mine["gain"])
        means = [v for k, v in numbers.items() if k.endswith("mean")]
        return Verdict(bool(means) and min(means) > 0, numbers or {"sets": 0.0})

    return check


def _placement_worth_less(tables: Tables) -> Verdict:
    numbers: dict[str, float] = {}
    holds = []
    for allocation in _ALLOCATIONS:
        worth = {}
        for policy in (_FAIR, _SMART):
            rows = _paired(tables, (GNC, policy), (RANDOM, policy), "min_yield")
            name = f"{allocation}, {policy}"
            found = spread(
                name, rows.filter(pl.col("allocation") == allocation)["gain"]
            )
            numbers |= found
            worth[policy] = _mean(found, name)
        holds.append(worth[_SMART] < worth[_FAIR])
    return Verdict(all(holds), numbers)


def _placement_still_counts(tables: Tables) -> Verdict:
    numbers: dict[str, float] = {}
    for policy in EIGHT:
        rows = _paired(tables, (GNC, policy), (RANDOM, policy), "mean_io_slowdown")
        numbers |= spread(policy, rows["gain"])
    return Verdict(all(_mean(numbers, policy) < 0 for policy in EIGHT), numbers)


_SOURCE: Final = "beyond papers/1 (section 7: several I/O servers) and papers/2"

FIGURES: Final = {
    "p2-sharing": Reproduction(
        name="p2-sharing",
        title="Policies that share bandwidth, over many targets",
        source=_SOURCE,
        study=_study,
        draw=_draw,
        claims=[
            Claim(
                "yield-based-help-the-worst-off",
                _SOURCE,
                "On the same placements every yield-based policy has a higher MinYield "
                "than fair sharing (mean gain over all sets).",
                _yield_based_help,
            ),
            Claim(
                "no-free-lunch",
                _SOURCE,
                "No policy is better than fair sharing in MinYield, Efficiency and "
                "Mean-I/O-SlowDown alike (mean differences, placement GNC).",
                _no_free_lunch,
            ),
            *(
                Claim(
                    f"sharing-for-placement-{allocation}",
                    _SOURCE,
                    f"With {allocation}, {_SMART} on random placements has a higher "
                    "MinYield than fair sharing on GNC's, at every load: there "
                    "placement matters less because sharing is smart.",
                    _sharing_for_placement(allocation),
                    note="With few targets each, applications on a crowded target have "
                    "nowhere else to go: no order of service helps as much as another "
                    "target.",
                )
                for allocation in _ALLOCATIONS
            ),
            Claim(
                "placement-worth-less",
                _SOURCE,
                "What GNC gains in MinYield over random placement is less with "
                f"{_SMART} than with fair sharing, for every allocation.",
                _placement_worth_less,
            ),
            Claim(
                "placement-still-counts",
                _SOURCE,
                "With every policy GNC has a lower Mean-I/O-SlowDown than random "
                "placement (mean difference).",
                _placement_still_counts,
            ),
        ],
        summary=_table,
    ),
}
