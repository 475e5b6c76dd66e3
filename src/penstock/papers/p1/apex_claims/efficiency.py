# SPDX-License-Identifier: MIT
"""Figure 8 of papers/1 (6.3.5): the Efficiency of all strategies, as checks."""

from __future__ import annotations

from typing import Final

import polars as pl

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import binned
from penstock.papers.p1.apex_claims.windows import (
    ANY,
    BEST,
    BEYOND,
    COM,
    EIGHT,
    FAIR,
    HIGH,
    IDLE,
    IDLE_TOO,
    LEARNT,
    LOOK,
    NEAR_ONE,
    NERSC,
    PERIODIC,
    SILVERTON,
    TRACES,
    TRILAB,
    YIELD,
    Numbers,
    all_pass,
    fair_values,
    flat,
    greedy_com_highest,
    losses_of,
    mean_of,
    means_of,
    trilab_higher,
)

__all__ = ["CLAIMS"]


def _nersc_drops(tables: Tables) -> Verdict:
    losses = losses_of(tables, NERSC, "efficiency", (0.0, 0.25), NEAR_ONE)
    return all_pass(losses, lambda loss: loss >= 0.05)


def _trilab_holds(tables: Tables) -> Verdict:
    losses = losses_of(tables, TRILAB, "efficiency", (0.0, 0.25), NEAR_ONE)
    return all_pass(losses, lambda loss: loss <= 0.05)


def _saturated_losses(tables: Tables) -> dict[str, Numbers]:
    return {
        trace: losses_of(tables, trace, "efficiency", NEAR_ONE, BEYOND)
        for trace in TRACES
    }


def _saturation_drops(tables: Tables) -> Verdict:
    return all_pass(flat(_saturated_losses(tables)), lambda loss: loss > 0)


def _nersc_drops_more(tables: Tables) -> Verdict:
    losses = _saturated_losses(tables)
    more = [losses[NERSC][p] > losses[TRILAB][p] for p in EIGHT]
    return Verdict(all(more), flat(losses))


def _nersc_chaotic(tables: Tables) -> Verdict:
    saturated = binned(tables.rows, "efficiency", "trace").filter(
        pl.col("pressure") >= 1
    )
    numbers = {
        trace: mean_of(
            saturated.filter(pl.col("trace") == trace)["deviation"].to_numpy()
        )
        for trace in TRACES
    }
    return Verdict(numbers[NERSC] > numbers[TRILAB], numbers)


def _trilab_few_large(tables: Tables) -> Verdict:
    numbers: Numbers = {}
    for trace in TRACES:
        count = fair_values(tables, trace, "applications")
        size = fair_values(tables, trace, "nodes") / count
        numbers |= {
            f"{trace} applications": mean_of(count),
            f"{trace} nodes of one": mean_of(size),
        }
    fewer = numbers["TRILAB applications"] < numbers["NERSC applications"]
    larger = numbers["TRILAB nodes of one"] > numbers["NERSC nodes of one"]
    return Verdict(fewer and larger, numbers)


_NEXT: Final = (FAIR, LOOK, BEST)


def _next_group(tables: Tables) -> Verdict:
    means = means_of(tables, TRILAB, "efficiency", HIGH)
    values = [means[p] for p in _NEXT]
    numbers = {p: means[p] for p in (COM, *_NEXT)}
    similar = max(values) - min(values) <= 0.05
    return Verdict(similar and 0 < means[COM] - max(values) <= 0.05, numbers)


def _last_group(tables: Tables) -> Verdict:
    means = means_of(tables, TRILAB, "efficiency", HIGH)
    last = max(v for p, v in means.items() if p not in (COM, *_NEXT))
    return Verdict(last < min(means[p] for p in _NEXT), means)


def _hidden(tables: Tables) -> Verdict:
    means = means_of(tables, TRILAB, "efficiency", HIGH)
    gaps = {
        "fcfs, set-10": abs(means["fcfs"] - means["set-10"]),
        "greedy-yield, periodic": abs(means[YIELD] - means[PERIODIC]),
    }
    return all_pass(gaps, lambda gap: gap <= 0.01)


_FIG8: Final = "papers/1 section 6.3.5, Figure 8"

CLAIMS: Final = (
    Claim(
        "nersc-drops",
        _FIG8,
        "NERSC: the Efficiency of all strategies drops quickly with W (by 0.05 from "
        "W < 0.25 to 0.75-1).",
        _nersc_drops,
        IDLE,
    ),
    Claim(
        "trilab-holds",
        _FIG8,
        "TRILAB: all strategies hold their Efficiency until W = 1 (to 0.05, from "
        "W < 0.25 to 0.75-1).",
        _trilab_holds,
        SILVERTON
        + "In windows without one, all but FairShare and PeriodicGreedyYield hold it.",
    ),
    Claim(
        "saturation-drops",
        _FIG8,
        "Above W = 1 the Efficiency of all strategies drops for both workloads (from "
        "W in 0.75-1 to W >= 1.25).",
        _saturation_drops,
    ),
    Claim(
        "nersc-drops-more",
        _FIG8,
        "That drop is more pronounced for NERSC, for all strategies.",
        _nersc_drops_more,
        "If jobs without I/O in the window are left out, for W up to 1.4, it holds for "
        "FairShare and GreedyCom. For the others no reason found: tried also without "
        "Silverton, with its checkpoint at a tenth, other ages, more cores per node.",
    ),
    Claim(
        "nersc-chaotic",
        _FIG8,
        "Above W = 1 the Efficiency varies more for NERSC (mean deviation in an "
        "interval of W).",
        _nersc_chaotic,
    ),
    Claim(
        "trilab-more-efficient",
        _FIG8,
        "All strategies have a higher mean Efficiency on TRILAB than on NERSC.",
        trilab_higher("efficiency", ANY),
        SILVERTON + IDLE_TOO,
    ),
    Claim(
        "trilab-more-efficient-when-saturated",
        _FIG8,
        "Above W = 1 too: TRILAB supports higher W for all strategies.",
        trilab_higher("efficiency", HIGH),
        SILVERTON + IDLE_TOO,
    ),
    Claim(
        "trilab-few-large",
        _FIG8,
        "TRILAB windows have fewer and larger applications than NERSC windows.",
        _trilab_few_large,
    ),
    Claim(
        "trilab-greedy-com-first",
        _FIG8,
        "TRILAB, W >= 1: GreedyCom has the highest Efficiency.",
        greedy_com_highest("efficiency", (TRILAB,), HIGH),
    ),
    Claim(
        "trilab-next-group",
        _FIG8,
        "TRILAB, W >= 1: FairShare, LookAheadGreedyYield and BestNextEvent have a "
        "similar Efficiency (within 0.05), slightly under GreedyCom (0.05).",
        _next_group,
        "The three are 0.052 apart; GreedyCom is 0.09 above them, where the paper sees "
        "little. No reason found: for W up to 1.4, with more cores per node, they are "
        "0.03 apart and it is 0.07 above; without Silverton it is not above.",
    ),
    Claim(
        "trilab-last-group",
        _FIG8,
        "TRILAB, W >= 1: Set-10, FCFS, GreedyYield and PeriodicGreedyYield have the "
        "lowest Efficiency.",
        _last_group,
    ),
    Claim(
        "trilab-hidden",
        _FIG8,
        "TRILAB, W >= 1: Set-10 hides FCFS, and PeriodicGreedyYield hides GreedyYield "
        "(within 0.01).",
        _hidden,
        LEARNT,
    ),
    Claim(
        "nersc-greedy-com-first",
        _FIG8,
        "NERSC, W >= 1: GreedyCom has the highest Efficiency.",
        greedy_com_highest("efficiency", (NERSC,), HIGH),
    ),
)
