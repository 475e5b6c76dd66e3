# SPDX-License-Identifier: MIT
"""Figure 9 of bandwidth sharing (section 6.3.6): Utilization on the APEX workloads.

The last two claims are those of the synthesis (section 6.3.8) about Utilization and
Efficiency. `penstock.papers.p1.apex.windows` says what W is.
"""

from __future__ import annotations

import numpy as np

from penstock.experiments.claims import Tables, Verdict, case
from penstock.papers.declaration import figure
from penstock.papers.p1.apex.study import (
    apex_study,
    draw_by_pressure,
    means_by_pressure,
)
from penstock.papers.p1.apex.windows import (
    ANY,
    BANDS,
    HIGH,
    NERSC,
    REASON_IDLE_JOBS,
    REASON_IDLE_JOBS_TOO,
    REASON_SILVERTON,
    SYNTHESIS,
    TRACES,
    TRILAB,
    Band,
    Numbers,
    all_pass,
    correlation,
    fair_values,
    greedy_com_highest,
    losses_of,
    mean_or_nan,
    means_of,
    trilab_higher,
)
from penstock.papers.p1.policies import GREEDY_COM
from penstock.workloads.apex.table import scaled_celio

__all__ = ["fig9"]

fig9 = figure(
    "p1-fig9",
    study=apex_study,
    draw=draw_by_pressure("utilization"),
    summary=means_by_pressure("utilization"),
)


@fig9.claim(
    "All policies have a lower mean Utilization on NERSC than on TRILAB.",
    reason=REASON_SILVERTON + REASON_IDLE_JOBS_TOO,
)
def _nersc_lower(tables: Tables) -> Verdict:
    """Compare the means of both traces."""
    return trilab_higher(tables, "utilization", ANY)


@fig9.claim(
    "NERSC windows use a smaller part of the nodes of the machine than TRILAB windows, "
    "whatever the I/O.",
    reason=REASON_IDLE_JOBS,
)
def _nersc_less_used(tables: Tables) -> Verdict:
    """Compare the mean parts of the nodes in use."""
    usage: Numbers = {}
    for trace in TRACES:
        machines = fair_values(tables, trace, "machine")
        size = np.array([scaled_celio(int(t)).nodes for t in machines])
        usage[trace] = mean_or_nan(fair_values(tables, trace, "nodes") / size)
    return Verdict(usage[NERSC] < usage[TRILAB], usage)


@fig9.claim(
    "As W grows the Utilization of all policies falls, on both workloads (W < 0.5, 0.5 "
    "to 1, W >= 1; smallest loss)."
)
def _utilization_falls(tables: Tables) -> Verdict:
    """Take the smallest loss of all policies from band to band."""
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


@fig9.claim_cases(
    case(
        "greedy-com-first",
        "greedy-com has the highest Utilization on both workloads when W >= 1.",
        metric="utilization",
        band=HIGH,
    ),
    case(
        "greedy-com-best-utilization",
        "greedy-com has the highest Utilization over all windows of each workload.",
        source=SYNTHESIS,
        metric="utilization",
        band=ANY,
    ),
    case(
        "greedy-com-best-efficiency",
        "greedy-com has the highest Efficiency over all windows of each workload.",
        source=SYNTHESIS,
        metric="efficiency",
        band=ANY,
    ),
)
def _greedy_com_first(tables: Tables, metric: str, band: Band) -> Verdict:
    """Compare the mean of greedy-com with that of all others."""
    return greedy_com_highest(tables, metric, TRACES, band)


@fig9.claim("greedy-com has the lowest MinYield of all policies when W >= 1.")
def _greedy_com_worst_min_yield(tables: Tables) -> Verdict:
    """Compare the mean MinYield of greedy-com with that of all others."""
    gaps: Numbers = {}
    for trace in TRACES:
        means = means_of(tables, trace, "min_yield", HIGH)
        mean = means.pop(GREEDY_COM)
        gaps |= {f"{trace} {p}": v - mean for p, v in means.items()}
    return all_pass(gaps, lambda gap: gap > 0)


@fig9.claim(
    "Efficiency and Utilization behave very similarly (they order the policies alike "
    "when W >= 1: rank correlation of at least 0.9)."
)
def _as_efficiency(tables: Tables) -> Verdict:
    """Correlate the mean Efficiencies and Utilizations of the policies."""
    numbers: Numbers = {}
    for trace in TRACES:
        one = means_of(tables, trace, "efficiency", HIGH)
        two = means_of(tables, trace, "utilization", HIGH)
        numbers[f"{trace} order, W>=1"] = correlation(
            np.array(list(one.values())), np.array(list(two.values()))
        )
    return all_pass(numbers, lambda value: value >= 0.9)
