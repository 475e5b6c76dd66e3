# SPDX-License-Identifier: MIT
"""Figure 9 of papers/1 (6.3.6): the Utilization of all strategies, as checks.

And what the synthesis (6.3.8) says of GreedyCom's Utilization and Efficiency.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.papers.p1.apex_claims.windows import (
    ANY,
    BANDS,
    COM,
    HIGH,
    IDLE,
    IDLE_TOO,
    NERSC,
    SILVERTON,
    SYNTHESIS,
    TRACES,
    TRILAB,
    Numbers,
    all_pass,
    correlation,
    fair_values,
    greedy_com_highest,
    losses_of,
    mean_of,
    means_of,
    trilab_higher,
)
from penstock.workloads.apex.table import scaled_celio

__all__ = ["CLAIMS"]


def _nersc_less_used(tables: Tables) -> Verdict:
    usage: Numbers = {}
    for trace in TRACES:
        machines = fair_values(tables, trace, "machine")
        size = np.array([scaled_celio(int(t)).nodes for t in machines])
        usage[trace] = mean_of(fair_values(tables, trace, "nodes") / size)
    return Verdict(usage[NERSC] < usage[TRILAB], usage)


def _utilization_falls(tables: Tables) -> Verdict:
    losses = {
        f"{trace} {before} to {after}": min(
            losses_of(
                tables, trace, "utilization", BANDS[before], BANDS[after]
            ).values()
        )
        for trace in TRACES
        for before, after in (("W<0.5", "0.5<=W<1"), ("0.5<=W<1", "W>=1"))
    }
    return all_pass(losses, lambda loss: loss > 0)


def _greedy_com_worst_min_yield(tables: Tables) -> Verdict:
    gaps: Numbers = {}
    for trace in TRACES:
        means = means_of(tables, trace, "min_yield", HIGH)
        mine = means.pop(COM)
        gaps |= {f"{trace} {p}": v - mine for p, v in means.items()}
    return all_pass(gaps, lambda gap: gap > 0)


def _as_efficiency(tables: Tables) -> Verdict:
    numbers: Numbers = {}
    for trace in TRACES:
        one = means_of(tables, trace, "efficiency", HIGH)
        two = means_of(tables, trace, "utilization", HIGH)
        numbers[f"{trace} order, W>=1"] = correlation(
            np.array(list(one.values())), np.array(list(two.values()))
        )
    return all_pass(numbers, lambda value: value >= 0.9)


_FIG9: Final = "papers/1 section 6.3.6, Figure 9"

CLAIMS: Final = (
    Claim(
        "nersc-lower",
        _FIG9,
        "The mean Utilization of all strategies is lower on NERSC than on TRILAB.",
        trilab_higher("utilization", ANY),
        SILVERTON + IDLE_TOO,
    ),
    Claim(
        "nersc-less-used",
        _FIG9,
        "Windows use fewer of the nodes of the machine on NERSC than on TRILAB, "
        "whatever the I/O.",
        _nersc_less_used,
        IDLE,
    ),
    Claim(
        "utilization-falls",
        _FIG9,
        "As W grows the Utilization of all strategies falls, on both workloads (W < "
        "0.5, 0.5 to 1, W >= 1; smallest loss).",
        _utilization_falls,
    ),
    Claim(
        "greedy-com-first",
        _FIG9,
        "GreedyCom has the highest Utilization on both workloads when W >= 1.",
        greedy_com_highest("utilization", TRACES, HIGH),
    ),
    Claim(
        "greedy-com-worst-min-yield",
        _FIG9,
        "The price is the lowest MinYield of all strategies when W >= 1.",
        _greedy_com_worst_min_yield,
    ),
    Claim(
        "as-efficiency",
        _FIG9,
        "Efficiency and Utilization behave very similarly (they order the strategies "
        "alike when W >= 1: rank correlation of at least 0.9).",
        _as_efficiency,
    ),
    Claim(
        "greedy-com-best-utilization",
        SYNTHESIS,
        "GreedyCom has the highest Utilization over all windows of each workload.",
        greedy_com_highest("utilization", TRACES, ANY),
    ),
    Claim(
        "greedy-com-best-efficiency",
        SYNTHESIS,
        "GreedyCom has the highest Efficiency over all windows of each workload.",
        greedy_com_highest("efficiency", TRACES, ANY),
    ),
)
