# SPDX-License-Identifier: MIT
"""Figure 9 of bandwidth sharing (section 6.3.6): Utilization on the APEX workloads.

The text weighs applications by their nodes p_i (equation 9); the published figure
counts every application once. Both are drawn, and every claim about Utilization is
checked with both. Some claims are those of the synthesis (section 6.3.8) and of the
conclusion (section 7). `penstock.papers.p1.apex.bands` says what W is, and which W
the figure shows.
"""

from __future__ import annotations

import numpy as np

from penstock.experiments.claims import Tables, Verdict, case
from penstock.papers.declaration import figure
from penstock.papers.p1.apex.bands import (
    BANDS,
    EFFICIENCIES,
    EVERY_WINDOW,
    FIGURES_6_TO_10,
    HIGH,
    SYNTHESIS,
    TRACES,
    UTILIZATIONS,
)
from penstock.papers.p1.apex.measures import Table, correlation, means_of
from penstock.papers.p1.apex.study import (
    apex_study,
    draw_by_pressure,
    means_by_pressure,
)
from penstock.papers.p1.apex.verdicts import (
    against_fair_share,
    all_cells_pass,
    all_pass,
    by_weights,
    conclusion_cases,
    greedy_com_highest,
    trilab_higher,
)
from penstock.papers.p1.apex.windows import shown
from penstock.papers.p1.policies import ALL_POLICIES, GREEDY_COM

__all__ = ["fig9"]

fig9 = figure(
    "p1-fig9",
    study=apex_study,
    prepare=shown(FIGURES_6_TO_10),
    draw=draw_by_pressure(UTILIZATIONS),
    summary=means_by_pressure(UTILIZATIONS),
)


fig9.claim_cases(
    case(
        "nersc-lower",
        "At equal W all policies have a lower mean Utilization on NERSC than on "
        "TRILAB.",
        reason="Where every job counts once, fcfs and set-10 are lower on TRILAB, by "
        "0.002: they let all jobs wait for the long checkpoints of Silverton.",
        columns=UTILIZATIONS,
        band=EVERY_WINDOW,
    ),
)(trilab_higher)


@fig9.claim(
    "As W grows the Utilization of all policies falls, on both workloads (W < 0.75, "
    "0.75 to 1, W >= 1; smallest loss).",
    contradicted="Section 6.3.5 says that on TRILAB the policies keep their Efficiency "
    "until W = 1, and section 6.3.6 that Utilization behaves like it: so it is here, "
    "with fcfs and set-10 on TRILAB until W = 1.",
)
def _utilization_falls(tables: Tables) -> Verdict:
    """Take the smallest loss of all policies from band to band."""

    def check(metric: str) -> Verdict:
        losses: Table = {}
        for trace in TRACES:
            means = [means_of(tables, trace, metric, band) for band in BANDS.values()]
            low, middle, high = means
            losses[trace] = {
                "to 0.75-1": min(low[p] - middle[p] for p in ALL_POLICIES),
                "to W>=1": min(middle[p] - high[p] for p in ALL_POLICIES),
            }
        return all_cells_pass(losses, lambda loss: loss > 0)

    return by_weights(UTILIZATIONS, check)


fig9.claim_cases(
    case(
        "greedy-com-first",
        "greedy-com has the highest Utilization on both workloads when W >= 1.",
        columns=UTILIZATIONS,
        traces=TRACES,
        band=HIGH,
    ),
    case(
        "greedy-com-best-utilization",
        "greedy-com has the highest Utilization over all windows of each workload.",
        source=SYNTHESIS,
        columns=UTILIZATIONS,
        traces=TRACES,
        band=EVERY_WINDOW,
    ),
    case(
        "greedy-com-best-efficiency",
        "greedy-com has the highest Efficiency over all windows of each workload.",
        source=SYNTHESIS,
        columns=EFFICIENCIES,
        traces=TRACES,
        band=EVERY_WINDOW,
    ),
)(greedy_com_highest)


@fig9.claim("greedy-com has the lowest MinYield of all policies when W >= 1.")
def _greedy_com_worst_min_yield(tables: Tables) -> Verdict:
    """Compare the mean MinYield of greedy-com with that of all others."""
    means = {trace: means_of(tables, trace, "min_yield", HIGH) for trace in TRACES}
    lower = [
        row[GREEDY_COM] < row[p]
        for row in means.values()
        for p in ALL_POLICIES
        if p != GREEDY_COM
    ]
    return Verdict(all(lower), means)


@fig9.claim(
    "Efficiency and Utilization behave very similarly (they order the policies alike "
    "when W >= 1: rank correlation of at least 0.9).",
)
def _as_efficiency(tables: Tables) -> Verdict:
    """Correlate the mean Efficiencies and Utilizations of the policies."""
    efficiency = dict(zip(UTILIZATIONS.values(), EFFICIENCIES.values(), strict=True))

    def check(metric: str) -> Verdict:
        numbers = {
            f"{trace} order, W>=1": correlation(
                *(
                    np.array(list(means_of(tables, trace, m, HIGH).values()))
                    for m in (efficiency[metric], metric)
                )
            )
            for trace in TRACES
        }
        return all_pass(numbers, lambda value: value >= 0.9)

    return by_weights(UTILIZATIONS, check)


fig9.claim_cases(*conclusion_cases("Utilization", UTILIZATIONS))(against_fair_share)
